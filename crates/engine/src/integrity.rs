//! Whether memory returns what was written to it: marches over buffers that write computed words and compare what comes back.
//!
//! A march compares the content that the march before it wrote and, block by block, writes the next one in the same go. So the memory nearly
//! always holds content that will be compared. Writes go past the caches, so that comparisons read from memory and not from a cache.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use memgauge_kernels as kernels;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::integrity::{BLOCK_BYTES, BLOCK_WORDS, TestPattern, Words, steps};
use memgauge_model::result::{DimmErrors, EccCounts, Incomplete, Integrity, Mismatch};
use memgauge_model::units::Bytes;
use memgauge_os::memory::{Buffer, device_map};
use memgauge_os::{cpu, noise, process};

use crate::buffer_portions::Portions;
use crate::burst::workers::Job;
use crate::cutoff::{Cutoff, WORKER_TIMEOUT};
use crate::error::Result;
use crate::measured::Measured;
use crate::session::Session;

/// Bytes that a thread goes over before it is asked again whether the run must end: some 10 ms.
const PIECE: usize = 64 << 20;
/// A march at this rate is slower than any memory: a thread that takes longer is lost.
const SLOWEST_BYTES_S: u64 = 20 << 20;
/// Mismatches of a buffer that are listed one by one; a chip that fails gives millions.
const MAX_LISTED: usize = 20;
/// How long a word must keep what was written to it once more.
const RETENTION: Duration = Duration::from_millis(2);
/// Words that are compared at a time: a line of 64 bytes.
const LINE_WORDS: usize = 8;
/// How long a wait for the end of the hold time may delay the answer to a signal.
const NAP: Duration = Duration::from_millis(20);

/// One pass over a buffer in ascending or descending order that compares and writes: an element of a march test (van de Goor, "Using March Tests to
/// Test SRAMs", 1993).
pub(crate) struct March {
    buffer: Arc<Buffer>,
    /// The expected words, and the test pattern that they belong to.
    compare: Option<(Words, Option<TestPattern>)>,
    write: Option<Words>,
    descending: bool,
    /// Lines are dropped from the caches before they are compared: others have read them since they were written.
    drop_first: bool,
    portions: Portions,
    found: Mutex<Found>,
    /// Words that were written once more.
    rewritten: AtomicUsize,
}

/// Mismatches found in a buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    mismatches: u64,
    first: Vec<Mismatch>,
}

impl March {
    /// Compares with `compare`, then writes `write`, in ascending order, shared by `threads` threads.
    fn new(
        buffer: Arc<Buffer>,
        compare: Option<(Words, Option<TestPattern>)>,
        write: Option<Words>,
        threads: usize,
        cutoff: Cutoff,
    ) -> Self {
        let portions = Portions::new(buffer.len().next_multiple_of(BLOCK_BYTES), threads, BLOCK_BYTES, cutoff);
        Self {
            buffer,
            compare,
            write,
            descending: false,
            drop_first: false,
            portions,
            found: Mutex::default(),
            rewritten: AtomicUsize::new(0),
        }
    }

    /// Goes over portions until none is left or `left` bytes are done. Returns how many of the `left` bytes remain.
    fn run(&self, mut left: usize) -> usize {
        let mut own = Found::default();
        while left > 0
            && let Some(portion) = self.portions.take()
        {
            left = left.saturating_sub(portion.len());
            self.portion(portion, &mut own);
        }
        // A thread that panicked left what it had found.
        self.found.lock().unwrap_or_else(PoisonError::into_inner).add(own);
        left
    }

    fn portion(&self, portion: Range<usize>, found: &mut Found) {
        let all = self.portions.bytes();
        let portion = if self.descending { all - portion.end..all - portion.start } else { portion };
        let lines = portion.start..portion.end.min(self.buffer.len());
        if self.drop_first {
            self.drop_lines(lines);
        }
        kernels::with_wide_registers(PortionBlocks { march: self, blocks: portion.start / BLOCK_BYTES..portion.end / BLOCK_BYTES, found });
        kernels::fence();
    }

