//! x86-64: the time stamp counter, cache flushing, and what CPUID says about them.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
use std::sync::LazyLock;

use crate::core_type::CoreType;
use crate::wide::Wide;

/// CPUID bits that the functions here depend on. CPUID causes a VM exit in a virtual machine, so it is read once.
pub(super) struct Features {
    /// CLFLUSH without its order.
    pub(super) clflushopt: bool,
    /// CLWB writes a line back and may keep it.
    pub(super) clwb: bool,
    invariant_tsc: bool,
}

pub(super) static FEATURES: LazyLock<Features> = LazyLock::new(|| Features {
    clflushopt: leaf(7).is_some_and(|r| r.ebx & (1 << 23) != 0),
    clwb: leaf(7).is_some_and(|r| r.ebx & (1 << 24) != 0),
    invariant_tsc: leaf(0x8000_0007).is_some_and(|r| r.edx & (1 << 8) != 0),
});

/// A leaf of CPUID (subleaf 0), if the range that it is in reaches so far.
#[allow(unused_unsafe, reason = "asking CPUID was unsafe until Rust 1.94")]
fn leaf(number: u32) -> Option<CpuidResult> {
    let range = number & 0xFFFF_0000;
    // SAFETY: every x86-64 CPU has CPUID.
    let last = unsafe { __cpuid(range) }.eax;
    // SAFETY: every x86-64 CPU has CPUID, and a leaf that it lacks returns zeros or other leaves' data.
    (last >= number && last & 0xFFFF_0000 == range).then(|| unsafe { __cpuid_count(number, 0) })
}

#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)) };
    high << 32 | low
}

#[inline(always)]
pub(crate) fn ticks_fenced() -> u64 {
    let (low, high): (u64, u64);
    // `lfence` waits for earlier loads and instructions and holds later ones back, on Intel by definition, on AMD since Linux sets
    // the bit that makes it so.
    // Without `nomem`, the compiler moves no memory access across either.
    // SAFETY: reads a register that Linux leaves open to programs.
    unsafe { asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

pub(crate) fn counter_frequency() -> Option<f64> {
    hypervisor_tsc_hz().or_else(crystal_tsc_hz)
}

/// CPUID 1: bit 31 of ECX is kept for hypervisors. No CPU sets it.
pub(crate) fn hypervisor_announced() -> Option<bool> {
    Some(leaf(1)?.ecx & (1 << 31) != 0)
}

/// Intel says by CPUID 7, EDX bit 15, that there are several types of cores, and by 1Ah, EAX bits 31 to 24, which one this is (SDM vol. 2A). AMD says
/// both by CPUID 8000_0026h: EAX bit 30, EBX bits 31 to 28 (APM vol. 3).
pub(crate) fn core_type() -> Option<CoreType> {
    core_type_of(leaf(7), leaf(0x1A), leaf(0x8000_0026))
}

fn core_type_of(features: Option<CpuidResult>, intel: Option<CpuidResult>, amd: Option<CpuidResult>) -> Option<CoreType> {
    const ATOM: u32 = 0x20;
    const CORE: u32 = 0x40;
    if features.is_some_and(|r| r.edx & (1 << 15) != 0) {
        return match intel?.eax >> 24 {
            CORE => Some(CoreType::Performance),
            ATOM => Some(CoreType::Efficiency),
            _ => None,
        };
    }
    match amd.filter(|r| r.eax & (1 << 30) != 0)?.ebx >> 28 {
        0 => Some(CoreType::Performance),
        1 => Some(CoreType::Efficiency),
        _ => None,
    }
}

/// CPUID 4000_0010h: EAX is the guest's TSC frequency in kHz. VMware defined the leaf; KVM-based monitors provide it. It is preferred
/// to leaf 15h, which may describe the host.
fn hypervisor_tsc_hz() -> Option<f64> {
    if !hypervisor_announced()? {
        return None;
    }
    let base = leaf(0x4000_0000)?;
    let signature = [base.ebx, base.ecx, base.edx].map(u32::to_le_bytes).concat();
    if signature != b"KVMKVMKVM\0\0\0" && signature != b"VMwareVMware" {
        return None;
    }
    let khz = leaf(0x4000_0010)?.eax;
    (khz != 0).then(|| f64::from(khz) * 1e3)
}

/// CPUID 15h: TSC frequency = crystal (ECX, Hz) × EBX ÷ EAX; any of them is 0 where the CPU does not say.
fn crystal_tsc_hz() -> Option<f64> {
    let r = leaf(0x15)?;
    (r.eax != 0 && r.ebx != 0 && r.ecx != 0).then(|| f64::from(r.ecx) * f64::from(r.ebx) / f64::from(r.eax))
}

pub(crate) fn invariant_counter() -> Result<&'static str, &'static str> {
    if FEATURES.invariant_tsc { Ok("tsc") } else { Err("the CPU does not report an invariant TSC (CPUID 8000_0007h EDX bit 8)") }
}

/// Programs may drop lines from the caches.
pub(crate) const FLUSHES: bool = true;

#[inline(always)]
pub(crate) unsafe fn flush(line: *const u8) {
    // SAFETY: the caller promises a mapped line; `clflushopt` is used only where the CPU has it.
    unsafe {
        if FEATURES.clflushopt {
            // Flushes of different lines overlap; `clflush` does them one after the other.
            asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
        } else {
            asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
        }
    }
}

#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    // SAFETY: a prefetch neither faults nor changes anything but caches; SSE is part of x86-64.
    unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast()) };
}

