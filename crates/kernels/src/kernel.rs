//! The properties that a kernel declares, and the walk that it is given to run.

use std::mem::MaybeUninit;

use memgauge_model::traffic::{Access, Form, LineUse, Mix, Operation, Width};

use crate::line::{LINE, Line};
use crate::order::Order;

/// The largest number of streams of any kernel.
pub const MAX_STREAMS: usize = 4;

/// Chunks in one step of every kernel.
pub const CHUNKS_PER_ITERATION: u32 = 4;

/// One memory stream of a kernel: the bytes that one step reads and writes there, each of them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Bytes read per step.
    pub read: u32,
    /// Bytes written per step.
    pub write: u32,
}

impl Stream {
    /// Bytes that one step of a sequential kernel advances.
    pub const fn advance(&self) -> usize {
        if self.read > self.write { self.read as usize } else { self.write as usize }
    }

    /// A stream that is read: `chunk` bytes a chunk.
    pub(crate) const fn read(chunk: u32) -> Self {
        Self { read: chunk * CHUNKS_PER_ITERATION, write: 0 }
    }

    /// A stream that is written: `chunk` bytes a chunk.
    pub(crate) const fn write(chunk: u32) -> Self {
        Self { read: 0, write: chunk * CHUNKS_PER_ITERATION }
    }

    /// A stream on which a chunk does this operation with `bytes` bytes of each of `lines` lines.
    pub(crate) const fn by(operation: Operation, lines: usize, bytes: u32) -> Self {
        if operation.loads() { Self::read(lines as u32 * bytes) } else { Self::write(lines as u32 * bytes) }
    }

    /// A window. Each chunk of this mix loads some of its lines and stores others.
    pub(crate) const fn window(mix: Mix) -> Self {
        let (loads, stores) = mix.chunk_lines();
        Self::both((loads * LINE, stores * LINE))
    }

    /// A window. Each chunk reads some of its lines and writes others: `read` and `write` bytes per chunk.
    pub(crate) const fn both((read, write): (u32, u32)) -> Self {
        Self { read: read * CHUNKS_PER_ITERATION, write: write * CHUNKS_PER_ITERATION }
    }
}

/// Where a kernel goes and what it stores there.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The place where each stream goes on, 64-byte aligned; for random access, the beginning of the window. Pointers beyond the kernel's
    /// streams are ignored.
    pub streams: [*mut u8; MAX_STREAMS],
    /// Strided access: bytes from one line to the next, in every stream. A multiple of 64, not 0.
    pub stride: usize,
    /// Random access: the order of the window's lines.
    pub order: Option<&'a Order>,
    /// Random access: lines visited so far, so the caller adds the [lines](Kernel::lines_per_iteration) of each run. Rounded down to whole
    /// chunks.
    pub index: usize,
    /// Blocks: lines of each, not 0. The order is then one of blocks.
    pub block: usize,
    /// The content of each line stored, for kernels that do not store what they have loaded. `rep stosb` repeats its
    /// first byte; `dc zva` always stores zeros.
    pub stored: &'a Line,
    /// Checked lines: the exclusive or of what it was before the run and of every line loaded.
    pub sum: Line,
    /// Set by [`Kernel::walk`] of random kernels.
    pub(crate) entry: Entry,
    /// Set by [`Kernel::walk`] of kernels that visit blocks, which alone read it: setting it for others would be part of what is timed.
    pub(crate) blocks: MaybeUninit<Blocks>,
}

impl<'a> Walk<'a> {
    /// A walk from these streams on: every line of them, storing [`Line::STORED`].
    #[inline]
    pub const fn new(streams: [*mut u8; MAX_STREAMS]) -> Self {
        Self {
            streams,
            stride: LINE as usize,
            order: None,
            index: 0,
            block: 1,
            stored: &Line::STORED,
            sum: Line::ZERO,
            entry: Entry::NONE,
            blocks: MaybeUninit::uninit(),
        }
    }

    /// The same with lines `stride` bytes apart.
    pub const fn with_stride(mut self, stride: usize) -> Self {
        self.stride = stride;
        self
    }

    /// The same over a window in this order, after `index` of its lines were visited.
    pub const fn with_order(mut self, order: &'a Order, index: usize) -> Self {
        self.order = Some(order);
        self.index = index;
        self
    }

    /// The same over blocks of `lines` lines.
    pub const fn with_block(mut self, lines: usize) -> Self {
        self.block = lines;
        self
    }

