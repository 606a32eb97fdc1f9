//! The two loops of `memgauge stream` and `memgauge chase`. They run in the calling thread, on whichever CPU it may use unless one is named, so
//! `perf stat`, `taskset` and `numactl` apply to what is measured.

use std::sync::Arc;
use std::time::Duration;

use memgauge_kernels::{self as kernels, Kernel, LINE, MAX_STREAMS, Walk};
use memgauge_model::counters::WorkUnit;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, Experiment, MemoryPlace, Metric};
use memgauge_model::microbench::{LoopKind, LoopProof, LoopSpec};
use memgauge_model::note::Note;
use memgauge_model::plan::BufferPlan;
use memgauge_model::protocol::{MAX_UNSEEN, MIN_UNDISTURBED};
use memgauge_model::result::{Evidence, Measurement, Noise};
use memgauge_model::stats;
use memgauge_model::traffic::{LineUse, Mix};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Problem, Verb};
use memgauge_os::clock::Clock;
use memgauge_os::memory::{Buffer, MemoryError, MemoryErrorKind};
use memgauge_os::{cpu, noise};

use crate::burst::chase::{self, ChainSpec, Chase};
use crate::burst::counters::{ThreadCounters, certain};
use crate::burst::exact::ExactHops;
use crate::burst::workers::{Finished, run_observed};
use crate::context::RunContext;
use crate::cutoff::Cutoff;
use crate::error::ChainError;
use crate::measured::{self, Subject};
use crate::neighbours::{NeighbourCpus, NeighbourWatch};

/// A stream reads words of this size; less cannot be read.
const MIN_STREAM: Bytes = Bytes(8);

/// Why a loop could not run.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The memory could not be allocated as requested.
    #[error("{0}")]
    Memory(Problem),
    /// It was interrupted before a pass was complete.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The CPU is not there, the order does not fit the buffer, or the size is too small.
    #[error("{0}")]
    Request(Problem),
}

impl From<MemoryError> for LoopError {
    fn from(error: MemoryError) -> Self {
        match error.kind {
            MemoryErrorKind::Size => Self::Request(error.into()),
            MemoryErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Memory(error.into()),
        }
    }
}

impl From<ChainError> for LoopError {
    fn from(error: ChainError) -> Self {
        if let ChainError::Interrupted = error { Self::Interrupted } else { Self::Request(error.to_string().into()) }
    }
}

