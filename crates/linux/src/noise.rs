//! Disturbances of a measurement, from the kernel's counters before and after it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memgauge_model::result::{DimmErrors, Noise};
use memgauge_model::units::IdSet;

use crate::clock::gettime_ns;
use crate::edac::{dimm_errors, memory_errors};
use crate::files::read_text;
use crate::substitute::kernels_text;

/// `/proc/stat` counts in steps of 10 ms (`USER_HZ` 100). In less time than this, the steps would hide everything else.
const MIN_TIME: Duration = Duration::from_millis(200);

/// The counters at the start of a measurement.
#[derive(Debug)]
pub struct NoiseProbe {
    root: PathBuf,
    cpus: IdSet,
    /// The start, moved later by the time of all pauses.
    started: Instant,
    /// The counters at the start, raised by what was counted during pauses. Memory errors are not: memory is in use then as well.
    counters: Counters,
    /// Errors of each DIMM at the start.
    dimms: Vec<DimmErrors>,
    /// The start of the current pause, and the counters then.
    paused: Option<(Instant, Counters)>,
    /// Intervals between pauses. Each has its own rounding error.
    intervals: u32,
}

/// The kernel's counters at one moment; `None` for those that this kernel does not have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counters {
    stat: Option<CpuTime>,
    /// The time that the threads of this process ran, in seconds.
    own_s: Option<f64>,
    counts: Counts,
}

/// The time of the measured CPUs in ticks of `USER_HZ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CpuTime {
    /// CPUs found.
    cpus: u64,
    /// The sum of user, nice, system, irq and softirq. Guests are part of user.
    busy: u64,
    steal: u64,
}

/// Counts since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    migrated: Option<u64>,
    hint_faults: Option<u64>,
    collapsed: Option<u64>,
    /// Pressure (PSI) in microseconds.
    cpu_pressure: Option<u64>,
    memory_pressure: Option<u64>,
    memory_errors: Option<u64>,
}

impl Counts {
    /// Combines each count with that of `other`, where both are there.
    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        let both = |own: Option<u64>, other: Option<u64>| Some(with(own?, other?));
        Self {
            migrated: both(self.migrated, other.migrated),
            hint_faults: both(self.hint_faults, other.hint_faults),
            collapsed: both(self.collapsed, other.collapsed),
            cpu_pressure: both(self.cpu_pressure, other.cpu_pressure),
            memory_pressure: both(self.memory_pressure, other.memory_pressure),
            memory_errors: both(self.memory_errors, other.memory_errors),
        }
    }
}

impl NoiseProbe {
    /// Reads the counters: about ten small files, and one line of `/proc/stat` for each CPU of the machine.
    ///
    /// `root` is the root of `/proc` and `/sys`. `cpus` are all CPUs that this process keeps busy during the measurement, including those that
    /// it only keeps awake. Its time on any other CPU would count as its time on these, and hide as much time of other processes. Work on more
    /// CPUs needs a [pause](Self::pause).
    pub fn start(root: &Path, cpus: &IdSet) -> Self {
        let counters = Counters::read(root, cpus);
        let dimms = dimm_errors(root);
        Self { counters, dimms, root: root.to_owned(), cpus: cpus.clone(), started: Instant::now(), paused: None, intervals: 1 }
    }

    /// Stops counting all but memory errors until [`Self::resume`], for work of this process on other CPUs.
    pub fn pause(&mut self) {
        self.paused = Some((Instant::now(), Counters::read(&self.root, &self.cpus)));
    }

    /// Starts counting again after a pause.
    pub fn resume(&mut self) {
        if let Some((since, before)) = self.paused.take() {
            self.counters.add(&before, &Counters::read(&self.root, &self.cpus));
            self.started += since.elapsed();
            self.intervals += 1;
        }
    }