    /// The same storing this line.
    pub const fn storing(mut self, line: &'a Line) -> Self {
        self.stored = line;
        self
    }
}

/// Where a random kernel enters its order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The end of the order's table.
    pub(crate) end: *const u64,
    /// From the end to the beginning, in bytes: negative.
    pub(crate) back: isize,
    /// From the end to the next line's entry, in bytes: negative.
    pub(crate) at: isize,
    /// The value that the entries are XORed with.
    pub(crate) turn: usize,
    /// The bits of it that count.
    pub(crate) mask: usize,
}

impl Entry {
    const NONE: Self = Self { end: std::ptr::null(), back: 0, at: 0, turn: 0, mask: 0 };

    /// The entry after `index` lines, rounded down to whole chunks.
    fn new(order: &Order, index: usize, chunk_lines: u32) -> Self {
        let (blocks, index) = (order.table.len(), index - index % chunk_lines as usize);
        let bytes = |entries: usize| (entries * size_of::<u64>()) as isize;
        Self {
            end: order.table.as_ptr_range().end,
            back: -bytes(blocks),
            at: bytes(index % blocks) - bytes(blocks),
            turn: order.turn(index / blocks),
            mask: order.mask(),
        }
    }
}

/// The position of a kernel that visits blocks, and the data to find the next block. Kernels read the first fields by their offsets.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Blocks {
    /// The order's table.
    begin: *const u64,
    end: *const u64,
    /// The value that the entries are XORed with; kernels change it at the table's end.
    turn: usize,
    /// The bits of it that count.
    mask: usize,
    /// Lines of a block: what an entry, a number of lines in bytes, is multiplied with.
    lines: usize,
    /// The next block's entry.
    pub(crate) at: *const u64,
    /// Bytes from the window's beginning to the next line.
    pub(crate) to: usize,
    /// Lines left of its block.
    pub(crate) left: usize,
}

impl Blocks {
    const NONE: Self =
        Self { begin: std::ptr::null(), end: std::ptr::null(), turn: 0, mask: 0, lines: 1, at: std::ptr::null(), to: 0, left: 1 };

    /// The place after `index` lines in blocks of `lines`.
    fn new(order: &Order, index: usize, lines: usize) -> Self {
        let (block, within) = (index / lines, index % lines);
        let (entries, next) = (order.table.len(), block + 1);
        let std::ops::Range { start: begin, end } = order.table.as_ptr_range();
        Self {
            begin,
            end,
            turn: order.turn(next / entries),
            mask: order.mask(),
            lines,
            at: begin.wrapping_add(next % entries),
            to: (order.line_at(block) * lines + within) * LINE as usize,
            left: lines - within,
        }
    }
}

