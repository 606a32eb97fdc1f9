//! A loader: a kernel over the streams of its buffer, again and again.

use std::sync::Arc;

use memgauge_kernels::{Kernel, LINE, Line, MAX_STREAMS, Order, Walk};
use memgauge_model::integrity::Words;
use memgauge_model::plan::Traffic;
use memgauge_model::result::Checksums;
use memgauge_model::traffic::{Access, LineContent, LineUse, Width};
use memgauge_model::units::Bytes;
use memgauge_os::memory::{Buffer, MemoryFault};

use super::windows::{BLOCK_NS, FENCED_BLOCK_NS, Fences, STRING_BLOCK_NS, Schedule, Trace, run_until_end};
use crate::error::LoadError;

/// Streams of one thread start this far apart modulo 4 KiB, so that a load and a store in flight do not agree in the address
/// bits 11:0 by which cores first look for conflicts ("4K aliasing"). 12 lines.
const STAGGER: usize = 768;
const PAGE: usize = 4096;
/// Steps on one buffer before the next turn of a thread with two: some 100 to 300 lines, long enough for prefetchers to follow, short
/// enough that both buffers' memory is busy at once.
const STEPS_A_TURN: usize = 8;
/// The same for kernels that wait for their stores at the end of every run: that takes as long as some ten steps.
const FENCED_STEPS_A_TURN: usize = 64;

/// Lines between two injection delays: those of most kernels' bursts.
const DELAY_LINES: f64 = 4.0;

/// The traffic of one CPU in bursts; goes on where it stopped.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) traversal: Traversal,
    /// A second buffer, and the percent of turns that it gets.
    second: Option<(Box<Traversal>, u32)>,
    /// Core cycles to wait after every `delay_lines` lines.
    pub(crate) delay: u32,
    delay_lines: f64,
    /// How much of a turn of the second buffer is due, in percent.
    due: u32,
    /// Bytes of the machine's cache line, which memory moves.
    line: u64,
}

/// Bytes for each line that a kernel visits. It touches at most [`LINE`] bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineBytes {
    /// Bytes that the bandwidth counts: those loaded or stored or, if only a part is touched on purpose, all that memory moves.
    pub(crate) counted: u64,
    /// Bytes that memory moves.
    pub(crate) moved: u64,
}

impl LineBytes {
    /// Whether what is stored is less than the line that memory moves.
    pub(crate) const fn partial(self) -> bool {
        self.moved > LINE as u64
    }
}

/// How a kernel goes through one buffer, and where it goes on.
#[derive(Clone)]
pub(crate) struct Traversal {
    kernel: &'static Kernel,
    /// Where each stream begins.
    bases: [usize; MAX_STREAMS],
    /// Bytes that each stream advances a step.
    pub(crate) advance: [usize; MAX_STREAMS],
    /// Steps in one pass over the streams, or over the window of a random order.
    pub(crate) steps: usize,
    /// Random access: the order in a window, and how many windows the buffer has; 1 otherwise.
    pub(crate) order: Option<Arc<Order>>,
    pub(crate) windows: usize,
    /// Lines of a block of the order; 1 where it is one of lines.
    pub(crate) block: usize,
    stride: usize,
    /// The step to go on with, of all windows.
    next: usize,
    stored: Line,
    check: Option<PassChecksum>,
    /// Keeps the memory that `bases` point to.
    pub(crate) buffer: Arc<Buffer>,
}

/// The contents of a loader's buffer and of its stores.
#[derive(Clone, Copy, Default)]
pub(crate) struct Contents<'a> {
    /// The line that stores write.
    pub(crate) stored: Option<&'a LineContent>,
    /// The words in the buffer, if checksums are compared with them.
    pub(crate) words: Option<&'a Words>,
}

/// The checksum of what a pass loads.
#[derive(Clone)]
struct PassChecksum {
    expected: u64,
    sum: Line,
    /// Steps since the sum was begun.
    done: usize,
    /// Completed passes, and how many of them were wrong.
    compared: Checksums,
}