    /// Compares a block and writes the next content to it. `words` is room for a block.
    #[inline(always)]
    fn block(&self, block: usize, words: &mut [u64; BLOCK_WORDS], found: &mut Found) {
        let offset = block * BLOCK_BYTES;
        let bytes = (self.buffer.len() - offset).min(BLOCK_BYTES) / 8 * 8;
        if let Some((compare, pattern)) = &self.compare {
            let next = if self.descending { offset.wrapping_sub(BLOCK_BYTES) } else { offset + BLOCK_BYTES };
            compare.block(block as u64, words);
            self.compare_block(offset, next, &words[..bytes / 8], *pattern, found);
        }
        if let Some(write) = &self.write {
            write.block(block as u64, words);
            // SAFETY: `bytes` bytes from `offset` on, a multiple of a block, are inside the buffer, which begins with a page and lives as
            // long as `self`, in a portion that only this thread has.
            unsafe { kernels::write_past_caches(self.buffer.as_ptr().add(offset).cast(), &words[..bytes / 8]) };
        }
    }

    fn drop_lines(&self, lines: Range<usize>) {
        for offset in lines.step_by(kernels::LINE as usize) {
            // SAFETY: a line of the buffer.
            unsafe { kernels::flush(self.buffer.as_ptr().add(offset)) };
        }
        kernels::fence();
    }

    /// Compares the words at `offset` with what they must be, a line at a time. Each line is read once: what is reported is what the
    /// comparison saw. Those of the next block, at `next`, come meanwhile: hardware prefetchers begin anew with every page.
    #[inline(always)]
    fn compare_block(&self, offset: usize, next: usize, expected: &[u64], pattern: Option<TestPattern>, found: &mut Found) {
        let (lines, rest) = expected.as_chunks::<LINE_WORDS>();
        for (index, expected) in lines.iter().enumerate() {
            kernels::prefetch(self.buffer.as_ptr().wrapping_add(next).wrapping_add(index * size_of_val(expected)));
            let offset = offset + index * size_of_val(expected);
            // SAFETY: whole words inside the buffer, which lives as long as `self`, in a portion that only this thread has.
            let read = unsafe { self.buffer.as_ptr().add(offset).cast::<[u64; LINE_WORDS]>().read() };
            if read.iter().zip(expected).fold(0, |differing, (read, expected)| differing | (read ^ expected)) != 0 {
                self.compare_words(offset, &read, expected, pattern, found);
            }
        }
        for (index, expected) in rest.iter().enumerate() {
            let offset = offset + size_of_val(lines) + 8 * index;
            // SAFETY: as above.
            let read = unsafe { self.buffer.as_ptr().add(offset).cast::<u64>().read() };
            self.compare_words(offset, &[read], &[*expected], pattern, found);
        }
    }

    #[cold]
    fn compare_words(&self, offset: usize, read: &[u64], expected: &[u64], pattern: Option<TestPattern>, found: &mut Found) {
        for (index, (read, written)) in read.iter().zip(expected).enumerate().filter(|(_, (read, written))| read != written) {
            found.mismatches += 1;
            if found.first.len() < MAX_LISTED {
                found.first.push(self.mismatch(offset + 8 * index, *written, *read, pattern));
            }
        }
    }

    fn mismatch(&self, offset: usize, written: u64, read: u64, pattern: Option<TestPattern>) -> Mismatch {
        // SAFETY: a whole, aligned word of the buffer. The line is read again, from memory where it can be dropped from the caches.
        let (at, second_read) = unsafe {
            let at = self.buffer.as_ptr().add(offset).cast::<u64>();
            kernels::flush(at.cast());
            kernels::fence();
            (at, at.read_volatile())
        };
        // Millions of wrong words would take hours.
        let again = second_read != written && self.rewritten.fetch_add(1, Ordering::Relaxed) < MAX_LISTED;
        let rewritten_read = again.then(|| {
            // SAFETY: as above, in a portion that only this thread has; what the word should hold is written to it.
            unsafe {
                at.write_volatile(written);
                kernels::flush(at.cast());
                kernels::fence();
                process::sleep(RETENTION);
                kernels::flush(at.cast());
                kernels::fence();
                at.read_volatile()
            }
        });
        Mismatch {
            offset: offset as u64,
            address: Some(at as u64),
            physical: self.buffer.physical_address(offset),
            node: self.buffer.node_at(offset),
            devices: Vec::new(),
            devices_unknown: None,
            pattern,
            written,
            read,
            second_read,
            rewritten_read,
            cpu: cpu::current_cpu().unwrap_or_default(),
        }
    }
}

/// The blocks of a portion.
struct PortionBlocks<'a> {
    march: &'a March,
    blocks: Range<usize>,
    found: &'a mut Found,
}

impl kernels::Wide for PortionBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Range { start, end } = self.blocks;
        let mut words = [0; BLOCK_WORDS];
        for nth in 0..end - start {
            let block = if self.march.descending { end - 1 - nth } else { start + nth };
            self.march.block(block, &mut words, self.found);
        }
    }
}