/// Runs a loop in the calling thread.
///
/// Pins the thread and binds the memory only if `spec` names a CPU or a node. Notes say if the buffer is smaller than usual, because less memory
/// may be taken, and which of the requested hardware events could not be counted. If the run is stopped, or the memory has an error, the passes
/// until then are the result; a note names the error.
///
/// # Errors
/// When it was stopped before a pass was complete, the CPU may not be used, the memory cannot be allocated, or the order does not fit the buffer.
pub fn run_loop(spec: &LoopSpec, context: &RunContext<'_>) -> Result<(Measurement, Vec<Note>), LoopError> {
    let (bytes, smaller) = memgauge_planner::loop_size(spec, context.machine).map_err(|e| LoopError::Memory(e.problem().clone()))?;
    if let Some(cpu) = spec.cpu {
        cpu::pin_to(cpu).map_err(|e| {
            LoopError::Request(Problem::new(
                format!("cannot run on CPU {cpu}: {}", cpu::why_not_pinned(&e)),
                words!["name one of those that '", Verb::Info, "' lists as allowed"],
            ))
        })?;
    }
    if spec.kind == LoopKind::Stream && bytes < MIN_STREAM {
        return Err(LoopError::Request(Problem::new(
            format!("a stream of {bytes} is less than a word of {MIN_STREAM}"),
            "give a larger size",
        )));
    }
    let here = spec.cpu.or_else(|| cpu::current_cpu().ok()).unwrap_or(0);
    // A thread that no CPU was named for may run on any, so its own CPU is one of those that others may use as well.
    let (measured, own) = (IdSet::one(here), spec.cpu.map_or_else(IdSet::new, IdSet::one));
    let nodes = spec.node.map_or_else(IdSet::new, IdSet::one);
    let neighbours = NeighbourCpus::new(&context.machine.topology, &measured, &own, &nodes);
    let neighbours = NeighbourWatch::start_measuring(&context.root, &neighbours, spec.cpu.is_some());
    let buffer = Arc::new(memory(spec, bytes, context)?);
    let mut counters = spec.counters.then(|| ThreadCounters::open(&context.root, context.machine, here));
    let Finished { value, scheduler } = run_observed(here, || match spec.kind {
        LoopKind::Stream => stream(spec, bytes, context, &buffer, &mut counters),
        LoopKind::Chase { .. } => chase(spec, bytes, context, &buffer, &mut counters),
    });
    let damaged = buffer.fault().map(|fault| NotMeasured::MemoryFailed { cpu: here, fault });
    let (samples, proof, mut evidence) = match value {
        // It came before a pass was complete.
        Err(LoopError::Interrupted) if damaged.is_some() => Default::default(),
        value => value?,
    };
    // A loop over a small cache is over before anything shows: what neighbours do right after it stands for what they did.
    memgauge_os::process::sleep(neighbours.too_short_by());
    let neighbours = neighbours.finish(&context.root);
    let (involuntary_switches, waited) = (scheduler.switches, scheduler.waited_share());
    evidence.noise = Noise { involuntary_switches, waited, neighbours, ..evidence.noise };
    evidence.threads = 1;
    evidence.allocations = 1;
    evidence.buffer = bytes;
    evidence.pages = buffer.pages().clone();
    evidence.placement = buffer.placement().clone();
    evidence.proof = (!samples.is_empty()).then_some(proof);
    let estimate = match &damaged {
        Some(error) if samples.is_empty() => Estimate { not_measured: Some(error.clone()), ..Estimate::default() },
        // As many passes as were asked for, so no interval is too wide.
        _ => stats::estimate(&[samples], f64::INFINITY),
    };
    let (experiment, metric, work) = match spec.kind {
        LoopKind::Stream => (Experiment::Stream, Metric::Bandwidth, WorkUnit::Line),
        LoopKind::Chase { .. } => (Experiment::Chase, Metric::Latency, WorkUnit::Hop),
    };
    let certain = certain(context.machine, here, bytes);
    let (counters, note) = counters.map(|c| c.finish(&context.clock, work, certain)).unzip();
    let at = coordinates(spec, bytes);
    let subject = Subject { topology: &context.machine.topology, experiment, at: &at };
    let result = subject.judge(at.clone(), metric, estimate, evidence);
    let damaged = damaged.map(|error| measured::failure(&wording::coordinates(&result.at), &error));
    let notes = smaller.into_iter().chain(note.flatten()).chain(damaged).chain(measured::taken_away(&result)).collect();
    Ok((Measurement { counters: counters.map(Box::new), ..result }, notes))
}

/// Where a loop's result stands.
fn coordinates(spec: &LoopSpec, bytes: Bytes) -> Coordinates {
    Coordinates {
        cpu: spec.cpu,
        memory: spec.node.map(MemoryPlace::Node),
        working_set: Some(bytes),
        order: if let LoopKind::Chase { order, .. } = spec.kind { Some(order) } else { None },
        mix: (spec.kind == LoopKind::Stream).then_some(Mix::AllReads),
        ..Default::default()
    }
}

/// The buffer: on the node named, or where the process's policy puts what this thread touches.
fn memory(spec: &LoopSpec, bytes: Bytes, context: &RunContext<'_>) -> Result<Buffer, MemoryError> {
    let plan = BufferPlan::plain(bytes, spec.node.or(context.machine.allowed.nodes.first()).unwrap_or(0), spec.pages);
    let cutoff = context.cutoff(None);
    let allocate = if spec.node.is_some() { Buffer::allocate_unless } else { Buffer::allocate_unbound };
    allocate(&plan, &context.root, &|| cutoff.passed())
}