/// How a kernel goes over a buffer.
#[derive(Clone, Copy)]
pub(crate) struct LoadLayout<'a> {
    pub(crate) kernel: &'static Kernel,
    pub(crate) traffic: &'a Traffic,
    /// So many bytes of the buffer.
    pub(crate) bytes: usize,
    /// The loader's place in its group.
    pub(crate) index: usize,
    pub(crate) contents: Contents<'a>,
    /// The machine's cache line.
    pub(crate) line: Bytes,
}

impl<'a> LoadLayout<'a> {
    /// Of the first loader of a group on a machine of usual lines, which stores the kernels' default.
    pub(crate) fn new(kernel: &'static Kernel, traffic: &'a Traffic, bytes: usize) -> Self {
        Self { kernel, traffic, bytes, index: 0, contents: Contents::default(), line: Bytes(u64::from(LINE)) }
    }
}

impl Load {
    /// Lays a kernel out over a buffer.
    ///
    /// # Errors
    /// When the buffer is too small for the traffic.
    pub(crate) fn new(buffer: &Arc<Buffer>, layout: LoadLayout<'_>) -> Result<Self, LoadError> {
        let LoadLayout { kernel, traffic, bytes, index, contents, line } = layout;
        let stored = contents.stored.map_or(Line::STORED, |line| Line(line.0));
        let stride = traffic.stride.map_or(LINE as usize, |s| s.0 as usize);
        let (mut advance, mut order, mut windows) = ([0; MAX_STREAMS], None, 1);
        for (to, stream) in advance.iter_mut().zip(kernel.streams) {
            *to = match kernel.form.access {
                Access::Sequential => stream.advance(),
                Access::Strided => kernel.lines_per_iteration(stream) * stride,
                Access::Random | Access::Blocks => kernel.lines_per_iteration(stream) * LINE as usize,
            };
        }
        let per_iteration: usize = advance.iter().sum();
        let small = bytes < 4 * MAX_STREAMS * PAGE;
        // In a small buffer, which is meant for a cache, gaps would take a large part.
        let (align, stagger) = if small { (128, 0) } else { (PAGE, STAGGER) };
        let slack = if kernel.streams.len() > 1 { kernel.streams.len() * (align + stagger) } else { 0 };
        let in_order = matches!(kernel.form.access, Access::Random | Access::Blocks);
        let blocks = kernel.form.access == Access::Blocks;
        let block = if blocks { traffic.block.map_or(1, |b| (b.0 as usize / LINE as usize).max(1)) } else { 1 };
        let steps = if in_order {
            let window = traffic.window.map_or(bytes, |w| (w.0 as usize).min(bytes));
            // Each thread has its own order, so that threads that share a buffer do not follow one another.
            let made = Order::new(window / LINE as usize / block, index as u64);
            let made = made.ok_or(LoadError::WindowTooSmall { window, min_lines: Order::MIN_LINES * block })?;
            windows = (bytes / LINE as usize / block / made.lines()).max(1);
            let steps = made.lines() * block * LINE as usize / per_iteration;
            order = Some(Arc::new(made));
            advance = [0; MAX_STREAMS];
            steps.max(1)
        } else {
            bytes.saturating_sub(slack) / per_iteration
        };
        if steps == 0 {
            return Err(LoadError::BufferTooSmall { bytes, kernel: kernel.name, step: per_iteration + slack });
        }
        let mut bases = [0; MAX_STREAMS];
        let mut at = buffer.as_ptr() as usize;
        for (i, base) in bases.iter_mut().enumerate().take(kernel.streams.len()) {
            *base = at + i * stagger;
            at = (*base + steps * advance[i]).next_multiple_of(align);
        }
        assert!(order.is_some() || steps * per_iteration + slack <= buffer.len(), "the buffer holds the streams");
        // Buffers are aligned alike; threads that started alike would visit the same channels and banks in step. 0.618… spreads any number.
        let next = (index as f64 * 0.618_033_988_75).fract() * (steps * windows) as f64;
        let check = kernel.form.line == LineUse::Checked;
        let check = contents.words.filter(|_| check).map(|words| PassChecksum::new(words, steps * advance[0]));
        let next = next as usize % (steps * windows);
        let traversal =
            Traversal { kernel, bases, advance, steps, order, windows, block, stride, next, stored, check, buffer: buffer.clone() };
        let delay_lines = traffic.burst_lines.unwrap_or(DELAY_LINES);
        Ok(Self { traversal, second: None, delay: 0, delay_lines, due: 0, line: line.0 })
    }

