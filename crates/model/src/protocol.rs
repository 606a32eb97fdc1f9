//! How measuring is divided into windows, bursts and rounds, and what counts as a disturbance. The engine measures by these numbers, the
//! planner estimates times from them, and the judgement of a result uses the same thresholds.

use std::time::Duration;

use crate::experiment::ChaseOrder;
use crate::units::Bytes;

/// A sample of latency or bandwidth is the mean over a window this long: some 50,000 hops of 100 ns, or 100 MB at 20 GB/s.
pub const WINDOW: Duration = Duration::from_millis(5);
/// Windows at the start of a burst that run and do not count: pipelines, TLBs and the core's clock settle.
pub const SETTLE_WINDOWS: usize = 1;
/// A chase of an exact number of hops is warmed up for so long before it is timed: the page tables of 512 MiB of small pages, 1 MiB, are in the
/// second-level cache after some 50,000 hops.
pub const SETTLE_HOPS: Duration = Duration::from_millis(20);
/// A full-random chase in new memory is warmed up for this long per MiB of its buffer: five hops of 250 ns for each line of page tables of
/// small pages. A hypervisor may use small pages even where its guest has huge ones. In a virtual machine on an Emerald Rapids the first 60 ms
/// over 1200 MiB were up to 40 % slower than all that followed, and the first 20 ms over 512 MiB up to 25 %.
const SETTLE_PER_MIB: Duration = Duration::from_micros(40);
/// A window is judged in slots this long: slots during which a thread was off its CPU are left out of the window's sample. Threads that share
/// their CPU run for some 3 ms at a time (the scheduler's slice), which leaves them ten slots in a row.
pub const SLOT: Duration = Duration::from_micros(250);
/// Slots that are left out after a slot during which a thread was off its CPU: other threads have used its caches.
pub const GUARD_SLOTS: usize = 1;
/// A thread was interrupted if a block took this many times as long as its blocks usually do. Blocks take 10 to 20 µs, timer interrupts 1
/// to 5.
pub const LONG_BLOCK: f64 = 2.0;
/// Share of a window's time that a thread may be off its CPU without a long block: the interval that is asked for. Kernels that account
/// the time of interrupts count it as time off the CPU; a thousand timer interrupts a second take up to half of this.
pub const MAX_UNSEEN: f64 = 0.01;
/// Share of the time that threads on their CPUs may wait for memory without an answer. Timer interrupts and page walks of a quiet guest
/// take 1 to 3 %; firmware that throttles memory, and links that retry, take more.
pub const MAX_STALLED: f64 = 0.05;
/// Share of a window's slots that must be left for a sample: a millisecond of five.
pub const MIN_CLEAN: f64 = 0.2;
/// Share of a burst's threads that may be off their CPUs in a slot that counts. Up to this share, absent threads only lower the total.
pub const MAX_AWAY: f64 = 0.01;
/// Windows of a burst that count.
pub const BURST_WINDOWS: usize = 12;
/// Counted time of a burst, or of a run of transfers, at most: a longer time that was asked for is measured in several of them. Between two
/// of them a run looks whether it is to end, and a settling window takes 2.5 % of this.
pub const MAX_BURST: Duration = Duration::from_millis(200);
/// The fewest counted windows of a burst where the time is short: below two, the settling window and the start take more than what counts.
pub const MIN_BURST_WINDOWS: usize = 2;
/// The minimum number of bursts of a cell: six is the fewest for which a non-parametric 95 % interval of the median exists.
pub const MIN_BURSTS: u32 = 6;
/// A cell without any sample gets this many times its budget before it is given up: on an overcommitted machine threads may get no CPU for
/// whole bursts.
pub const STARVED_BUDGETS: f64 = 8.0;
/// How often a disturbed burst of an idle chase is repeated in the same memory.
pub const MAX_REPEATS: usize = 2;

/// Counted windows of a chase that is only compared with another one: evidence, not a result.
pub const COMPARISON_WINDOWS: usize = 4;
/// How often such a chase is tried: a thread whose time quota is used up misses a whole burst, and the next one begins with a new quota.
pub const MAX_COMPARISON_BURSTS: u32 = 5;
/// How often a derived buffer may be doubled in search of the plateau: from 64 MiB to 2 GiB. A chase visits every second line of it,
/// twice the content of today's largest last-level cache (504 MB).
pub const MAX_DOUBLINGS: u32 = 5;
/// Buffers of a chase that are kept for later cells: the fewest that show an effect of placement.
pub const KEPT_ALLOCATIONS: u32 = 3;