    /// Reads the counters again and returns the differences. Shares of CPU time need at least 0.2 s, and are `None` for less.
    ///
    /// `involuntary_switches` is the sum of the differences of [`thread_involuntary_switches`] over the measuring threads. The caller fills in
    /// migrations and frequencies.
    pub fn finish(self, involuntary_switches: Option<u64>) -> Noise {
        let elapsed = self.started.elapsed();
        let after = Counters::read(&self.root, &self.cpus);
        let noise = after.since(&self.counters, elapsed, user_hz(), self.intervals);
        let by_dimm = noise.memory_errors.filter(|errors| *errors > 0).map(|_| DimmErrors::since(&self.dimms, &dimm_errors(&self.root)));
        Noise { involuntary_switches, memory_errors_by_dimm: by_dimm.unwrap_or_default(), ..noise }
    }
}

/// The kernel's `/proc/stat`; `None` where it is hidden, or shows a container in place of the machine (lxcfs numbers a container's CPUs from 0),
/// or nothing at all (gVisor shows zeros).
pub(crate) fn stat(root: &Path) -> Option<String> {
    let text = kernels_text(root, "proc/stat")?;
    let all = text.lines().next()?;
    all.split_ascii_whitespace().skip(1).any(|ticks| ticks != "0").then_some(text)
}

/// Seconds since boot that the hypervisor took from `cpus` for others, in steps of 10 ms for each CPU; `None` when the kernel shows none of
/// these CPUs.
pub fn stolen_seconds(root: &Path, cpus: &IdSet) -> Option<f64> {
    let stat = stat(root)?;
    Some(cpu_time(&stat, cpus)?.steal as f64 / user_hz())
}

/// The steps of [`busy_seconds`]: `USER_HZ` is 100 on every architecture that this program runs on.
pub const BUSY_STEP_S: f64 = 0.01;

/// Seconds since boot that each of `cpus` was busy, in steps of 10 ms. CPUs that the kernel does not show are left out.
pub fn busy_seconds(root: &Path, cpus: &IdSet) -> BTreeMap<u32, f64> {
    let stat = stat(root).unwrap_or_default();
    let hz = user_hz();
    cpu_times(stat.lines(), cpus).map(|(cpu, time)| (cpu, time.busy as f64 / hz)).collect()
}

impl Counters {
    fn read(root: &Path, cpus: &IdSet) -> Self {
        let text = |path: &str| read_text(&root.join(path)).ok();
        let stat = stat(root).and_then(|t| cpu_time(&t, cpus));
        let own_s = own_cpu_seconds();
        let events = text("proc/vmstat").map(|t| vmstat(&t)).unwrap_or_default();
        Self {
            stat,
            own_s,
            counts: Counts {
                cpu_pressure: text("proc/pressure/cpu").and_then(|t| pressure(&t)),
                memory_pressure: text("proc/pressure/memory").and_then(|t| pressure(&t)),
                memory_errors: memory_errors(root).map(|(corrected, uncorrected)| corrected + uncorrected),
                ..events
            },
        }
    }

    /// Adds the differences between two other moments, apart from memory errors.
    fn add(&mut self, from: &Self, to: &Self) {
        self.stat = match (self.stat, from.stat, to.stat) {
            (Some(at), Some(from), Some(to)) if at.cpus == from.cpus && at.cpus == to.cpus => Some(CpuTime {
                cpus: at.cpus,
                busy: at.busy + to.busy.saturating_sub(from.busy),
                steal: at.steal + to.steal.saturating_sub(from.steal),
            }),
            _ => None,
        };
        self.own_s = self.own_s.zip(from.own_s).zip(to.own_s).map(|((at, from), to)| at + (to - from));
        let memory_errors = self.counts.memory_errors;
        self.counts = self.counts.combine(to.counts.combine(from.counts, u64::saturating_sub), |at, more| at + more);
        self.counts.memory_errors = memory_errors;
    }