impl Found {
    /// Adds what was found elsewhere or later: of all the first ones are kept, and of each word the first time.
    fn add(&mut self, other: Self) {
        self.mismatches += other.mismatches;
        self.first.extend(other.first);
        // The sort is stable: what was found first stays first.
        self.first.sort_by_key(|m| m.address);
        self.first.dedup_by_key(|m| m.address);
        self.first.truncate(MAX_LISTED);
    }
}

/// A buffer under test, and what became of it so far.
pub(crate) struct TestedBuffer {
    buffer: Arc<Buffer>,
    cpus: Vec<u32>,
    /// The content that it holds now.
    holds: Option<(Words, Option<TestPattern>)>,
    found: Found,
    /// How often all of it was compared.
    compared: u32,
    bytes: u64,
    busy: Duration,
    /// When the first write began, and the middle of it.
    began: Option<(Instant, Instant)>,
    /// When the last write ended.
    written: Option<Instant>,
    /// The middle and the end of the last comparison.
    last: Option<(Instant, Instant)>,
    held: Option<Duration>,
}

impl TestedBuffer {
    /// A buffer that these CPUs write and compare together.
    pub(crate) const fn new(buffer: Arc<Buffer>, cpus: Vec<u32>) -> Self {
        let found = Found { mismatches: 0, first: Vec::new() };
        let (compared, bytes, busy) = (0, 0, Duration::ZERO);
        Self { buffer, cpus, holds: None, found, compared, bytes, busy, began: None, written: None, last: None, held: None }
    }

    fn march(&self, write: Option<Words>, how: MarchOptions, cutoff: Cutoff) -> Arc<March> {
        let march = March::new(self.buffer.clone(), self.holds.clone(), write, self.cpus.len(), cutoff);
        Arc::new(March { descending: how.descending, drop_first: how.drop_first && self.holds.is_some(), ..march })
    }

    /// Takes over what a march found.
    fn finish(&mut self, march: &March, next: Option<(Words, Option<TestPattern>)>, started: Instant, ended: Instant) {
        let middle = started + (ended - started) / 2;
        if self.buffer.fault().is_some() {
            // Zeros have replaced the faulty memory, so the mismatches that this march found tell nothing new.
            self.holds = None;
            return;
        }
        self.found.add(std::mem::take(&mut *march.found.lock().unwrap_or_else(PoisonError::into_inner)));
        self.busy += ended - started;
        if !march.portions.are_taken() {
            // Cut short: what it holds now is not one content.
            self.holds = None;
            return;
        }
        if self.holds.is_some() {
            self.compared += 1;
            self.bytes += self.buffer.len() as u64;
            self.last = Some((middle, ended));
            let held = self.written.map(|written| started.saturating_duration_since(written));
            self.held = self.held.into_iter().chain(held).min();
        }
        if next.is_some() {
            self.began = self.began.or(Some((started, middle)));
            self.written = Some(ended);
        }
        self.holds = next;
    }

    /// When it may be compared, if it must hold its content for the time `hold`.
    fn ready_at(&self, hold: Duration) -> Option<Instant> {
        self.written.filter(|_| self.holds.is_some()).map(|written| written + hold)
    }

    /// The findings since the last call; `planned` is the number of planned comparisons.
    pub(crate) fn take(&mut self, planned: u32, tested: Vec<TestPattern>) -> Integrity {
        let Found { mismatches, first } = std::mem::take(&mut self.found);
        let watched = self.began.zip(self.last).map(|((began, written), (compared, ended))| {
            let whole = ended.saturating_duration_since(began).as_secs_f64();
            compared.saturating_duration_since(written).as_secs_f64() / whole.max(1e-9)
        });
        Integrity {
            patterns: std::mem::take(&mut self.compared),
            patterns_planned: planned,
            tested,
            compared: Bytes(std::mem::take(&mut self.bytes)),
            seconds: std::mem::take(&mut self.busy).as_secs_f64(),
            held_s: self.held.map(|held| held.as_secs_f64()),
            watched,
            past_caches: Some(kernels::flushes()),
            mismatches,
            first,
            ecc: None,
        }
    }

    /// How often all of it was compared since the last [`take`](Self::take).
    pub(crate) const fn compared(&self) -> u32 {
        self.compared
    }
}

/// The order and the timing of a march.
#[derive(Clone, Copy, Default)]
pub(crate) struct MarchOptions {
    /// From the end.
    pub(crate) descending: bool,
    /// Lines are dropped from the caches before they are compared.
    pub(crate) drop_first: bool,
    /// The least time from writing the content to comparing it.
    pub(crate) hold: Duration,
}

