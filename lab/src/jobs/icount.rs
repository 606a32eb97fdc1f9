//! Exact timing: an Arm machine that executes one instruction a nanosecond, so that every number has an expected value.
//!
//! Under `-icount shift=0` the guest's clock is the count of its instructions. What the loops take is then known from their text; what is
//! left over is the kernel's timer interrupt, 0.1 %.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use memgauge_core::plan::BufferPlan;
use memgauge_core::spec::PageRequest;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::{self as kernels, CHASE_UNROLL, MAX_STREAMS};
use memgauge_linux::clock::{self, Clock};
use memgauge_linux::memory::Buffer;
use memgauge_linux::noise;

use crate::contract::KERNEL_TESTS;
use crate::program::{measured, memgauge};
use crate::{Arch, Job, Machine, PLAIN, tests};

pub(crate) const JOB: Job = Job {
    name: "icount",
    about: "aarch64, one instruction a nanosecond: loops, clock, delay, statistics, counters exact",
    optional: false,
    machine: Machine {
        arch: Arch::Aarch64,
        // Pointer authentication costs the emulator more than everything else.
        qemu: &["-machine virt", "-cpu max,pauth=off", "-accel tcg,thread=single", "-icount shift=0,sleep=off", "-smp 2", "-m 512M"],
        ..PLAIN
    },
    tests: tests![
        clock_is_calibrated,
        core_frequency,
        chase_steps,
        delay_between_bursts,
        latency_twice,
        bandwidth_of_loads,
        software_counters,
    ],
};

/// What may be left over.
const TOLERANCE: f64 = 0.005;
/// `add` 64 times, `subs`, `b.ne`.
const ADDS_PER_NS: f64 = 64.0 / 66.0;
/// `ldr` 64 times, `subs`, `b.ne`.
const NS_PER_HOP: f64 = 66.0 / CHASE_UNROLL as f64;

fn close(what: &str, value: f64, expected: f64) -> Result<()> {
    ensure!((value / expected - 1.0).abs() <= TOLERANCE, "{what}: {value}, expected {expected}");
    Ok(())
}

fn clock_is_calibrated() -> Result<()> {
    let report = Clock::calibrate("/".as_ref()).report();
    ensure!(report.source == "cntvct", "{report:?}");
    let nominal = kernels::counter_frequency().context("no frequency in CNTFRQ_EL0")?;
    close("ticks a second", report.hz, nominal)?;
    ensure!(report.error_ppm < 100.0, "{report:?}");
    // By instructions, which no clock of the machine has a say in.
    let clock = Clock::calibrate("/".as_ref());
    let adds = 20_000_000;
    let start = clock.stamp();
    kernels::dependent_adds(adds);
    close("nanoseconds by the clock", clock.ns(clock.stamp() - start), adds as f64 / ADDS_PER_NS)
}

fn core_frequency() -> Result<()> {
    close("GHz by dependent additions", clock::core_ghz(&Clock::calibrate("/".as_ref())), ADDS_PER_NS)
}

/// Memory on node 0.
fn buffer(bytes: Bytes, pages: PageRequest) -> Result<Buffer> {
    let plan: BufferPlan = serde_json::from_value(serde_json::json!({
        "bytes": bytes, "node": 0, "pages": pages, "touch": IdSet::one(0), "derived": false,
    }))?;
    Ok(Buffer::allocate(&plan, "/".as_ref())?)
}

fn chase_steps() -> Result<()> {
    let buffer = buffer(Bytes::kib(64), PageRequest::Base)?;
    let (start, lines) = (buffer.as_ptr(), buffer.len() / 64);
    for line in 0..lines {
        // SAFETY: both lines lie in the buffer, which nothing else uses.
        unsafe { start.add(line * 64).cast::<*const u8>().write(start.add((line + 1) % lines * 64)) };
    }
    let clock = Clock::calibrate("/".as_ref());
    let hops = 10_000_000 / CHASE_UNROLL * CHASE_UNROLL;
    let time = |chase: unsafe fn(*const u8, usize) -> *const u8| {
        let before = clock.stamp();
        // SAFETY: the buffer holds a ring of pointers into itself.
        let end = unsafe { chase(start, hops) };
        (clock.ns(clock.stamp() - before) / hops as f64, end)
    };
    let expected_end = start.wrapping_add(hops % lines * 64).cast_const();
    let (ns, end) = time(kernels::chase);
    ensure!(end == expected_end, "the chase ends at {end:?}, not {expected_end:?}");
    close("nanoseconds a hop of the unrolled chase", ns, NS_PER_HOP)?;
    let (ns, end) = time(kernels::chase_exact);
    ensure!(end == expected_end, "the exact chase ends at {end:?}, not {expected_end:?}");
    close("nanoseconds a hop of the exact chase", ns, 3.0)
}

fn delay_between_bursts() -> Result<()> {
    let buffer = buffer(Bytes::mib(1), PageRequest::Base)?;
    let kernel = kernels::find("load-neon").context("no kernel load-neon")?;
    let steps = buffer.len() / kernel.streams[0].advance();
    let mut streams = [std::ptr::null_mut(); MAX_STREAMS];
    streams[0] = buffer.as_ptr();
    let clock = Clock::calibrate("/".as_ref());
    let ns = |delay| {
        let before = clock.stamp();
        // SAFETY: the kernel is NEON's, which every Arm has; the buffer holds `steps` steps of its one stream, which it only reads.
        unsafe { kernel.run_paced(&streams, steps, delay) };
        clock.ns(clock.stamp() - before)
    };
    let bursts = (steps * kernels::BURSTS_PER_STEP as usize) as f64;
    // `subs`, `b.ne`: an emulated core takes one nanosecond for each, where a real one does both in a cycle.
    for (short, long) in [(10, 1010), (1000, 3000)] {
        close(&format!("delays of {short} and {long}"), (ns(long) - ns(short)) / bursts / f64::from(long - short), 2.0)?;
    }
    Ok(())
}

