//! Memory between inaccessible pages, and what kernels are expected to do.
#![allow(dead_code, reason = "each test uses a part")]

use memgauge_core::traffic::{Mix, Width};
use memgauge_kernels::{Kernel, MAX_STREAMS};

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
    match kernel.width {
        Width::Scalar => 8,
        Width::Sse2 => 16,
        Width::Avx2 | Width::Neon => 32,
        Width::Avx512 => 64,
        Width::String if kernel.name.ends_with("sb") => 1,
        Width::String => 64,
    }
}

/// The bytes that a kernel leaves in its written stream, given those of its read streams.
pub(crate) fn expected(kernel: &Kernel, read: &[&[u8]], written: usize) -> Vec<u8> {
    match kernel.mix {
        Mix::Copy | Mix::R1W1Nt => read[0][..written].to_vec(),
        Mix::R2W1Nt => {
            let lane = |s: &[u8], i: usize| u32::from_le_bytes(s[i..i + 4].try_into().unwrap());
            (0..written).step_by(4).flat_map(|i| lane(read[0], i).wrapping_add(lane(read[1], i)).to_le_bytes()).collect()
        }
        Mix::Fill if kernel.name != "fill-stosb" => vec![0; written],
        _ => vec![memgauge_kernels::STORED_BYTE; written],
    }
}

/// Runs the kernel, paced where there is a delay.
///
/// # Safety
///
/// As [`Kernel::run`].
pub(crate) unsafe fn run(kernel: &Kernel, streams: &[*mut u8; MAX_STREAMS], steps: usize, delay: Option<u32>) {
    // SAFETY: the caller's promise is the requirement of both.
    unsafe {
        match delay {
            None => kernel.run(streams, steps),
            Some(delay) => kernel.run_paced(streams, steps, delay),
        }
    }
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
pub(crate) fn noise(bytes: &mut [u8], seed: u64) {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for b in bytes {
        loop {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            *b = (x >> 32) as u8;
            if *b != 0 && *b != memgauge_kernels::STORED_BYTE {
                break;
            }
        }
    }
}