fn stream(
    spec: &LoopSpec,
    bytes: Bytes,
    context: &RunContext<'_>,
    buffer: &Buffer,
    counted: &mut Option<ThreadCounters>,
) -> Result<(Vec<f64>, LoopProof, Evidence), LoopError> {
    let cutoff = context.cutoff(None);
    let (clock, bytes) = (context.clock, bytes.0 as usize / 8 * 8);
    let words = buffer.as_ptr().cast::<u64>();
    // Writes the contents, with these bits inverted. Returns the exclusive or of all words.
    let fill = |inverted: u64| {
        let mut sum = 0;
        for index in 0..bytes / 8 {
            if index.is_multiple_of(PART / 8) && cutoff.passed() {
                return None;
            }
            let word = memgauge_model::microbench::word(spec.seed, index as u64) ^ inverted;
            sum ^= word;
            // SAFETY: within the buffer, whose beginning is aligned to a page; no other thread uses it.
            unsafe { words.add(index).write(word) };
        }
        Some(sum)
    };
    let expected = fill(0).ok_or(LoopError::Interrupted)?;
    let widest = kernels::available().filter(|k| k.form.line == LineUse::Checked).max_by_key(|k| k.width);
    // A buffer of less than a step has no use for it.
    let widest = widest.filter(|k| k.streams[0].advance() <= bytes);
    let laps = memgauge_model::microbench::stream_laps(Bytes(bytes as u64));
    let mut passes = Vec::new();
    let (mut sum, mut mismatches) = (0, 0);
    // The pass before the first warms up: caches, TLBs, the core's clock.
    for pass in 0..=spec.passes {
        if let Some(counted) = counted.as_mut().filter(|_| pass == 1) {
            counted.start(&clock);
        }
        let (ran, from) = (noise::thread_cpu_ns(), clock.stamp());
        let Some(read) = read(widest, buffer, bytes, laps, &cutoff) else { break };
        // Zeros were read where the memory has an error.
        if buffer.fault().is_some() {
            break;
        }
        sum = read;
        let ns = clock.ns(clock.stamp().saturating_sub(from).max(1));
        let ran = noise::thread_cpu_ns().zip(ran).map_or(ns, |(now, then)| now.saturating_sub(then) as f64);
        mismatches += u32::from(sum != expected);
        if pass > 0 {
            passes.push(((bytes as u64 * laps) as f64 / ns, 1.0 - ran / ns));
        }
    }
    if passes.is_empty() {
        return Err(LoopError::Interrupted);
    }
    let made = passes.len() as u32;
    if let Some(counted) = counted {
        counted.stop(&clock, bytes as u64 * laps * u64::from(made) / u64::from(LINE));
    }
    // A bit that is stuck at its own value shows in the complement only. Not timed: writing between passes would change what is in the caches.
    if buffer.fault().is_none()
        && let Some(complement) = fill(u64::MAX)
        && let Some(read) = read(widest, buffer, bytes, 1, &cutoff)
        && buffer.fault().is_none()
    {
        mismatches += u32::from(read != complement);
    }
    let proof = LoopProof { passes: made, laps, checksum: Some(format!("{sum:016x}")), mismatches, ..LoopProof::default() };
    let kernel = widest.map_or("scalar", |k| k.name).to_owned();
    let (samples, left_out) = on_cpu(&passes);
    Ok((samples, proof, Evidence { kernel, noise: Noise { left_out, ..Noise::default() }, ..Evidence::default() }))
}

/// The samples of the passes during which the thread was on its CPU, and the share of the passes that this leaves out. If too few are left:
/// all samples, and no share. A pass is its sample and the share of its time that the thread was away.
fn on_cpu(passes: &[(f64, f64)]) -> (Vec<f64>, Option<f64>) {
    let clean: Vec<f64> = passes.iter().filter(|(_, away)| *away <= MAX_UNSEEN).map(|(sample, _)| *sample).collect();
    if clean.len() < MIN_UNDISTURBED.min(passes.len()) {
        return (passes.iter().map(|(sample, _)| *sample).collect(), None);
    }
    let left_out = 1.0 - clean.len() as f64 / passes.len().max(1) as f64;
    (clean, Some(left_out))
}

/// Bytes that a loop goes over between two looks whether it is to end, which take a nanosecond: some milliseconds.
const PART: usize = 64 << 20;

/// Reads `bytes`, which are whole words, `laps` times; the exclusive or of all words read, or `None` where `cutoff` passed meanwhile.
fn read(kernel: Option<&'static Kernel>, buffer: &Buffer, bytes: usize, laps: u64, cutoff: &Cutoff) -> Option<u64> {
    let step = kernel.map_or(usize::MAX, |k| k.streams[0].advance());
    let (steps, start) = (bytes / step, buffer.as_ptr());
    let done = steps * step;
    let mut walk = Walk::new([std::ptr::null_mut(); MAX_STREAMS]);
    let mut rest = 0;
    for _ in 0..laps {
        if let Some(kernel) = kernel.filter(|_| steps > 0) {
            let most = (PART / step).max(1);
            for from in (0..steps).step_by(most) {
                if cutoff.passed() {
                    return None;
                }
                walk.streams[0] = start.wrapping_add(from * step);
                // SAFETY: these whole steps are inside the buffer, which was written and which nobody writes to now; the kernel has one stream,
                // only reads it, and is one of those available on this CPU.
                unsafe { kernel.walk(&mut walk, most.min(steps - from), None) };
            }
        }
        // Less than a step, word by word: looking for a kernel anew would take longer than reading it.
        for at in (done..bytes).step_by(8) {
            // SAFETY: an aligned word of the rest of the buffer, which nobody writes to now: the buffer begins at a page, and a step is whole
            // lines. Volatile, because every lap must read it.
            rest ^= unsafe { start.add(at).cast::<u64>().read_volatile() };
        }
    }
    Some(walk.sum.xor_of_words() ^ rest)
}