/// Both orders have the expected value, an interval that is next to nothing, and the same value in another run.
fn latency_twice() -> Result<()> {
    let (first, second) = (latency()?, latency()?);
    ensure!(first.len() == 2, "two orders of the chase: {first:?}");
    for (a, b) in first.iter().zip(&second) {
        ensure!((a / b - 1.0).abs() < 0.001, "{first:?} and {second:?}");
    }
    Ok(())
}

fn latency() -> Result<Vec<f64>> {
    let report = memgauge("latency --size 1M --confidence 0.5% --budget 500ms --cpu 1").measure()?;
    let clock = report.environment.clock.as_ref().context("no clock")?;
    ensure!(clock.source == "cntvct", "{clock:?}");
    let mut values = Vec::new();
    for m in measured(&report)? {
        let e = &m.estimate;
        let value = e.value.context("no value")?;
        close(&format!("{:?}", m.at.order), value, NS_PER_HOP)?;
        let (low, high) = (e.ci95_low.context("no interval")?, e.ci95_high.context("no interval")?);
        ensure!(e.converged && low <= value && value <= high, "{e:?}");
        close("the interval's lower end", low, value)?;
        close("the interval's upper end", high, value)?;
        ensure!(e.modes.is_empty(), "several modes in a machine that has one: {e:?}");
        values.push(value);
    }
    Ok(values)
}

fn bandwidth_of_loads() -> Result<()> {
    let report = memgauge("bandwidth --cpu 1 --mix all-reads --size 1M --time 120ms").measure()?;
    let results = measured(&report)?;
    let [m] = results[..] else { anyhow::bail!("{} results", results.len()) };
    // A step of either: 32 loads of 32 bytes, `add`, `subs`, `b.ne`. The others have more.
    ensure!(["load-neon", "load-neon-ldnp"].contains(&m.evidence.kernel.as_str()), "kernel {}", m.evidence.kernel);
    let share = m.estimate.value.context("no value")? / (1024.0 / 35.0);
    // The clock is read every 20 µs at least, which takes some 100 instructions of 20,000; a real core does most of them beside the loads.
    ensure!((0.99..=1.0).contains(&share), "{share} of the bandwidth expected");
    Ok(())
}

/// A counter of the kernel itself for this thread, which no code of memgauge takes part in.
struct Counter(fs::File);

impl Counter {
    fn open(config: u64) -> Result<Self> {
        use std::os::fd::FromRawFd;
        /// `struct perf_event_attr` up to its first version's end (perf_event_open(2)), 64 bytes.
        #[repr(C)]
        #[derive(Default)]
        struct Attributes {
            kind: u32,
            size: u32,
            config: u64,
            rest: [u64; 6],
        }
        const SOFTWARE: u32 = 1;
        let attributes = Attributes { kind: SOFTWARE, size: 64, config, ..Default::default() };
        // SAFETY: attributes of the size that they state; this thread, any CPU, no group, no flags.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, 0) };
        ensure!(fd >= 0, "perf_event_open: {}", std::io::Error::last_os_error());
        // SAFETY: a descriptor that the kernel just made, owned by nobody else.
        Ok(Self(unsafe { fs::File::from_raw_fd(fd as i32) }))
    }

    fn read(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        std::io::Read::read_exact(&mut self.0, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

/// The kernel's own software counters agree with what memgauge says of itself.
fn software_counters() -> Result<()> {
    // perf_event_open(2): PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_CONTEXT_SWITCHES.
    let (mut task_clock, mut faults, mut switches) = (Counter::open(1)?, Counter::open(2)?, Counter::open(3)?);
    let clock = Clock::calibrate("/".as_ref());
    let (before, own_before) = (task_clock.read()?, noise::thread_involuntary_switches().context("no switches")?);
    let switches_before = switches.read()?;
    let start = clock.stamp();
    kernels::dependent_adds(20_000_000);
    let ns = clock.ns(clock.stamp() - start);
    close("nanoseconds by the clock and by the task's clock", ns, (task_clock.read()? - before) as f64)?;
    let own = noise::thread_involuntary_switches().context("no switches")? - own_before;
    let theirs = switches.read()? - switches_before;
    ensure!(own == theirs, "{own} involuntary switches by getrusage, {theirs} by the kernel's counter: nothing here waits");

    // The thread that touches is another one; its pages are faults of the process, and this thread has next to none.
    let before = faults.read()?;
    let pages = 256;
    let memory = vec![0u8; pages * 4096];
    for page in 0..pages {
        // SAFETY: one byte of the vector; a volatile read cannot be left out.
        std::hint::black_box(unsafe { memory.as_ptr().add(page * 4096).read_volatile() });
    }
    let seen = faults.read()? - before;
    ensure!((pages as u64..pages as u64 + 8).contains(&seen), "{seen} page faults for {pages} pages");
    Ok(())
}

/// Runs the kernels crate's own tests.
pub(crate) fn kernels_pass_their_tests() -> Result<()> {
    let mut programs = 0;
    for entry in fs::read_dir(KERNEL_TESTS)? {
        let path = entry?.path();
        let output = Command::new(&path).args(["--test-threads", "2"]).output()?;
        ensure!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stdout));
        programs += 1;
    }
    ensure!(programs > 0, "the image has no tests of kernels");
    Ok(())
}
