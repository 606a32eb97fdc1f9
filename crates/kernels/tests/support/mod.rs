//! Memory between inaccessible pages, and what kernels are expected to do.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::LazyLock;

use memgauge_kernels::{CHUNKS_PER_ITERATION, Kernel, LINE, MAX_STREAMS, Order, Walk};
use memgauge_model::traffic::{Access, LineUse, Mix, Width};

/// Larger than any page size of the supported systems, so that guards are whole pages everywhere.
pub(crate) const PAGE: usize = 64 << 10;

/// Readable and writable memory with an inaccessible page before and behind it.
pub(crate) struct Guarded {
    base: *mut u8,
    len: usize,
}

impl Guarded {
    /// `len` is rounded up to whole pages.
    pub(crate) fn new(len: usize) -> Self {
        let len = len.max(1).next_multiple_of(PAGE);
        // SAFETY: a fresh mapping.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), len + 2 * PAGE, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let guarded = Self { base: base.cast(), len };
        guarded.protect(libc::PROT_READ | libc::PROT_WRITE);
        guarded
    }

    pub(crate) fn protect(&self, protection: i32) {
        // SAFETY: within the own mapping.
        assert_eq!(unsafe { libc::mprotect(self.start().cast(), self.len, protection) }, 0);
    }

    /// The first accessible byte; a page before it is not.
    pub(crate) fn start(&self) -> *mut u8 {
        self.base.wrapping_add(PAGE)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Behind the last accessible byte.
    pub(crate) fn end(&self) -> *mut u8 {
        self.start().wrapping_add(self.len)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: accessible, initialised (by the kernel) and borrowed with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the own mapping, not used afterwards.
        unsafe { libc::munmap(self.base.cast(), self.len + 2 * PAGE) };
    }
}

/// Bytes of one access, as far as the hardware lets one see it: `rep` is seen byte by byte, since it is traced step by step.
pub(crate) fn unit(kernel: &Kernel) -> usize {
    if kernel.form.line == LineUse::Part {
        return kernel.touched as usize;
    }
    match kernel.width {
        Width::Scalar => 8,
        Width::Sse2 => 16,
        Width::Avx2 | Width::Neon => 32,
        Width::Avx512 => 64,
        Width::String if kernel.name.ends_with("sb") => 1,
        Width::String => 64,
    }
}

/// Orders of windows: one whose blocks are single lines and which two steps of any kernel go through, and one with blocks of two lines.
static ORDERS: LazyLock<[Order; 2]> = LazyLock::new(|| [Order::new(40, 1).unwrap(), Order::new(1300, 2).unwrap()]);

/// Walks to test a kernel with, from `lead` bytes behind the start of each stream: of random kernels over windows of several sizes, of
/// strided ones with several strides. Pointers are set by [`lay`].
pub(crate) fn walks(kernel: &Kernel) -> Vec<Walk<'static>> {
    let walk = Walk::new([std::ptr::null_mut(); MAX_STREAMS]);
    match kernel.form.access {
        Access::Sequential => vec![walk],
        Access::Strided => [64, 192, 4096].map(|stride| walk.with_stride(stride)).to_vec(),
        Access::Random => [(0, 0), (0, 72), (1, 0), (1, 1188)].map(|(order, index)| walk.with_order(&ORDERS[order], index)).to_vec(),
        // Single lines, blocks that a step ends within, blocks longer than a step, and the end of the table in each.
        Access::Blocks => [(0, 0, 1), (0, 138, 4), (1, 7, 3), (1, 46_000, 40), (0, 36 * 64 - 8, 64)]
            .map(|(order, index, block)| walk.with_order(&ORDERS[order], index * lines_visited(kernel)).with_block(block))
            .to_vec(),
    }
}

/// How often a kernel over blocks visits each line: once, or again to load what it has stored.
fn lines_visited(kernel: &Kernel) -> usize {
    if matches!(kernel.form.line, LineUse::ReadBack(_)) { 2 } else { 1 }
}

/// Bytes that a stream needs for `steps` steps of this walk.
pub(crate) fn needs(kernel: &Kernel, walk: &Walk<'_>, steps: usize, stream: usize) -> usize {
    match kernel.form.access {
        Access::Random => walk.order.unwrap().lines() * LINE as usize,
        Access::Blocks => walk.order.unwrap().lines() * walk.block * LINE as usize,
        Access::Strided => match steps * kernel.lines_per_iteration(&kernel.streams[stream]) {
            0 => 0,
            // The last line ends the stream.
            lines => (lines - 1) * walk.stride + LINE as usize,
        },
        Access::Sequential => steps * kernel.streams[stream].advance(),
    }
}