    /// The same, with `percent` of the accesses to a second buffer of the same size, which holds `words` if its traffic keeps checksums.
    pub(crate) fn with_second(mut self, buffer: &Arc<Buffer>, percent: u32, words: Option<&Words>) -> Self {
        self.second = Some((Box::new(self.traversal.on_buffer(buffer, words)), percent));
        self
    }

    /// The fault of the memory that it goes over, if there was one.
    pub(crate) fn fault(&self) -> Option<MemoryFault> {
        let second = self.second.as_ref().and_then(|(second, _)| second.buffer.fault());
        self.traversal.buffer.fault().or(second)
    }

    pub(crate) fn kernel(&self) -> &'static Kernel {
        self.traversal.kernel
    }

    /// Bytes for each line visited. Lines of the machine may be longer than the kernels': a visit then moves the rest of the line as well,
    /// unless the next visits need it.
    pub(crate) fn line_bytes(&self) -> LineBytes {
        let (kernel, own) = (self.kernel(), u64::from(LINE));
        let moved = match kernel.form.access {
            Access::Sequential => own,
            Access::Strided => self.line.min(self.traversal.stride as u64).max(own),
            Access::Random => self.line.max(own),
            // Lines of the machine that are longer than a block move whole.
            Access::Blocks => (self.line / self.traversal.block as u64).max(own),
        };
        LineBytes { counted: if kernel.form.line == LineUse::Part { moved } else { own }, moved }
    }

    /// The outcome of the checksums; `None` for kernels that keep none.
    pub(crate) fn checked(&self) -> Option<Checksums> {
        let traversals = [Some(&self.traversal), self.second.as_ref().map(|(second, _)| &**second)].into_iter().flatten();
        let compared = traversals.filter_map(|traversal| Some(traversal.check.as_ref()?.compared));
        compared.reduce(|a, b| Checksums { passes: a.passes + b.passes, mismatches: a.mismatches + b.mismatches })
    }

    /// Loads for the whole burst; the trace's work is steps. Returns the load where it stopped.
    pub(crate) fn run(mut self, schedule: &Schedule<'_>) -> (Trace, Self) {
        let kernel = self.traversal.kernel;
        let delay = self.chunk_delay();
        let block_ns = match () {
            () if kernel.width == Width::String && delay.is_none() => STRING_BLOCK_NS,
            () if self.traversal.fences() => FENCED_BLOCK_NS,
            () => BLOCK_NS,
        };
        let trace = run_until_end(schedule, block_ns, Fences::Windows, |units| self.run_steps(units, delay));
        (trace, self)
    }

    /// Core cycles between the kernel's chunks; what was asked for is after every `delay_lines` lines.
    fn chunk_delay(&self) -> Option<u32> {
        let cycles = f64::from(self.delay) * f64::from(self.traversal.kernel.chunk_lines) / self.delay_lines;
        (self.delay > 0).then_some(cycles as u32)
    }

    /// So many steps, some of them on the second buffer.
    fn run_steps(&mut self, units: usize, delay: Option<u32>) {
        let Some((second, percent)) = &mut self.second else { return self.traversal.run(units, delay) };
        let turn = if self.traversal.fences() { FENCED_STEPS_A_TURN } else { STEPS_A_TURN };
        let mut left = units;
        while left > 0 {
            let steps = left.min(turn);
            self.due += *percent;
            if self.due >= 100 {
                self.due -= 100;
                second.run(steps, delay);
            } else {
                self.traversal.run(steps, delay);
            }
            left -= steps;
        }
    }
}