/// A loop that produces memory traffic, and what it declares about it.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Its name, such as `load-avx2` or `triad-nt-avx512`.
    pub name: &'static str,
    /// The mix it produces.
    pub mix: Mix,
    /// The width of its loads and stores.
    pub width: Width,
    /// In which order it visits lines, and what it does with each.
    pub form: Form,
    /// Its streams. They advance together: sequential and strided ones by as many lines as they are touched, one after the other.
    /// Random ones stay: each has one stream, a window, and either loads or stores every line that it visits.
    pub streams: &'static [Stream],
    /// Bytes touched of each line visited: 64, or the width of one access where it touches a part.
    pub touched: u32,
    /// Lines moved, loads and stores together, between two delays of the paced form.
    pub chunk_lines: u32,
    pub(crate) supported: fn() -> bool,
    pub(crate) run: unsafe fn(&mut Walk<'_>, usize),
    pub(crate) paced: unsafe fn(&mut Walk<'_>, usize, u32),
}

impl Kernel {
    /// Bytes that the program reads in one step, all streams together.
    pub fn read_per_iteration(&self) -> u64 {
        self.streams.iter().map(|s| u64::from(s.read)).sum()
    }

    /// Bytes that the program writes in one step, all streams together.
    pub fn written_per_iteration(&self) -> u64 {
        self.streams.iter().map(|s| u64::from(s.write)).sum()
    }

    /// Lines that one step loads, all streams together: memory moves all 64 bytes of each (more where the machine's lines are longer), even where only
    /// a part is touched.
    #[inline]
    pub fn lines_read_per_iteration(&self) -> u64 {
        self.read_per_iteration() / u64::from(self.touched)
    }

    /// Lines that one step stores, all streams together.
    pub fn lines_written_per_iteration(&self) -> u64 {
        self.written_per_iteration() / u64::from(self.touched)
    }

    /// Lines that one step visits in one of its streams.
    #[inline]
    pub const fn lines_per_iteration(&self, stream: &Stream) -> usize {
        ((stream.read + stream.write) / self.touched) as usize
    }

    /// The same kernel in another form of line use. RISC-V has no kernels that make lines durable.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(crate) const fn with_line(self, line: LineUse) -> Self {
        Self { form: Form { access: self.form.access, line }, ..self }
    }

    /// Whether this CPU, and the operating system on it, can run the kernel.
    pub fn supported(&self) -> bool {
        (self.supported)()
    }

    /// Runs `steps` steps from these stream pointers, over every line: [`walk`](Self::walk) with [`Walk::new`] and without delay.
    ///
    /// # Safety
    ///
    /// As [`walk`](Self::walk).
    #[inline]
    pub unsafe fn run(&self, streams: &[*mut u8; MAX_STREAMS], steps: usize) {
        // SAFETY: the caller's promise is the function's requirement.
        unsafe { self.walk(&mut Walk::new(*streams), steps, None) }
    }

    /// Runs `steps` steps of a walk; of what the caller sees in it, changes only the [sum](Walk::sum) of kernels that keep one.
    ///
    /// With a delay, a wait of `delay` core cycles follows every chunk of [`chunk_lines`](Self::chunk_lines) lines.
    /// The delay is a chain of that many dependent subtractions. Chains follow one another without overlap, and the next chunk's
    /// addresses depend on the end of the chain before, so an out-of-order core cannot issue chunks ahead of their delay: it starts
    /// one every `delay` cycles at most. The chain does not wait for the chunk's data. A core that takes a branch only every second
    /// cycle makes the delay twice as long, and so do two hardware threads that wait at once on a core that takes one branch a cycle for both:
    /// cycles are the core's, not the thread's.
    ///
    /// A delay of 0 is legal and runs the loop over chunks without waiting. String kernels start their instruction anew
    /// for each chunk, which may then choose another protocol towards memory than for a long run.
    ///
    /// # Panics
    ///
    /// When the kernel follows an order, of lines or of blocks, and the walk has none.
    ///
    /// # Safety
    ///
    /// The kernel is [supported](Self::supported). The memory that it touches is valid, also for writes if it is written, no written stream
    /// overlaps another, and no reference to the memory is live. It touches, from each stream's pointer on, which is 64-byte aligned:
    /// - sequential: `steps` times the stream's [`advance`](Stream::advance) bytes;
    /// - strided: a line, or part of it, at each of `steps` times [`lines_per_iteration`](Self::lines_per_iteration) places, `stride` apart;
    /// - random: the [lines](Order::lines) of the order's window;
    /// - blocks: as many blocks of [`Walk::block`] lines.
    #[inline]
    pub unsafe fn walk(&self, walk: &mut Walk<'_>, steps: usize, delay: Option<u32>) {
        if matches!(self.form.access, Access::Random | Access::Blocks) {
            self.enter(walk);
        }
        // SAFETY: the caller's promise is the requirement of both.
        unsafe {
            match delay {
                None => (self.run)(walk, steps),
                Some(delay) => (self.paced)(walk, steps, delay),
            }
        }
    }

    /// Sets where an order goes on. A function apart, because most kernels follow no order, and all that comes before a run is timed with it.
    #[inline(never)]
    fn enter(&self, walk: &mut Walk<'_>) {
        assert!(walk.order.is_some() && walk.block > 0, "{} needs an order", self.name);
        if self.form.access == Access::Random {
            walk.entry = walk.order.map_or(Entry::NONE, |order| Entry::new(order, walk.index, self.chunk_lines));
        } else {
            // Each line is visited twice where it is loaded again.
            let visits = if matches!(self.form.line, LineUse::ReadBack(_)) { 2 } else { 1 };
            let blocks = walk.order.map_or(Blocks::NONE, |order| Blocks::new(order, walk.index / visits, walk.block));
            walk.blocks = MaybeUninit::new(blocks);
        }
    }
}

/// Lines of one chunk of these streams.
pub(crate) const fn chunk_lines(streams: &[Stream], touched: u32) -> u32 {
    let (mut bytes, mut i) = (0, 0);
    while i < streams.len() {
        bytes += streams[i].read + streams[i].write;
        i += 1;
    }
    bytes / touched / CHUNKS_PER_ITERATION
}
