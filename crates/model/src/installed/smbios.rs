//! The memory devices in the SMBIOS table of firmware.
//!
//! Format: DMTF DSP0134 (SMBIOS 3.7), sections 6.1 (structures), 7.1 (type 0, BIOS), 7.4 (type 3, chassis), 7.17 (type 16, memory array) and 7.18 (type 17, memory device). Serial
//! numbers and asset tags are not read.

pub mod device_map;

use std::collections::BTreeMap;

use super::{InstalledMemory, MemoryDevice};
use crate::units::Bytes;

const BIOS: u8 = 0;
const CHASSIS: u8 = 3;
const MEMORY_ARRAY: u8 = 16;
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;
/// Use of an array: system memory (7.17.2). Others are video memory, flash, caches.
const SYSTEM_MEMORY: u8 = 3;

/// The memory that a table of structures says is installed. The table ends at a structure that does not fit.
pub fn parse(table: &[u8]) -> InstalledMemory {
    let mut arrays: BTreeMap<u16, u8> = BTreeMap::new();
    let mut devices: Vec<(Option<u16>, Option<MemoryDevice>)> = Vec::new();
    for structure in structures(table) {
        match structure.kind() {
            MEMORY_ARRAY => {
                if let (Some(handle), Some(purpose)) = (structure.word(0x02), structure.byte(0x05)) {
                    arrays.insert(handle, purpose);
                }
            }
            MEMORY_DEVICE => devices.push((structure.word(0x04), device(&structure))),
            _ => {}
        }
    }
    // A device whose array is not described counts as system memory.
    devices.retain(|(array, _)| array.and_then(|a| arrays.get(&a)).is_none_or(|purpose| *purpose == SYSTEM_MEMORY));
    if devices.is_empty() {
        return InstalledMemory::unknown("firmware's table (SMBIOS) describes no memory device");
    }
    InstalledMemory { slots: devices.len() as u32, devices: devices.into_iter().filter_map(|(_, device)| device).collect(), reason: None }
}

/// Whether the table says of itself that it describes a virtual machine (7.1.2.2). That it does not say so means nothing.
pub fn states_virtual_machine(table: &[u8]) -> bool {
    let bios = structures(table).find(|structure| structure.kind() == BIOS);
    bios.and_then(|bios| bios.byte(0x13)).is_some_and(|characteristics| characteristics & 1 << 4 != 0)
}

/// Whether the table states the shape of a chassis: that the machine is a physical one, unless something names a hypervisor.
pub fn states_chassis(table: &[u8]) -> bool {
    let chassis = structures(table).find(|structure| structure.kind() == CHASSIS);
    // The highest bit says that there is a lock.
    chassis.and_then(|chassis| chassis.byte(0x05)).is_some_and(|kind| is_shape(u32::from(kind & 0x7F)))
}

/// Whether a type of chassis (7.4.1) is a shape, such as a desktop or a blade. Hypervisors state "other" (1) or "unknown" (2).
pub const fn is_shape(kind: u32) -> bool {
    kind > 2
}

/// A structure: its formatted part and its strings.
struct Structure<'t> {
    formatted: &'t [u8],
    strings: &'t [u8],
}

impl Structure<'_> {
    fn kind(&self) -> u8 {
        self.formatted.first().copied().unwrap_or(END)
    }

    /// `None` when the structure is from an older version and ends before `at`.
    fn byte(&self, at: usize) -> Option<u8> {
        self.formatted.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        self.formatted.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
    }

    fn dword(&self, at: usize) -> Option<u32> {
        self.formatted.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    fn qword(&self, at: usize) -> Option<u64> {
        self.formatted.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
    }

    /// The string whose number is at `at`.
    fn string(&self, at: usize) -> Option<String> {
        let number = usize::from(self.byte(at)?).checked_sub(1)?;
        let bytes = self.strings.split(|b| *b == 0).nth(number)?;
        let text = String::from_utf8_lossy(bytes);
        let text: String = text.trim().chars().filter(|c| !c.is_control()).collect();
        (!text.is_empty()).then_some(text)
    }
}

/// The structures of a table, in order.
fn structures(table: &[u8]) -> impl Iterator<Item = Structure<'_>> {
    let mut rest = table;
    std::iter::from_fn(move || {
        let length = usize::from(*rest.get(1)?);
        // A header has four bytes (6.1.2).
        if length < 4 || rest[0] == END {
            return None;
        }
        let formatted = rest.get(..length)?;
        let after = &rest[length..];
        // Two zeros end the strings, even when there are none (6.1.3).
        let end = after.windows(2).position(|pair| pair == [0, 0])?;
        rest = &after[end + 2..];
        Some(Structure { formatted, strings: &after[..end] })
    })
}