/// Rounds of a trial of kernels. Each kernel runs once a round, so that a slow moment does not decide against one of them.
pub const TRIAL_ROUNDS: usize = 3;
/// The same before a cell whose budget is shorter than the fewest bursts of the fewest windows.
pub const FEWEST_TRIAL_ROUNDS: usize = 1;
/// Counted windows of a kernel in a round of a trial.
pub const TRIAL_WINDOWS: usize = 2;
/// How often a trial's burst is repeated if threads were off their CPUs all the time: three competitors leave a thread 3 ms of every
/// 12, so that four bursts of 15 ms nearly always have a clean window. All repeats together at most double the time of a trial.
pub const MAX_TRIAL_REPEATS: usize = 3;
/// How often a kernel is chosen anew for later cells where trials were disturbed. A machine that is never quiet does not pay for more.
pub const MAX_DISTURBED_TRIALS: u32 = 3;
/// Rounds of the test whether plain stores read the line first. Each kind of store runs once a round.
pub const RFO_ROUNDS: usize = 5;
/// Kinds of stores that this test compares: whole lines, parts of lines, non-temporal.
pub const RFO_KINDS: usize = 3;
/// Counted windows of each kind in a round.
pub const RFO_WINDOWS: usize = 2;

/// Window of a working-set sweep: some 10,000 hops of 100 ns. It is shorter than a scheduler's slice, so that on a busy machine in
/// many windows the thread is never taken off its CPU.
pub const SWEEP_WINDOW: Duration = Duration::from_millis(1);
/// Counted windows of a sweep's burst, which is over before a thread that has just woken up has used up its slice.
pub const SWEEP_WINDOWS: usize = 3;
/// The same where hardware events are counted: groups of events that share a core's counters take turns every 1 to 10 ms, by the kernel's
/// tick, and each of some eight groups must have its turn in every burst.
pub const SWEEP_COUNTED_WINDOWS: usize = 40;
/// The minimum number of bursts of a sweep's point.
pub const MIN_SWEEP_BURSTS: u32 = 8;
/// The same where the time is short: the fewest whose median lies between two others.
pub const FEWEST_SWEEP_BURSTS: u32 = 3;
/// Counted windows of a kernel in a round of a sweep's trial.
pub const SWEEP_TRIAL_WINDOWS: usize = 5;

/// One run of cache-to-cache transfers over one allocation.
pub const TRANSFER_RUN: Duration = Duration::from_millis(150);
/// The shortest run where the time is short: some thirty windows of half an L2.
pub const MIN_TRANSFER_RUN: Duration = Duration::from_millis(30);
/// The minimum number of fresh allocations of a transfer.
pub const MIN_TRANSFER_ALLOCATIONS: u32 = 3;
/// One run where all pairs of CPUs are measured: some 50 windows of half an L2.
pub const PAIR_RUN: Duration = Duration::from_millis(50);
/// The minimum number of runs of each of these pairs.
pub const MIN_PAIR_RUNS: u32 = 3;

/// Counted windows of [`SWEEP_WINDOW`] of a stamp's probe in a round.
pub const STAMP_WINDOWS: usize = 2;
/// One round of a stamp's transfer: some fifteen turns.
pub const STAMP_TRANSFER_RUN: Duration = Duration::from_millis(3);
/// The fewest rounds of a stamp's probe that count: fewer hardly show how much they scatter.
pub const LEAST_STAMP_ROUNDS: usize = 4;

/// A plan of more cells than this keeps fewer samples of each: with all of them, the file of a matrix of 64 nodes would be twice as large.
pub const MANY_CELLS: usize = 1000;
/// Samples of each burst that results of such a plan keep at most: the fewest that show a trend within the burst.
pub const KEPT_OF_MANY: usize = 3;