impl Traversal {
    /// Whether every run of the kernel may end with a fence.
    fn fences(&self) -> bool {
        self.kernel.mix.non_temporal() || self.kernel.form.line == LineUse::WrittenBack || self.kernel.form.line.persists().is_some()
    }

    /// The same traversal of another buffer of the same size.
    fn on_buffer(&self, buffer: &Arc<Buffer>, words: Option<&Words>) -> Self {
        let (from, to) = (self.buffer.as_ptr() as usize, buffer.as_ptr() as usize);
        assert!(buffer.len() >= self.buffer.len(), "the buffer holds the streams");
        let mut traversal = Self { buffer: buffer.clone(), ..self.clone() };
        for base in traversal.bases.iter_mut().take(self.kernel.streams.len()) {
            *base = *base - from + to;
        }
        traversal.check = traversal.check.zip(words).map(|(_, words)| PassChecksum::new(words, traversal.steps * traversal.advance[0]));
        traversal
    }

    fn run(&mut self, units: usize, delay: Option<u32>) {
        let mut left = units;
        // One walk for all runs of a block: it is in memory, and a copy of it costs as much as a burst.
        let mut walk = Walk::new([std::ptr::null_mut(); MAX_STREAMS]);
        (walk.stride, walk.stored, walk.block) = (self.stride, &self.stored, self.block);
        while left > 0 {
            // A division takes as long as a burst of lines, and a pass over a first-level cache has few bursts.
            let (window, step) = if self.windows == 1 { (0, self.next) } else { (self.next / self.steps, self.next % self.steps) };
            let mut run = left.min(self.steps - step);
            // Most kernels have one stream; four would cost as much as a burst.
            for stream in 0..self.kernel.streams.len().min(MAX_STREAMS) {
                walk.streams[stream] = (self.bases[stream] + step * self.advance[stream]) as *mut u8;
            }
            if let Some(order) = &self.order {
                walk.streams[0] = (self.bases[0] + window * order.lines() * self.block * LINE as usize) as *mut u8;
                walk.order = Some(order);
                walk.index = step * self.kernel.lines_per_iteration(&self.kernel.streams[0]);
            }
            if let Some(check) = &self.check {
                run = run.min(self.steps - check.done);
                walk.sum = check.sum;
            }
            // SAFETY: `Load::new` laid out `steps` steps of every stream, or `windows` windows of the order, inside the buffer, which lives as long
            // as `self`; step + run does not exceed them. The kernel is one of those available on this CPU. No other thread uses the buffer,
            // or all only read it.
            unsafe { self.kernel.walk(&mut walk, run, delay) };
            if let Some(check) = &mut self.check {
                check.sum = walk.sum;
                check.done += run;
                check.compare(self.steps);
            }
            self.next += run;
            if self.next == self.steps * self.windows {
                self.next = 0;
            }
            left -= run;
        }
    }
}

impl PassChecksum {
    /// The sum that every pass over these bytes of what was written must have. It is computed: memory is not asked.
    fn new(words: &Words, bytes: usize) -> Self {
        let expected = words.checksum(bytes as u64);
        Self { expected, sum: Line::ZERO, done: 0, compared: Checksums { passes: 0, mismatches: 0 } }
    }

    /// A pass may begin at any step: `steps` of them in a row, around the end, are one pass.
    fn compare(&mut self, steps: usize) {
        if self.done < steps {
            return;
        }
        self.compared.passes += 1;
        self.compared.mismatches += u64::from(self.sum.xor_of_words() != self.expected);
        (self.sum, self.done) = (Line::ZERO, 0);
    }
}

/// Lines that a step loads and stores: lines are what memory moves, also where a part of each is touched.
pub(crate) fn lines_per_iteration(kernel: &Kernel) -> u64 {
    kernel.lines_read_per_iteration() + kernel.lines_written_per_iteration()
}