/// Compares what the buffers hold and writes to each what `next` says, all at the same time. A CPU may work on several of them.
///
/// # Errors
/// When the run must end, a thread is lost, or memory has faulted; what was found until then is in the buffers.
pub(crate) fn march(
    session: &mut Session<'_>,
    buffers: &mut [TestedBuffer],
    how: MarchOptions,
    next: impl Fn(usize) -> Option<(Words, Option<TestPattern>)>,
) -> Result {
    wait_until(session, buffers.iter().filter_map(|b| b.ready_at(how.hold)).max())?;
    let nexts: Vec<_> = (0..buffers.len()).map(next).collect();
    let marches: Vec<_> = buffers
        .iter()
        .zip(&nexts)
        .map(|(b, next)| b.march(next.as_ref().map(|n| n.0.clone()), how, session.context.cutoff(None)))
        .collect();
    let mut by_cpu: BTreeMap<u32, Vec<Arc<March>>> = BTreeMap::new();
    for (buffer, march) in buffers.iter().zip(&marches) {
        buffer.cpus.iter().for_each(|cpu| by_cpu.entry(*cpu).or_default().push(march.clone()));
    }
    let started = session.context.now();
    let outcome = run(session, &by_cpu);
    let ended = session.context.now();
    for ((buffer, march), next) in buffers.iter_mut().zip(&marches).zip(nexts) {
        buffer.finish(march, next, started, ended);
    }
    session.add_measuring(ended - started);
    outcome?;
    let fault = buffers.iter().find_map(|b| Some(NotMeasured::MemoryFailed { cpu: *b.cpus.first()?, fault: b.buffer.fault()? }));
    fault.map_or(Ok(()), Err)
}

/// Runs all marches to their end, piece by piece.
fn run(session: &mut Session<'_>, by_cpu: &BTreeMap<u32, Vec<Arc<March>>>) -> Result {
    let timeout = WORKER_TIMEOUT + Duration::from_secs(PIECE as u64 / SLOWEST_BYTES_S);
    while by_cpu.values().flatten().any(|march| !march.portions.are_taken()) {
        if session.interrupted() {
            return Err(NotMeasured::Interrupted);
        }
        let job = |marches: &Vec<Arc<March>>| -> Job<()> {
            let marches = marches.clone();
            Box::new(move || {
                marches.iter().fold(PIECE, |left, march| march.run(left));
            })
        };
        let threads = session.runner.threads(&by_cpu.keys().copied().collect())?;
        threads.workers.run(by_cpu.iter().map(|(cpu, marches)| (*cpu, job(marches))).collect(), timeout)?;
    }
    Ok(())
}

fn wait_until(session: &Session<'_>, ready: Option<Instant>) -> Result {
    while let Some(left) = ready.map(|ready| ready.saturating_duration_since(session.context.now())).filter(|left| !left.is_zero()) {
        if session.interrupted() {
            return Err(NotMeasured::Interrupted);
        }
        process::sleep(left.min(NAP));
    }
    Ok(())
}

/// Counts of corrected and uncorrected errors, from the beginning of a check to now.
pub(crate) struct EccWatch {
    all: Option<(u64, u64)>,
    dimms: Vec<DimmErrors>,
}

impl EccWatch {
    pub(crate) fn begin(session: &Session<'_>) -> Self {
        let root = &session.context.root;
        Self { all: noise::memory_errors(root), dimms: noise::dimm_errors(root) }
    }

    pub(crate) fn end(&self, session: &Session<'_>) -> EccCounts {
        let after = noise::memory_errors(&session.context.root);
        let unknown = self.all.is_none() || after.is_none();
        EccCounts {
            corrected_before: self.all.map(|e| e.0),
            corrected_after: after.map(|e| e.0),
            uncorrected_before: self.all.map(|e| e.1),
            uncorrected_after: after.map(|e| e.1),
            dimms: DimmErrors::since(&self.dimms, &noise::dimm_errors(&session.context.root)),
            reason: unknown.then(|| "no driver reports the errors of memory controllers here (EDAC)".to_owned()),
        }
    }
}

/// Adds which memory devices may hold the words that were wrong, or why that is not known.
pub(crate) fn name_devices(session: &Session<'_>, integrity: &mut Integrity) {
    if integrity.first.is_empty() {
        return;
    }
    let map = device_map(&session.context.root);
    for mismatch in &mut integrity.first {
        let found = match (&map, mismatch.physical) {
            (_, None) => Err("the physical address is not known: it takes root or CAP_SYS_ADMIN".to_owned()),
            (Ok(map), Some(physical)) => map.at(physical).map_err(str::to_owned),
            (Err(why), _) => Err(why.clone()),
        };
        match found {
            Ok(devices) => mismatch.devices = devices,
            Err(why) => mismatch.devices_unknown = Some(why),
        }
    }
}