/// Share of CPU time given to others by the hypervisor above which samples are suspect.
pub const MAX_STEAL: f64 = 0.005;
/// Samples are suspect if threads waited for their CPUs for more than this share of their time. In a burst of one thread that is a third
/// of a millisecond: kernel threads come and go in less.
pub const MAX_WAITED: f64 = 0.005;
/// Share of the CPUs that share a core, a cache or memory with the measured ones above which samples are suspect where others use it. A
/// quarter of a node's cores saturates its memory, so that programs that do nothing else take up to a fifth of it in 5 % of the CPUs' time.
pub const MAX_NEIGHBOURS: f64 = 0.05;
/// Relative change of the core's frequency above which samples are suspect. Turbo changes it by up to 4 % with temperature and neighbours; the
/// core's part of a memory's latency is a fifth, so 5 % move that by the 1 % that is asked for. Caches follow it fully.
pub const MAX_FREQUENCY_CHANGE: f64 = 0.05;
/// Involuntary context switches per thread that are normal however short the measurement: a kernel thread bound to the CPU runs now and then.
pub const NORMAL_SWITCHES: u32 = 2;
/// The minimum number of undisturbed bursts for leaving the disturbed ones out: the fewest whose median lies between two others.
pub const MIN_UNDISTURBED: usize = 3;

/// Counted time of the fewest and shortest bursts of a cell with windows of the usual length.
pub const SHORT_BUDGET: Duration = WINDOW.saturating_mul(MIN_BURSTS * MIN_BURST_WINDOWS as u32);

/// The window of a plan's cells and trials, where each cell has `budget_s` seconds: shorter than usual below [`SHORT_BUDGET`], in whole slots.
/// `counted` where hardware events are counted: all groups of them must have their turn.
pub fn window(budget_s: f64, counted: bool) -> Duration {
    let slots = whole(budget_s / f64::from(MIN_BURSTS * MIN_BURST_WINDOWS as u32), SLOT);
    let most = whole(WINDOW.as_secs_f64(), SLOT);
    if counted { WINDOW } else { (SLOT * slots.min(most) as u32).max(SWEEP_WINDOW) }
}

/// How long a chase in `order` over `bytes` of new memory is warmed up before its first burst. The settling window is enough for small ones,
/// and for orders that stay in a few pages.
pub fn settling(order: ChaseOrder, bytes: Bytes) -> Duration {
    let needed = SETTLE_PER_MIB.mul_f64(bytes.0 as f64 / Bytes::mib(1).0 as f64);
    if order == ChaseOrder::FullRandom && needed > WINDOW { needed } else { Duration::ZERO }
}

/// Counted windows of `window` of each of at least `bursts` bursts that share `budget_s` seconds: fewer than usual where the budget is short.
pub fn burst_windows(budget_s: f64, bursts: f64, window: Duration) -> usize {
    whole(budget_s / bursts, window).clamp(MIN_BURST_WINDOWS, BURST_WINDOWS)
}

/// How often `part` fits into `seconds`, but for the rounding of decimal fractions.
fn whole(seconds: f64, part: Duration) -> usize {
    (seconds / part.as_secs_f64() + 0.01) as usize
}

/// Rounds of a trial of kernels before cells that a plan gives `budget_s` seconds.
pub fn trial_rounds(budget_s: f64) -> usize {
    if budget_s < SHORT_BUDGET.as_secs_f64() { FEWEST_TRIAL_ROUNDS } else { TRIAL_ROUNDS }
}

/// The minimum number of bursts, each of `burst_s` seconds, of a sweep's point that has `budget_s` seconds.
pub fn sweep_bursts(budget_s: f64, burst_s: f64) -> u32 {
    ((budget_s / burst_s) as u32).clamp(FEWEST_SWEEP_BURSTS, MIN_SWEEP_BURSTS)
}

/// One run of transfers where the fewest of them share `budget_s` seconds.
pub fn transfer_run(budget_s: f64) -> Duration {
    let share = Duration::from_secs_f64(budget_s.max(0.0) / f64::from(MIN_TRANSFER_ALLOCATIONS));
    share.clamp(MIN_TRANSFER_RUN, TRANSFER_RUN)
}

/// The largest injection delay that an adaptive curve uses. It is so long that loads of the probe hardly ever meet other traffic.
pub const IDLE_DELAY_CYCLES: u32 = 20_000;