    /// The differences from `before` to now, as shares of `elapsed`, which is the sum of `intervals`.
    fn since(&self, before: &Self, elapsed: Duration, user_hz: f64, intervals: u32) -> Noise {
        let seconds = elapsed.as_secs_f64();
        let long_enough = elapsed >= MIN_TIME;
        let (mut steal, mut others) = (None, None);
        if let (Some(now), Some(then)) = (self.stat, before.stat)
            && long_enough
            && now.cpus == then.cpus
        {
            // The count of each CPU is rounded down to whole ticks in each interval. The error of a sum of n differences is about 0.4 sqrt(n)
            // ticks. Here sqrt(n) ticks are subtracted, so that rounding never looks like noise.
            let rounding = (now.cpus as f64 * f64::from(intervals)).sqrt();
            let all = seconds * user_hz * now.cpus as f64;
            let ticks = |now: u64, then: u64| (now.saturating_sub(then) as f64 - rounding).max(0.0);
            steal = Some((ticks(now.steal, then.steal) / all).min(1.0));
            others = self.own_s.zip(before.own_s).map(|(now_s, then_s)| {
                let own = (now_s - then_s) * user_hz;
                ((ticks(now.busy, then.busy) - own) / all).clamp(0.0, 1.0)
            });
        }
        let counts = self.counts.combine(before.counts, u64::saturating_sub);
        let share = |us: u64| (us as f64 / 1e6 / seconds).min(1.0);
        Noise {
            steal,
            others,
            pages_migrated: counts.migrated,
            numa_hint_faults: counts.hint_faults,
            thp_collapsed: counts.collapsed,
            cpu_pressure: counts.cpu_pressure.filter(|_| seconds > 0.0).map(share),
            memory_pressure: counts.memory_pressure.filter(|_| seconds > 0.0).map(share),
            memory_errors: counts.memory_errors,
            ..Noise::default()
        }
    }
}

/// How often the kernel took the calling thread off its CPU while it could still run; `None` when the kernel does not show it.
pub fn thread_involuntary_switches() -> Option<u64> {
    usage(libc::RUSAGE_THREAD).and_then(|u| u64::try_from(u.ru_nivcsw).ok())
}

