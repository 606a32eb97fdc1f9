//! What CPUID says about a hypervisor. Nothing on other architectures than x86-64.

/// Whether CPUs of this architecture say that there is a hypervisor.
pub(super) const ANNOUNCES: bool = cfg!(target_arch = "x86_64");

/// A hypervisor's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hypervisor {
    /// The signatures of the interfaces that it offers (CPUID 4000_0000h, 4000_0100h …), in order. KVM offers that of Hyper-V first.
    pub(super) signatures: Vec<String>,
    /// This is not a guest but the partition of Hyper-V that owns the machine, with its real CPUs and memory. Windows runs as such where
    /// Hyper-V, or virtualisation-based security, is on.
    pub(super) owner: bool,
}

/// The signature of Microsoft's interface ("Hypervisor Top-Level Functional Specification", 2.4).
#[cfg(target_arch = "x86_64")]
const MICROSOFT: &str = "Microsoft Hv";

/// The hypervisor that the CPU says this runs under; `None` if there is none, or the CPU cannot say.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn hypervisor() -> Option<Hypervisor> {
    None
}

/// The hypervisor that the CPU says this runs under; `None` if there is none.
#[cfg(target_arch = "x86_64")]
pub(super) fn hypervisor() -> Option<Hypervisor> {
    /// Interfaces are at multiples of this, up to the last.
    const STEP: u32 = 0x100;
    const FIRST: u32 = 0x4000_0000;
    const LAST: u32 = 0x4000_1000;
    let ask = |leaf: u32| {
        #[allow(unused_unsafe, reason = "asking CPUID was unsafe until Rust 1.94")]
        // SAFETY: every x86-64 CPU has CPUID, and a leaf that it lacks returns zeros or other leaves' data.
        unsafe {
            std::arch::x86_64::__cpuid(leaf)
        }
    };
    // CPUID 1 ECX bit 31 is kept for hypervisors: no CPU sets it.
    if ask(1).ecx & (1 << 31) == 0 {
        return None;
    }
    let mut signatures: Vec<String> = Vec::new();
    for base in (FIRST..LAST).step_by(STEP as usize) {
        let found = ask(base);
        // EAX is the last leaf of this interface. Anything else is not one.
        if !(base..base + STEP).contains(&found.eax) {
            continue;
        }
        let bytes = [found.ebx, found.ecx, found.edx].map(u32::to_le_bytes).concat();
        let text = String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned();
        let printable = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if printable && !signatures.contains(&text) {
            signatures.push(text);
        }
    }
    let microsoft = signatures.first().is_some_and(|name| name == MICROSOFT) && ask(FIRST).eax >= FIRST + 3;
    // CPUID 4000_0003h EBX bit 0, CreatePartitions: a privilege that only the partition that owns the machine has.
    let owner = microsoft && ask(FIRST + 3).ebx & 1 == 1;
    Some(Hypervisor { signatures, owner })
}
