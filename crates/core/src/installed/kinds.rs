//! Kinds of memory devices: how many bits each transfers at a time, and the highest speed of its kind.

use crate::installed::device::MemoryDevice;

/// The family of a memory device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// DIMMs: a channel has 64 data bits, whatever its devices state (JESD79).
    Ddr,
    /// Low-power DRAM next to the processor: a device states its part of the bus, 16 to 128 bits.
    LowPower,
    /// Stacked memory in the processor's package: 1024 bits per stack (JESD235, JESD238), stated as a whole or as channels of 64 or 128
    /// bits.
    Stacked,
}

/// A kind as SMBIOS names it.
struct Kind {
    name: &'static str,
    family: Family,
    /// The highest speed that its standard and successors of the same name allow, in millions of transfers a second per pin. A higher value
    /// is a mistake of firmware, mostly a wrong unit.
    fastest_mts: u32,
    /// The standard.
    source: &'static str,
}

const fn kind(name: &'static str, family: Family, fastest_mts: u32, source: &'static str) -> Kind {
    Kind { name, family, fastest_mts, source }
}

/// Kinds other than DDR. Wrong speeds of DDR devices are not known.
const KINDS: [Kind; 8] = [
    kind("LPDDR", Family::LowPower, 400, "JESD209"),
    kind("LPDDR2", Family::LowPower, 1066, "JESD209-2"),
    kind("LPDDR3", Family::LowPower, 2133, "JESD209-3"),
    // Includes LPDDR4X, which SMBIOS does not distinguish.
    kind("LPDDR4", Family::LowPower, 4267, "JESD209-4"),
    // Includes LPDDR5X, up to 10,667 in its later grades.
    kind("LPDDR5", Family::LowPower, 10_667, "JESD209-5"),
    // 128 GB/s a stack.
    kind("HBM", Family::Stacked, 1000, "JESD235"),
    // Includes HBM2E: 256 to 461 GB/s a stack.
    kind("HBM2", Family::Stacked, 3600, "JESD235D"),
    // 819 GB/s a stack; HBM3E has up to 1.2 TB/s.
    kind("HBM3", Family::Stacked, 9800, "JESD238"),
];

/// The family of a device, and the bytes of one transfer.
///
/// # Errors
/// Why it is not known.
pub(super) fn transfer(device: &MemoryDevice, name: &str) -> Result<(Family, f64), String> {
    let stated = device.kind.as_deref().ok_or_else(|| format!("firmware's table (SMBIOS) does not state the type of {name}"))?;
    if stated.starts_with("DDR") {
        return Ok((Family::Ddr, super::device::CHANNEL_BYTES));
    }
    let Some(kind) = KINDS.iter().find(|k| k.name == stated) else {
        return Err(format!("{name} is {stated}, whose channels are not known"));
    };
    let sensible: &[u32] = match kind.family {
        Family::Stacked => &[64, 128, 1024],
        _ => &[16, 32, 64, 128],
    };
    let Some(bits) = device.data_bits.filter(|bits| sensible.contains(bits)) else {
        return Err(format!("{name} is {stated}, and firmware's table (SMBIOS) does not state how many bits it transfers at a time"));
    };
    if let Some(mts) = device.configured_mts.filter(|mts| *mts > kind.fastest_mts) {
        return Err(format!("firmware's table (SMBIOS) states {mts} MT/s for {name}, more than {stated} has ({})", kind.source));
    }
    Ok((kind.family, f64::from(bits) / 8.0))
}