pub(crate) fn with_wide_registers<W: Wide>(work: W) -> W::Output {
    #[target_feature(enable = "avx2")]
    fn with_avx2<W: Wide>(work: W) -> W::Output {
        work.run()
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this CPU has AVX2, and the system saves its registers.
        unsafe { with_avx2(work) }
    } else {
        work.run()
    }
}

#[inline(always)]
pub(crate) unsafe fn write_past_caches(to: *mut u64, words: &[u64]) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si64, _mm_stream_si128};
    let (lines, rest) = words.as_chunks::<8>();
    for (index, line) in lines.iter().enumerate() {
        for pair in 0..4 {
            // SAFETY: the caller promises room for all words from an address that is a multiple of 16; SSE2 is part of x86-64.
            unsafe { _mm_stream_si128(to.add(8 * index + 2 * pair).cast(), _mm_loadu_si128(line.as_ptr().add(2 * pair).cast())) };
        }
    }
    for (index, word) in rest.iter().enumerate() {
        // SAFETY: the last words that the caller promises room for.
        unsafe { _mm_stream_si64(to.add(8 * lines.len() + index).cast(), word.cast_signed()) };
    }
}

#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: orders memory accesses and does nothing else.
    unsafe { asm!("mfence", options(nostack, preserves_flags)) };
}

/// CPUID 8000_0021h EAX bit 13, `PrefetchCtlMsr`: MSR C000_0108h is there (AMD Zen 3 and later). The leaf is AMD's own; other makers'
/// CPUs end before it.
pub(crate) fn has_prefetch_control() -> bool {
    leaf(0x8000_0021).is_some_and(|r| r.eax & (1 << 13) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_types_are_told_where_there_are_several() {
        let r = |eax, ebx, edx| Some(CpuidResult { eax, ebx, ecx: 0, edx });
        let hybrid = r(2, 0, 1 << 15);
        // Alder Lake: a Golden Cove (4000_0001h) and a Gracemont (2000_0001h).
        assert_eq!(core_type_of(hybrid, r(0x4000_0001, 0, 0), None), Some(CoreType::Performance));
        assert_eq!(core_type_of(hybrid, r(0x2000_0001, 0, 0), None), Some(CoreType::Efficiency));
        assert_eq!(core_type_of(hybrid, r(0, 0, 0), None), None, "the leaf is reserved");
        assert_eq!(core_type_of(hybrid, None, None), None);
        assert_eq!(core_type_of(r(0, 0, 0), r(0x4000_0001, 0, 0), None), None, "one type only");
        let (several, one) = (1 << 30, 0);
        assert_eq!(core_type_of(r(0, 0, 0), None, r(several, 0x0000_0002, 0)), Some(CoreType::Performance));
        assert_eq!(core_type_of(r(0, 0, 0), None, r(several, 0x1000_0002, 0)), Some(CoreType::Efficiency));
        assert_eq!(core_type_of(r(0, 0, 0), None, r(one, 0x1000_0002, 0)), None);
    }
}