/// A device, when its slot is populated and its memory is used as DRAM.
fn device(structure: &Structure<'_>) -> Option<MemoryDevice> {
    let size = structure.word(0x0C).unwrap_or(0xFFFF);
    if size == 0 {
        return None;
    }
    let kind = structure.byte(0x12).unwrap_or(0);
    // Persistent memory shares the channels of DRAM and does not count: a logical non-volatile device by its type, and NVDIMM-F, NVDIMM-P and
    // Optane by their technology (7.18.6). NVDIMM-N is DRAM.
    if kind == 0x1F || matches!(structure.byte(0x28), Some(5..=7)) {
        return None;
    }
    Some(MemoryDevice {
        locator: structure.string(0x10),
        bank: structure.string(0x11),
        size: match size {
            0xFFFF => None,
            // In MiB, when the word is too small for it.
            0x7FFF => structure.dword(0x1C).map(|mib| Bytes(u64::from(mib & 0x7FFF_FFFF) << 20)),
            kib if kib & 0x8000 != 0 => Some(Bytes(u64::from(kib & 0x7FFF) << 10)),
            mib => Some(Bytes(u64::from(mib) << 20)),
        },
        kind: kind_name(kind).map(str::to_owned),
        data_bits: structure.word(0x0A).filter(|bits| !matches!(bits, 0 | 0xFFFF)).map(u32::from),
        configured_mts: speed(structure, 0x20, 0x58),
        rated_mts: speed(structure, 0x15, 0x54),
        // The lower half of the attributes; 0 where it is not known.
        ranks: structure.byte(0x1B).map(|attributes| u32::from(attributes & 0x0F)).filter(|ranks| *ranks > 0),
    })
}

/// A speed in MT/s. 0 means unknown, and 0xFFFF means that the speed is in the wider field.
fn speed(structure: &Structure<'_>, at: usize, extended: usize) -> Option<u32> {
    let mts = match structure.word(at)? {
        0xFFFF => structure.dword(extended)? & 0x7FFF_FFFF,
        mts => u32::from(mts),
    };
    (mts > 0).then_some(mts)
}