/// Nanoseconds during which the calling thread was ready but did not run, from the second field of `/proc/thread-self/schedstat`; `None` on
/// kernels without `CONFIG_SCHED_INFO`.
pub fn thread_waited_ns() -> Option<u64> {
    read_text(Path::new("/proc/thread-self/schedstat")).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Nanoseconds that the calling thread ran. Reading them takes some 300 ns.
pub fn thread_cpu_ns() -> Option<u64> {
    Some(gettime_ns(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// The time that all threads of this process ran, in user and kernel mode.
fn own_cpu_seconds() -> Option<f64> {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    usage(libc::RUSAGE_SELF).map(|u| seconds(u.ru_utime) + seconds(u.ru_stime))
}

fn usage(who: i32) -> Option<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes one `rusage`, and `usage` has room for one. All zeros is a valid `rusage` as well.
    unsafe { (libc::getrusage(who, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}

/// Ticks per second in `/proc/stat`.
pub(crate) fn user_hz() -> f64 {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if hz > 0 { hz as f64 } else { 100.0 }
}

/// The time of `cpus` from the text of `/proc/stat`; `None` when it has none of them.
fn cpu_time(stat: &str, cpus: &IdSet) -> Option<CpuTime> {
    cpu_times(stat.lines(), cpus).map(|(_, time)| time).reduce(|sum, more| CpuTime {
        cpus: sum.cpus + more.cpus,
        busy: sum.busy + more.busy,
        steal: sum.steal + more.steal,
    })
}

/// The time of each of `cpus` from the lines of `/proc/stat`. They are gone through once: a machine of a thousand CPUs has as many of them, and
/// is to be quiet.
fn cpu_times<'a>(lines: impl Iterator<Item = &'a str>, cpus: &IdSet) -> impl Iterator<Item = (u32, CpuTime)> {
    lines.take_while(|line| line.starts_with("cpu")).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok().filter(|cpu| cpus.contains(*cpu))?;
        // user nice system idle iowait irq softirq steal (proc_stat(5)).
        let mut values = [0_u64; 8];
        for value in &mut values {
            *value = words.next()?.parse().ok()?;
        }
        let [user, nice, system, _idle, _iowait, irq, softirq, steal] = values;
        Some((cpu, CpuTime { cpus: 1, busy: user + nice + system + irq + softirq, steal }))
    })
}

/// The events that matter here, from the text of `/proc/vmstat`.
fn vmstat(text: &str) -> Counts {
    let mut events = Counts::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let slot = match name {
            // The kernel counts promotions to a faster tier as NUMA balancing's migrations, but not demotions to a slower tier.
            "numa_pages_migrated" => &mut events.migrated,
            _ if name.starts_with("pgdemote_") => &mut events.migrated,
            "numa_hint_faults" => &mut events.hint_faults,
            "thp_collapse_alloc" => &mut events.collapsed,
            _ => continue,
        };
        if let Ok(count) = value.trim().parse::<u64>() {
            *slot = Some(slot.unwrap_or(0) + count);
        }
    }
    events
}

/// Microseconds during which some task waited, from the text of a file in `/proc/pressure`.
pub(crate) fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find(|l| l.starts_with("some "))?;
    some.split_ascii_whitespace().find_map(|w| w.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const STAT: &str = "cpu  400 40 160 4000 0 0 0 8 0 0\n\
                        cpu0 100 10 40 1000 5 1 2 3 50 0\n\
                        cpu2 200 20 80 2000 5 3 4 5 0 0\n\
                        intr 123 4 5\nctxt 99\n";

    #[test]
    fn a_stat_without_any_time_says_nothing() {
        let tree = crate::tests::fixture::Fixture::new().file("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n");
        assert_eq!((stat(tree.root()), stolen_seconds(tree.root(), &IdSet::one(0))), (None, None));
        let tree = tree.file("proc/stat", STAT);
        assert!(stolen_seconds(tree.root(), &IdSet::one(0)).is_some());
    }

    #[test]
    fn stat_of_some_cpus_with_holes() {
        let both = cpu_time(STAT, &IdSet::from_iter([0, 1, 2])).unwrap();
        assert_eq!(both, CpuTime { cpus: 2, busy: 153 + 307, steal: 8 });
        assert_eq!(cpu_time(STAT, &IdSet::one(2)).unwrap().steal, 5);
        assert_eq!(cpu_time(STAT, &IdSet::one(7)), None);
        assert_eq!(cpu_time("", &IdSet::one(0)), None);
        assert_eq!(cpu_time("cpu0 1 2 x\n", &IdSet::one(0)), None);
    }

    /// By the time of this thread alone, and by the ratio of two: a look that went through all lines again for each CPU took a thousand times.
    #[test]
    fn a_look_at_a_thousand_cpus_takes_little_more_than_a_look_at_one() {
        const CPUS: u32 = 1024;
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        fs::create_dir_all(root.join("proc")).unwrap();
        let lines: String = (0..CPUS).map(|cpu| format!("cpu{cpu} {} 0 0 999999999 0 0 0 0 0 0\n", 100 * cpu)).collect();
        fs::write(root.join("proc/stat"), format!("cpu  1 0 0 1 0 0 0 0 0 0\n{lines}intr 5\n")).unwrap();
        let (one, all) = (IdSet::one(0), IdSet::from_iter(0..CPUS));
        let took = |cpus: &IdSet| {
            let once = |_| {
                let before = thread_cpu_ns().unwrap();
                std::hint::black_box(busy_seconds(root, cpus));
                thread_cpu_ns().unwrap() - before
            };
            (0..7).map(once).min().unwrap()
        };
        let (one_ns, all_ns) = (took(&one), took(&all));
        let busy = busy_seconds(root, &all);
        assert_eq!((busy.len(), busy[&7], busy[&1023]), (1024, 700.0 / user_hz(), 102_300.0 / user_hz()));
        assert!(all_ns < 50 * one_ns, "{all_ns} ns for {CPUS} CPUs, {one_ns} ns for one");
    }

    #[test]
    fn vmstat_events() {
        let events = vmstat(
            "nr_free_pages 5\nnuma_hint_faults 7\nnuma_pages_migrated 11\npgdemote_kswapd 2\npgdemote_direct 1\nthp_collapse_alloc 3\nthp_collapse_alloc_failed 9\n",
        );
        assert_eq!(events, Counts { migrated: Some(14), hint_faults: Some(7), collapsed: Some(3), ..Counts::default() });
        assert_eq!(vmstat("pgmigrate_success 4\n"), Counts::default());
    }

    #[test]
    fn pressure_of_some() {
        assert_eq!(pressure("some avg10=0.36 avg60=0.21 avg300=0.23 total=6520410\nfull avg10=0.00 total=1\n"), Some(6_520_410));
        assert_eq!(pressure("full avg10=0.00 total=1\n"), None);
        assert_eq!(pressure(""), None);
    }

    fn at(busy: u64, steal: u64, own_s: f64) -> Counters {
        Counters { stat: Some(CpuTime { cpus: 4, busy, steal }), own_s: Some(own_s), ..Counters::default() }
    }

    #[test]
    fn shares_of_cpu_time() {
        let second = Duration::from_secs(1);
        // 400 ticks in total. Two are the rounding error.
        let noise = at(1300, 42, 11.0).since(&at(1000, 0, 10.0), second, 100.0, 1);
        assert_eq!(noise.steal, Some(0.1));
        assert!((noise.others.unwrap() - (298.0 - 100.0) / 400.0).abs() < 1e-9, "{noise:?}");
        let alone = at(1400, 2, 14.0).since(&at(1000, 0, 10.0), second, 100.0, 1);
        assert_eq!((alone.steal, alone.others), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn too_short_to_tell_and_absent_counters_are_none() {
        let short = at(1300, 42, 11.0).since(&at(1000, 0, 10.0), Duration::from_millis(199), 100.0, 1);
        assert_eq!((short.steal, short.others), (None, None));
        let none = Counters::default().since(&Counters::default(), Duration::from_secs(1), 100.0, 1);
        assert_eq!(none, Noise::default());
    }

    #[test]
    fn events_are_differences() {
        let counters = |n| Counters {
            counts: Counts {
                migrated: Some(n),
                hint_faults: Some(2 * n),
                cpu_pressure: Some(n * 1000),
                memory_errors: Some(3 * n),
                ..Counts::default()
            },
            ..Counters::default()
        };
        let noise = counters(110).since(&counters(10), Duration::from_millis(500), 100.0, 1);
        assert_eq!((noise.pages_migrated, noise.numa_hint_faults, noise.thp_collapsed), (Some(100), Some(200), None));
        assert_eq!((noise.cpu_pressure, noise.memory_pressure, noise.memory_errors), (Some(0.2), None, Some(300)));
    }

    #[test]
    fn a_tree_with_memory_controllers() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        for (mc, ce, ue) in [("mc0", "3", "1"), ("mc1", "5", "0")] {
            let folder = root.join("sys/devices/system/edac/mc").join(mc);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("ce_count"), format!("{ce}\n")).unwrap();
            fs::write(folder.join("ue_count"), format!("{ue}\n")).unwrap();
        }
        fs::create_dir_all(root.join("sys/devices/system/edac/mc/power")).unwrap();
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("proc/stat"), STAT).unwrap();
        let read = Counters::read(root, &IdSet::one(0));
        assert_eq!(read.counts, Counts { memory_errors: Some(9), ..Counts::default() });
        assert_eq!(read.stat.unwrap().busy, 153);
    }

    #[test]
    fn what_is_set_aside_does_not_count() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        let dimm = root.join("sys/devices/system/edac/mc/mc0/dimm1");
        fs::create_dir_all(&dimm).unwrap();
        fs::write(dimm.join("dimm_label"), "A2\n").unwrap();
        let (controller, vmstat) = (root.join("sys/devices/system/edac/mc/mc0"), root.join("proc/vmstat"));
        fs::create_dir_all(&controller).unwrap();
        fs::create_dir_all(root.join("proc")).unwrap();
        let show = |n: u64| {
            fs::write(root.join("proc/stat"), format!("cpu0 {} 0 0 0 0 0 0 {} 0 0\n", 100 * n, 10 * n)).unwrap();
            fs::write(controller.join("ce_count"), format!("{n}\n")).unwrap();
            fs::write(dimm.join("dimm_ce_count"), format!("{n}\n")).unwrap();
            fs::write(&vmstat, format!("numa_hint_faults {}\n", 2 * n)).unwrap();
        };
        let working = || {
            let (start, own_s) = (Instant::now(), own_cpu_seconds().unwrap());
            while start.elapsed() < Duration::from_millis(60) || own_cpu_seconds().unwrap() < own_s + 0.02 {
                std::hint::spin_loop();
            }
        };
        show(10);
        let mut probe = NoiseProbe::start(root, &IdSet::one(0));
        let (started, own_s) = (probe.started, probe.counters.own_s.unwrap());
        show(11);
        probe.pause();
        show(16);
        working();
        probe.resume();
        assert_eq!(probe.counters.stat, Some(CpuTime { cpus: 1, busy: 1500, steal: 150 }), "five of six are set aside");
        assert!(probe.counters.own_s.unwrap() > own_s + 0.01 && probe.started >= started + Duration::from_millis(60));
        show(18);
        let noise = probe.finish(None);
        // Memory errors count whenever they come: of the controllers as many as of their DIMMs.
        assert_eq!((noise.memory_errors, noise.numa_hint_faults, noise.pages_migrated), (Some(8), Some(6), None));
        assert_eq!(noise.memory_errors_by_dimm, [DimmErrors { dimm: "A2".into(), corrected: 8, uncorrected: 0 }]);
    }

    #[test]
    fn our_work_elsewhere_would_hide_that_of_others() {
        // Four CPUs do what is ours for a second; then 3 s of ours are on others; in the last second a quarter of the four is not ours.
        let (start, before, after, end) = (at(0, 0, 0.0), at(400, 0, 4.0), at(400, 0, 7.0), at(800, 0, 10.0));
        let second = Duration::from_secs(1);
        assert_eq!(end.since(&start, 3 * second, 100.0, 1).others, Some(0.0), "hidden");
        let mut moved = start;
        moved.add(&before, &after);
        let seen = end.since(&moved, 2 * second, 100.0, 2).others.unwrap();
        // Less the error of cutting four CPUs' counts in two intervals.
        assert!((seen - (100.0 - 8f64.sqrt()) / 800.0).abs() < 1e-9, "{seen}");
    }

    #[test]
    fn this_machine_tells_of_its_own_load() {
        let probe = NoiseProbe::start(Path::new("/"), &IdSet::one(0));
        // A busy machine may not let this thread run in that time.
        let (start, own_ns) = (Instant::now(), thread_cpu_ns().unwrap());
        while start.elapsed() < Duration::from_millis(250) || thread_cpu_ns().unwrap() < own_ns + 100_000_000 {
            std::hint::spin_loop();
        }
        let noise = probe.finish(thread_involuntary_switches());
        assert!(noise.involuntary_switches.is_some());
        let others = noise.others.unwrap();
        assert!((0.0..=1.0).contains(&others), "{others}");
        assert!(own_cpu_seconds().unwrap() > 0.05);
        assert!(noise.steal.is_some_and(|s| (0.0..=1.0).contains(&s)));
    }
}