/// The buffers of loaders that keep checksums: filled, compared and inverted before they are read and after.
pub(crate) struct CheckedBuffers {
    buffers: Vec<TestedBuffer>,
    words: Vec<Words>,
    ecc: EccWatch,
    /// How long each content stays in the buffers at least before it is compared.
    hold: Duration,
    /// Patterns that were compared since results were taken last.
    tested: Vec<TestPattern>,
    /// Comparisons that should have been made since results were taken last.
    planned: u32,
}

impl CheckedBuffers {
    /// Writes and compares the patterns and the complement of each buffer's words, and writes the words.
    ///
    /// # Errors
    /// When the run must end, or a thread is lost.
    pub(crate) fn begin(
        session: &mut Session<'_>,
        buffers: Vec<(TestedBuffer, Words)>,
        patterns: &[TestPattern],
        hold: Duration,
    ) -> Result<Self> {
        let ecc = EccWatch::begin(session);
        let (buffers, words): (Vec<_>, Vec<_>) = buffers.into_iter().unzip();
        let steps = steps(patterns);
        let mut checked = Self { buffers, words, ecc, hold, tested: patterns.to_vec(), planned: steps.len() as u32 + 1 };
        // Buffers follow each other as in the words: an address is in one of them only.
        let blocks = |buffer: &TestedBuffer| buffer.buffer.len().div_ceil(BLOCK_BYTES) as u64;
        let first_blocks: Vec<u64> = checked.buffers.iter().scan(0, |next, b| Some(std::mem::replace(next, *next + blocks(b)))).collect();
        for step in &steps {
            let next = |index: usize| Some((step.words(session.plan.seed, first_blocks[index]), Some(step.pattern)));
            march(session, &mut checked.buffers, MarchOptions { descending: step.descending, hold, ..MarchOptions::default() }, next)?;
        }
        checked.march(session, true)?;
        checked.march(session, false)?;
        Ok(checked)
    }

    /// Compares the words and their complement, and writes the words again. A check that was cut short says so in its result.
    ///
    /// # Errors
    /// When memory has faulted.
    pub(crate) fn end(&mut self, session: &mut Session<'_>, measured: &mut Measured) -> Result<Integrity> {
        let planned = self.planned + 2;
        let outcome = self.march(session, true).and_then(|()| self.march(session, false));
        self.planned = 0;
        let tested = std::mem::take(&mut self.tested);
        let each = self.buffers.iter_mut().map(|buffer| buffer.take(planned, tested.clone()));
        let mut all = each.reduce(joined).unwrap_or_default();
        match outcome {
            Err(error) if error.damaged() => return Err(error),
            Ok(()) => {}
            Err(NotMeasured::Interrupted) => measured.cut_short(Incomplete::OutOfTime),
            Err(error) => {
                measured.cut_short((&error).into());
                let message = format!("what was written was not compared: {error}");
                measured.note(memgauge_model::note::Note::warning(memgauge_model::note::NoteCode::CheckCutShort, message));
            }
        }
        all.ecc = Some(self.ecc.end(session));
        name_devices(session, &mut all);
        Ok(all)
    }

    fn march(&mut self, session: &mut Session<'_>, inverted: bool) -> Result {
        let words = &self.words;
        let next = |index: usize| Some((if inverted { words[index].complement() } else { words[index].clone() }, None));
        march(session, &mut self.buffers, MarchOptions { drop_first: true, hold: self.hold, ..MarchOptions::default() }, next)
    }
}

/// The results of two buffers that were tested at the same time, as one.
fn joined(a: Integrity, b: Integrity) -> Integrity {
    let mut found = Found { mismatches: a.mismatches, first: a.first };
    found.add(Found { mismatches: b.mismatches, first: b.first });
    Integrity {
        patterns: a.patterns.min(b.patterns),
        compared: Bytes(a.compared.0 + b.compared.0),
        seconds: a.seconds.max(b.seconds),
        held_s: a.held_s.into_iter().chain(b.held_s).min_by(f64::total_cmp),
        watched: a.watched.into_iter().chain(b.watched).min_by(f64::total_cmp),
        mismatches: found.mismatches,
        first: found.first,
        ..a
    }
}

#[cfg(test)]
mod tests;