#[cfg(test)]
mod tests {
    use memgauge_kernels as kernels;
    use memgauge_model::experiment::PageRequest;
    use memgauge_model::plan::BufferPlan;
    use memgauge_model::traffic::{Form, Mix};

    use super::*;

    fn buffer(bytes: usize) -> Arc<Buffer> {
        let plan = BufferPlan::plain(Bytes(bytes as u64), 0, PageRequest::Base);
        Arc::new(Buffer::allocate(&plan, std::path::Path::new("/")).unwrap())
    }

    fn kernel(mix: Mix, access: Access, line: LineUse) -> &'static Kernel {
        let form = Form { access, line };
        kernels::available().find(|k| k.mix == mix && k.form == form).unwrap()
    }

    fn traversal(kernel: &'static Kernel, traffic: &Traffic, buffer: &Arc<Buffer>, index: usize) -> Traversal {
        let content = LineContent([7; 64]);
        let contents = Contents { stored: Some(&content), words: None };
        Load::new(buffer, LoadLayout { index, contents, ..LoadLayout::new(kernel, traffic, buffer.len()) }).unwrap().traversal
    }

    /// Lines of `buffer` that were stored.
    fn stored(buffer: &Buffer) -> usize {
        // SAFETY: the whole buffer is mapped and was touched; no thread uses it now.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr(), buffer.len()) };
        bytes.chunks_exact(64).filter(|line| line.iter().all(|b| *b == 7)).count()
    }

    #[test]
    fn a_pass_in_windows_of_random_order_visits_nearly_every_line_once() {
        let buffer = buffer(1 << 20);
        let traffic = Traffic { window: Some(Bytes::kib(64)), ..Traffic::default() };
        let mut traversal = traversal(kernel(Mix::R1W1, Access::Random, LineUse::Whole), &traffic, &buffer, 3);
        assert!(traversal.windows >= 15, "{}", traversal.windows);
        traversal.run(traversal.steps * traversal.windows, None);
        assert_eq!(stored(&buffer), traversal.windows * traversal.order.as_ref().unwrap().lines());
        assert!(stored(&buffer) > 15 * 1024 * 15 / 16, "{}", stored(&buffer));
    }

    #[test]
    fn memory_moves_lines_of_the_machine() {
        let buffer = buffer(1 << 20);
        let bytes = |access, part: bool, stride: Option<u64>, line| {
            let kernel = kernel(Mix::R1W1, access, if part { LineUse::Part } else { LineUse::Whole });
            let traffic = Traffic { stride: stride.map(Bytes), ..Traffic::default() };
            let layout = LoadLayout { line: Bytes(line), ..LoadLayout::new(kernel, &traffic, 1 << 20) };
            let found = Load::new(&buffer, layout).unwrap().line_bytes();
            (found.counted, found.moved)
        };
        for line in [64, 128, 256] {
            assert_eq!(bytes(Access::Sequential, false, None, line), (64, 64), "whole lines, some visits each");
            assert_eq!(bytes(Access::Strided, false, Some(1024), line), (64, line));
            assert_eq!(bytes(Access::Strided, false, Some(128), line), (64, line.min(128)));
            assert_eq!(bytes(Access::Random, false, None, line), (64, line));
            assert_eq!(bytes(Access::Strided, true, Some(line), line), (line, line));
            assert_eq!(bytes(Access::Strided, true, None, line), (64, 64), "each part of a long line");
        }
    }

    #[test]
    fn strides_leave_lines_out() {
        let buffer = buffer(1 << 20);
        let traffic = Traffic { stride: Some(Bytes(256)), ..Traffic::default() };
        let mut traversal = traversal(kernel(Mix::R1W1, Access::Strided, LineUse::Whole), &traffic, &buffer, 0);
        traversal.run(traversal.steps, None);
        assert_eq!(stored(&buffer), (1 << 20) / 256);
    }

    #[test]
    fn a_changed_bit_is_a_mismatch_of_each_later_pass() {
        let buffer = buffer(1 << 18);
        let words = Words::random(4, 0);
        let mut block = [0; 512];
        for number in 0..64 {
            words.block(number, &mut block);
            // SAFETY: within the buffer, which no thread uses now.
            unsafe { buffer.as_ptr().cast::<[u64; 512]>().add(number as usize).write(block) };
        }
        let checked = kernel(Mix::AllReads, Access::Sequential, LineUse::Checked);
        let contents = Contents { stored: None, words: Some(&words) };
        let traffic = Traffic::default();
        let layout = LoadLayout { index: 1, contents, ..LoadLayout::new(checked, &traffic, buffer.len()) };
        let mut load = Load::new(&buffer, layout).unwrap();
        let steps = load.traversal.steps;
        // In pieces that do not divide a pass, beginning in the middle.
        for _ in 0..7 {
            load.traversal.run(steps * 3 / 7 + 1, None);
        }
        assert_eq!(load.checked(), Some(Checksums { passes: 3, mismatches: 0 }));
        // SAFETY: within the buffer, which no thread uses now.
        unsafe { *buffer.as_ptr().add(12345) ^= 0x10 };
        load.traversal.run(2 * steps, None);
        let Checksums { passes, mismatches } = load.checked().unwrap();
        assert!(passes == 5 && mismatches >= 1, "{passes} {mismatches}");
    }

    #[test]
    fn a_second_buffer_gets_its_part() {
        let content = LineContent([7; 64]);
        for mix in [Mix::R1W1, Mix::NtWrite] {
            let Some(kernel) = kernels::available().find(|k| k.mix == mix && k.form.is_plain()) else { continue };
            let buffers = [buffer(1 << 20), buffer(1 << 20)];
            let contents = Contents { stored: Some(&content), words: None };
            let traffic = Traffic::default();
            let load = Load::new(&buffers[0], LoadLayout { contents, ..LoadLayout::new(kernel, &traffic, 1 << 20) }).unwrap();
            let mut load = load.with_second(&buffers[1], 25, None);
            assert_eq!(load.traversal.fences(), mix == Mix::NtWrite);
            // In blocks, as a burst does it.
            (0..load.traversal.steps / 64).for_each(|_| load.run_steps(64, None));
            let [first, second] = [stored(&buffers[0]), stored(&buffers[1])];
            let share = second as f64 / (first + second) as f64;
            assert!((0.23..0.27).contains(&share), "{mix}: {first} {second}");
        }
    }

    #[test]
    fn the_longest_delay_is_no_shorter_for_long_bursts() {
        let long = kernels::available().filter(|k| k.form.is_plain()).max_by_key(|k| k.chunk_lines).unwrap();
        let buffer = buffer(1 << 18);
        let load = Load::new(&buffer, LoadLayout::new(long, &Traffic::default(), buffer.len())).unwrap();
        assert!(long.chunk_lines > 4);
        assert_eq!(Load { delay: 100, ..load.clone() }.chunk_delay(), Some(25 * long.chunk_lines));
        assert_eq!(Load { delay: u32::MAX, ..load.clone() }.chunk_delay(), Some(u32::MAX));
        assert_eq!(load.chunk_delay(), None);
        // A delay after each line is converted to one after each burst: it is multiplied by the lines of a burst.
        let traffic = Traffic { burst_lines: Some(1.0), ..Traffic::default() };
        let each_line = Load::new(&buffer, LoadLayout::new(long, &traffic, buffer.len())).unwrap();
        assert_eq!(Load { delay: 100, ..each_line }.chunk_delay(), Some(100 * long.chunk_lines));
    }

    #[test]
    fn a_buffer_that_is_too_small_is_refused() {
        let small = buffer(4096);
        for access in [Access::Sequential, Access::Random] {
            let kernel = kernel(Mix::AllReads, access, LineUse::Whole);
            let error = Load::new(&small, LoadLayout::new(kernel, &Traffic::default(), 64)).err().unwrap();
            assert!(error.to_string().contains("less than"), "{error}");
        }
    }
}