/// The types of memory (7.18.2) that say something. `RAM`, `DRAM`, `Other` and `Unknown` do not.
fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x0F => "SDRAM",
        0x12 => "DDR",
        0x13 => "DDR2",
        0x18 => "DDR3",
        0x1A => "DDR4",
        0x1B => "LPDDR",
        0x1C => "LPDDR2",
        0x1D => "LPDDR3",
        0x1E => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn structure(kind: u8, handle: u16, body: &[u8], strings: &[&str]) -> Vec<u8> {
        let mut bytes = vec![kind, 4 + body.len() as u8];
        bytes.extend(handle.to_le_bytes());
        bytes.extend(body);
        strings.iter().for_each(|s| bytes.extend(s.bytes().chain([0])));
        bytes.extend(if strings.is_empty() { &[0u8, 0][..] } else { &[0] });
        bytes
    }

    #[test]
    fn a_table_says_whether_it_is_of_a_virtual_machine_and_what_shape_the_chassis_has() {
        let bios = |second: u8| {
            let mut body = [0u8; 0x14];
            body[0x13 - 4] = second;
            structure(BIOS, 0, &body, &["maker"])
        };
        let chassis = |kind: u8| structure(CHASSIS, 1, &[1, kind, 0, 0, 0], &["maker"]);
        assert!(states_virtual_machine(&[bios(0x1C), chassis(1)].concat()));
        assert!(!states_virtual_machine(&bios(0x0C)) && !states_virtual_machine(&structure(BIOS, 0, &[1, 2], &[])));
        let shapes = [23, 0x80 | 3, 1, 2, 0x81].map(|kind| states_chassis(&[bios(0), chassis(kind)].concat()));
        assert_eq!(shapes, [true, true, false, false, false]);
        assert!(!states_chassis(&[]));
    }

    fn array(handle: u16, purpose: u8) -> Vec<u8> {
        structure(MEMORY_ARRAY, handle, &[3, purpose, 3, 0, 0, 0, 0x80, 0xFE, 0xFF, 4, 0], &[])
    }

    /// What differs between devices; the rest is as real tables have it.
    struct Device {
        array: u16,
        size: u16,
        extended_mib: u32,
        kind: u8,
        technology: u8,
        configured: u16,
        extended_mts: u32,
        /// Bytes of the formatted part: 0x1B in version 2.3, 0x22 in 2.7, 0x5C in 3.3.
        length: usize,
    }

    const DDR5: Device = Device {
        array: 0x1000,
        size: 0x7FFF,
        extended_mib: 32 << 10,
        kind: 0x22,
        technology: 3,
        configured: 4800,
        extended_mts: 0,
        length: 0x5C,
    };

    fn device_bytes(d: &Device, strings: &[&str]) -> Vec<u8> {
        let mut b = [0u8; 0x60];
        let mut put = |at: usize, bytes: &[u8]| b[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x04, &d.array.to_le_bytes());
        put(0x08, &80u16.to_le_bytes());
        put(0x0A, &64u16.to_le_bytes());
        put(0x0C, &d.size.to_le_bytes());
        put(0x10, &[1, 2, d.kind]);
        put(0x15, &5600u16.to_le_bytes());
        put(0x1C, &d.extended_mib.to_le_bytes());
        put(0x20, &d.configured.to_le_bytes());
        put(0x28, &[d.technology]);
        put(0x58, &d.extended_mts.to_le_bytes());
        structure(MEMORY_DEVICE, 0x1100, &b[4..d.length], strings)
    }

    fn end() -> Vec<u8> {
        structure(END, 0xFEFF, &[], &[])
    }

    #[test]
    fn a_server_with_an_empty_slot() {
        let empty = Device { size: 0, ..DDR5 };
        let table = [
            structure(0, 0, &[1, 2, 0, 0], &["vendor", "version"]),
            array(0x1000, SYSTEM_MEMORY),
            device_bytes(&DDR5, &["DIMM 0", "P0 CHANNEL A"]),
            device_bytes(&empty, &["DIMM 1", "P0 CHANNEL A"]),
            device_bytes(&DDR5, &["DIMM 0", "P0 CHANNEL B"]),
            end(),
        ]
        .concat();
        let installed = parse(&table);
        assert_eq!((installed.slots, installed.devices.len()), (3, 2));
        let d = &installed.devices[0];
        assert_eq!((d.locator.as_deref(), d.bank.as_deref()), (Some("DIMM 0"), Some("P0 CHANNEL A")));
        assert_eq!((d.size, d.kind.as_deref()), (Some(Bytes::gib(32)), Some("DDR5")));
        assert_eq!((d.data_bits, d.configured_mts, d.rated_mts), (Some(64), Some(4800), Some(5600)));
        assert!((installed.peak().unwrap().gbs - 2.0 * 38.4).abs() < 1e-9);
    }

    #[test]
    fn fields_of_older_versions_are_missing_and_those_of_newer_ones_read() {
        let read = |d: &Device| parse(&device_bytes(d, &["DIMM_A1"])).devices;
        let old = read(&Device { size: 2048, kind: 0x18, length: 0x1B, ..DDR5 });
        assert_eq!((old[0].size, old[0].configured_mts, old[0].rated_mts), (Some(Bytes::gib(2)), None, Some(5600)));
        assert_eq!(read(&Device { size: 0x8200, ..DDR5 })[0].size, Some(Bytes::kib(512)));
        assert_eq!(read(&Device { size: 0xFFFF, ..DDR5 })[0].size, None);
        let fast = read(&Device { configured: 0xFFFF, extended_mts: 70_000, ..DDR5 });
        assert_eq!(fast[0].configured_mts, Some(70_000));
        assert_eq!(read(&Device { configured: 0, ..DDR5 })[0].configured_mts, None);
        assert_eq!(read(&Device { kind: 7, ..DDR5 })[0].kind, None, "RAM says nothing");
    }

    #[test]
    fn what_is_no_dram_of_the_system_does_not_count() {
        let other = Device { array: 0x2000, ..DDR5 };
        let table = [
            array(0x1000, SYSTEM_MEMORY),
            array(0x2000, 4),
            device_bytes(&DDR5, &["DIMM_A1"]),
            device_bytes(&other, &["video"]),
            device_bytes(&Device { kind: 0x1F, ..DDR5 }, &["DIMM_A2"]),
            device_bytes(&Device { technology: 7, ..DDR5 }, &["DIMM_A2"]),
            device_bytes(&Device { technology: 4, ..DDR5 }, &["DIMM_B1"]),
        ]
        .concat();
        let installed = parse(&table);
        let names: Vec<_> = installed.devices.iter().filter_map(|d| d.locator.as_deref()).collect();
        assert_eq!((names.as_slice(), installed.slots), (&["DIMM_A1", "DIMM_B1"][..], 4), "NVDIMM-N is DRAM");
    }

    #[test]
    fn a_virtual_machines_table_gives_no_peak() {
        // QEMU: one device of type RAM, without a speed.
        let d = Device { size: 16384, kind: 7, technology: 1, configured: 0, ..DDR5 };
        let installed = parse(&[array(0x1000, SYSTEM_MEMORY), device_bytes(&d, &["DIMM 0"]), end()].concat());
        assert_eq!(installed.devices[0].size, Some(Bytes::gib(16)));
        assert!(installed.peak().is_err());
    }

    #[test]
    fn strings_that_are_not_there_are_unknown() {
        let installed = parse(&device_bytes(&DDR5, &[]));
        assert_eq!((installed.devices[0].locator.clone(), installed.devices[0].bank.clone()), (None, None));
        assert_eq!(parse(&device_bytes(&DDR5, &["", "P0 CHANNEL A"])).devices[0].locator, None);
    }

    #[test]
    fn a_table_without_memory_says_so() {
        assert!(parse(&[]).reason.is_some_and(|r| r.contains("no memory device")));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes).peak();
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..500, value: u8, cut in 0usize..500) {
            let mut table = [array(0x1000, 3), device_bytes(&DDR5, &["DIMM 0", "P0 CHANNEL A"]), end()].concat();
            if let Some(byte) = table.get_mut(at) {
                *byte = value;
            }
            table.truncate(cut);
            let installed = parse(&table);
            prop_assert!(installed.devices.len() <= installed.slots as usize);
            let _ = installed.peak();
        }
    }
}