/// What `steps` steps should do in a stream: the offset of each line visited, in order, and whether it is stored.
pub(crate) fn visits(kernel: &Kernel, walk: &Walk<'_>, steps: usize, stream: usize) -> Vec<(usize, bool)> {
    let of = &kernel.streams[stream];
    let lines = kernel.lines_per_iteration(of);
    let loaded_per_chunk = (of.read / kernel.touched / CHUNKS_PER_ITERATION) as usize;
    let per_chunk = lines / CHUNKS_PER_ITERATION as usize;
    (0..steps * lines)
        .map(|n| {
            let offset = match kernel.form.access {
                Access::Sequential => n * LINE as usize,
                Access::Strided => n * walk.stride,
                Access::Random => walk.order.unwrap().line_at(walk.index + n) * LINE as usize,
                Access::Blocks => {
                    let line = (walk.index + n) / lines_visited(kernel);
                    (walk.order.unwrap().line_at(line / walk.block) * walk.block + line % walk.block) * LINE as usize
                }
            };
            let store = if lines_visited(kernel) == 2 { n % 2 == 0 } else { n % per_chunk >= loaded_per_chunk };
            (offset, store)
        })
        .collect()
}

/// Whether the kernel stores what it loaded.
pub(crate) fn stores_what_it_loads(kernel: &Kernel) -> bool {
    matches!(kernel.mix, Mix::Copy | Mix::R1W1Nt | Mix::R2W1Nt) && !matches!(kernel.form.access, Access::Random | Access::Blocks)
}

/// What `steps` steps should leave in each stream's memory, which the walk enters `lead` bytes behind its start.
pub(crate) fn expected(kernel: &Kernel, walk: &Walk<'_>, steps: usize, lead: usize, before: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let visits: Vec<_> = (0..kernel.streams.len()).map(|i| visits(kernel, walk, steps, i)).collect();
    let mut after = before.to_vec();
    for (stream, visits_here) in visits.iter().enumerate() {
        for (n, &(offset, _)) in visits_here.iter().enumerate().filter(|(_, (_, store))| *store) {
            let loaded = |from: usize| &before[from][lead + visits[from][n].0..][..LINE as usize];
            let line = match kernel.mix {
                Mix::R2W1Nt if stores_what_it_loads(kernel) => {
                    let lane = |s: &[u8], i: usize| u32::from_le_bytes(s[i..i + 4].try_into().unwrap());
                    (0..LINE as usize).step_by(4).flat_map(|i| lane(loaded(0), i).wrapping_add(lane(loaded(1), i)).to_le_bytes()).collect()
                }
                _ if stores_what_it_loads(kernel) => loaded(0).to_vec(),
                Mix::Fill if kernel.name == "fill-stosb" => vec![walk.stored.0[0]; LINE as usize],
                Mix::Fill => vec![0; LINE as usize],
                _ => walk.stored.0.to_vec(),
            };
            after[stream][lead + offset..][..kernel.touched as usize].copy_from_slice(&line[..kernel.touched as usize]);
        }
    }
    after
}

/// Pointers for a kernel's streams; the rest dangle, so that a kernel that used them would fault.
pub(crate) fn pointers(streams: impl IntoIterator<Item = *mut u8>) -> [*mut u8; MAX_STREAMS] {
    let mut p = [std::ptr::null_mut(); MAX_STREAMS];
    for (to, from) in p.iter_mut().zip(streams) {
        *to = from;
    }
    p
}

/// Bytes that are neither 0 nor [`STORED_BYTE`](memgauge_kernels::STORED_BYTE) and differ from place to place and seed to seed.
pub(crate) fn noise(bytes: &mut [u8], seed: usize) {
    /// Made once: tests need many. Its length is a prime, so that nothing repeats at a distance that a kernel could jump.
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        let random = std::iter::repeat_with(move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        });
        random.filter(|b| ![0, memgauge_kernels::STORED_BYTE].contains(b)).take(262_147).collect()
    });
    let (mut rest, mut from) = (bytes, seed * 4099 % NOISE.len());
    while !rest.is_empty() {
        let length = rest.len().min(NOISE.len() - from);
        let (now, later) = rest.split_at_mut(length);
        now.copy_from_slice(&NOISE[from..from + length]);
        (rest, from) = (later, 0);
    }
}