/// Nanoseconds per hop of a pass, and 1 if they contain time off the CPU. If enough of the pass is left without such time, they contain none.
fn chased(took: &ExactHops, clock: &Clock) -> Option<(f64, f64)> {
    Some((took.ticks_per_hop()? * clock.ns(1), if took.clean() { 0.0 } else { 1.0 }))
}

/// Nanoseconds per hop of each pass.
fn chase(
    spec: &LoopSpec,
    bytes: Bytes,
    context: &RunContext<'_>,
    buffer: &Arc<Buffer>,
    counted: &mut Option<ThreadCounters>,
) -> Result<(Vec<f64>, LoopProof, Evidence), LoopError> {
    let LoopKind::Chase { order, stride, window } = spec.kind else { return Err(LoopError::Request("this is not a chase".into())) };
    let line = context.line();
    let chain = ChainSpec { bytes, window, stride, line, order, seed: spec.seed, even: false, offset_in_line: 0 };
    let layout = chase::layout(buffer, &chain)?;
    let cutoff = context.cutoff(None);
    let ring = chase::write(buffer, &chain, &IdSet::new(), &|| cutoff.passed())?;
    let clock = context.clock;
    let laps = memgauge_model::microbench::chase_laps(layout.slots() as u64);
    let hops = laps * layout.slots() as u64 + 1;
    // Whole laps that warm up, so that the chase is back at its start.
    let (_, mut chase) = Chase::new(ring).exactly(laps * layout.slots() as u64, Duration::ZERO, &clock, &cutoff);
    let (mut passes, mut all) = (Vec::new(), ExactHops::default());
    if let Some(counted) = counted {
        counted.start(&clock);
    }
    for _ in 0..spec.passes {
        let (took, moved_on) = chase.clone().exactly(hops, Duration::ZERO, &clock, &cutoff);
        // Only whole passes count.
        if took.hops() < hops || buffer.fault().is_some() {
            break;
        }
        passes.extend(chased(&took, &clock));
        all.add(&took);
        chase = moved_on;
        // A chase that followed a wrong pointer has left this memory.
        if chase.check(0).is_err() {
            break;
        }
    }
    if passes.is_empty() {
        return Err(LoopError::Interrupted);
    }
    let made = passes.len() as u32;
    if let Some(counted) = counted {
        counted.stop(&clock, hops * u64::from(made));
    }
    // A chase that met a wrong pointer may be anywhere. Of memory that has an error it is the last pass before.
    let sound = !matches!(chase.check(0), Err(NotMeasured::Corrupted { .. }));
    let offset = sound.then(|| chase.position() as usize - buffer.as_ptr() as usize);
    let proof = LoopProof {
        passes: made,
        laps,
        hops: Some(hops),
        final_index: offset.map(|offset| offset as u64 / line.0),
        mismatches: u32::from(offset != Some(layout.after(u64::from(made)))),
        checksum: None,
    };
    let (samples, left_out) = on_cpu(&passes);
    let noise = Noise { left_out: left_out.map(|share| share.max(all.left_out())), stalled: all.stalled(), ..Noise::default() };
    let window = Some(Bytes(layout.window_bytes() as u64));
    Ok((samples, proof, Evidence { kernel: "chase".into(), window, stride: Some(stride), noise, ..Evidence::default() }))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    use memgauge_model::experiment::{ChaseOrder, PageRequest};

    use super::*;

    fn run(kind: LoopKind, bytes: Bytes, seed: u64) -> Measurement {
        let (measured, notes) = try_to_run(kind, bytes, seed).unwrap();
        // Either every event counted, or one note says what did not.
        let missing = measured.counters.as_ref().is_some_and(|c| c.reason.is_some() || !c.gaps().is_empty());
        assert_eq!(notes.len(), usize::from(missing), "{notes:?}");
        measured
    }

    fn try_to_run(kind: LoopKind, bytes: Bytes, seed: u64) -> Result<(Measurement, Vec<Note>), LoopError> {
        let machine = memgauge_os::topology::read_machine(Path::new("/")).unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let root = PathBuf::from("/");
        let context = RunContext::new(&machine, Clock::calibrate(&root), root, &stop);
        let spec = LoopSpec {
            kind,
            size: Some(bytes),
            cpu: None,
            node: None,
            pages: PageRequest::Base,
            passes: 7,
            seed,
            counters: seed == COUNTED,
        };
        let done = run_loop(&spec, &context)?;
        assert_eq!(done.0.counters.is_some(), spec.counters);
        Ok(done)
    }

    /// The seed of loops that are counted.
    const COUNTED: u64 = 9;

    #[test]
    fn passes_are_counted_where_there_are_counters_and_one_note_says_where_not() {
        let order = ChaseOrder::WindowLocal;
        for kind in [LoopKind::Stream, LoopKind::Chase { order, stride: Bytes(128), window: Bytes(1024) }] {
            let m = run(kind, Bytes(64 << 10), COUNTED);
            let counters = m.counters.unwrap();
            if counters.reason.is_none() {
                // The work is that of the timed passes, without the one that warms up.
                let proof = m.evidence.proof.unwrap();
                let each = proof.hops.unwrap_or((64 << 10) * proof.laps / 64);
                assert_eq!(counters.work.map(|w| w.count), Some(each * 7));
            } else {
                assert!(counters.events.is_empty() && counters.metrics.is_empty());
            }
        }
    }

    #[test]
    fn a_stream_reads_what_the_formula_says() {
        for bytes in [8, 64, 250, 256, 1000, 4096 + 8, (1 << 20) - 1] {
            let m = run(LoopKind::Stream, Bytes(bytes), 3);
            assert!(m.estimate.value.is_some_and(|gbs| gbs > 0.001), "{bytes} bytes: {:?}", m.estimate);
            let proof = m.evidence.proof.unwrap();
            assert_eq!(proof.checksum.unwrap(), format!("{:016x}", memgauge_model::microbench::checksum(3, bytes)), "{bytes} bytes");
            assert_eq!((proof.mismatches, proof.passes), (0, 7));
        }
        let m = run(LoopKind::Stream, Bytes(1 << 20), 3);
        // Passes during which another process ran do not count.
        assert!((3..=7).contains(&m.estimate.n) && m.estimate.value.unwrap() > 0.01, "{:?}", m.estimate);
    }

    #[test]
    fn passes_in_which_the_thread_was_away_do_not_count_while_others_are_left() {
        let (calm, away) = ((10.0, 0.0), (4.0, 0.6));
        assert_eq!(on_cpu(&[calm, away, calm, calm]), (vec![10.0; 3], Some(0.25)));
        assert_eq!(on_cpu(&[calm, away, away, calm]), (vec![10.0, 4.0, 4.0, 10.0], None));
    }

    #[test]
    fn interruptions_too_short_to_make_a_block_long_are_in_the_pass() {
        // 15 us away every 300 us: 5 % of the time, and no block of 20 us took twice as long as usual.
        let clock = Clock::calibrate(Path::new("/"));
        let interrupted = ExactHops::without_time_away(1_000_000, 10_000, Some(50_000), Vec::new(), 20_000);
        let calm = ExactHops::without_time_away(950_000, 10_000, Some(0), Vec::new(), 20_000);
        let passes: Vec<(f64, f64)> = [calm, interrupted, calm, calm].iter().filter_map(|took| chased(took, &clock)).collect();
        let (samples, left_out) = on_cpu(&passes);
        assert_eq!((samples, left_out), (vec![95.0 * clock.ns(1); 3], Some(0.25)));
        let always: Vec<(f64, f64)> = [interrupted; 7].iter().filter_map(|took| chased(took, &clock)).collect();
        assert_eq!(on_cpu(&always), (vec![100.0 * clock.ns(1); 7], None), "the time away is in the samples");
    }

    #[test]
    fn a_stream_without_a_word_is_refused() {
        for bytes in [1, 7] {
            let refused = try_to_run(LoopKind::Stream, Bytes(bytes), 3);
            assert!(matches!(&refused, Err(LoopError::Request(why)) if why.to_string().contains("larger size")), "{refused:?}");
        }
    }

    #[test]
    fn a_chase_ends_where_the_layout_says() {
        for order in [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential] {
            let kind = LoopKind::Chase { order, stride: Bytes(128), window: Bytes(1024) };
            let m = run(kind, Bytes(64 << 10), 5);
            let proof = m.evidence.proof.unwrap();
            assert_eq!(proof.mismatches, 0, "{order:?}");
            assert_eq!(proof.hops, Some((1 << 20) + 1));
            assert!(m.estimate.value.unwrap() > 0.1, "{:?}", m.estimate);
        }
    }
}
