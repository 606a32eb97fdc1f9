//! Which memory devices hold a physical address, as firmware describes it: DMTF DSP0134 (SMBIOS 3.7), sections 7.20 (type 19, addresses of
//! an array) and 7.21 (type 20, addresses of a device).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{MEMORY_DEVICE, Structure, structures};

const ARRAY_ADDRESSES: u8 = 19;
const DEVICE_ADDRESSES: u8 = 20;
/// Addresses are in KiB where they fit into 32 bits; otherwise this stands there, and they are in bytes further on.
const EXTENDED: u32 = u32::MAX;

/// The memory devices behind ranges of physical addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceMap {
    /// Of single devices.
    devices: Vec<(RangeInclusive<u64>, String)>,
    /// Of all devices of an array, for firmware that says no more.
    arrays: Vec<(RangeInclusive<u64>, Vec<String>)>,
}

impl DeviceMap {
    /// Reads the map from a table of structures.
    pub fn parse(table: &[u8]) -> Self {
        let mut names: BTreeMap<u16, (Option<u16>, String)> = BTreeMap::new();
        for device in structures(table).filter(|s| s.kind() == MEMORY_DEVICE) {
            if let (Some(handle), Some(name)) = (device.word(0x02), name(&device)) {
                names.insert(handle, (device.word(0x04), name));
            }
        }
        let mut map = Self::default();
        for found in structures(table) {
            match found.kind() {
                DEVICE_ADDRESSES => map.devices.extend(
                    addresses(&found, 0x13).zip(found.word(0x0C).and_then(|device| names.get(&device)).map(|(_, name)| name.clone())),
                ),
                ARRAY_ADDRESSES => map.arrays.extend(addresses(&found, 0x0F).map(|range| {
                    let array = found.word(0x0C);
                    (range, names.values().filter(|(of, _)| *of == array).map(|(_, name)| name.clone()).collect())
                })),
                _ => {}
            }
        }
        map
    }

    /// The devices that may hold this physical address: several where addresses are interleaved.
    ///
    /// # Errors
    /// Why firmware does not tell.
    pub fn at(&self, physical: u64) -> Result<Vec<String>, &'static str> {
        let mut found: Vec<String> =
            self.devices.iter().filter(|(range, _)| range.contains(&physical)).map(|(_, name)| name.clone()).collect();
        if found.is_empty() {
            found = self.arrays.iter().filter(|(range, _)| range.contains(&physical)).flat_map(|(_, names)| names.clone()).collect();
        }
        found.dedup();
        match () {
            () if !found.is_empty() => Ok(found),
            () if self.devices.is_empty() && self.arrays.is_empty() => {
                Err("firmware does not say which addresses a memory device has (no SMBIOS structures of types 19 and 20)")
            }
            () => Err("the address is in none of the ranges that firmware states for memory devices"),
        }
    }
}

/// The place of the device: its socket on the board, and the bank.
fn name(device: &Structure<'_>) -> Option<String> {
    match (device.string(0x10), device.string(0x11)) {
        (Some(locator), Some(bank)) if bank != locator => Some(format!("{locator} ({bank})")),
        (locator, bank) => locator.or(bank),
    }
}

/// The addresses of a structure whose extended addresses are at `extended`.
fn addresses(structure: &Structure<'_>, extended: usize) -> Option<RangeInclusive<u64>> {
    let (start, end) = match (structure.dword(0x04)?, structure.dword(0x08)?) {
        (EXTENDED, _) => (structure.qword(extended)?, structure.qword(extended + 8)?),
        // The last KiB is included.
        (start, end) => (u64::from(start) << 10, (u64::from(end) << 10) + 1023),
    };
    (start < end).then_some(start..=end)
}

#[cfg(test)]
mod tests {
    use super::super::tests::structure;
    use super::*;

    fn device(handle: u16, locator: &str) -> Vec<u8> {
        let mut body = [0; 0x17];
        body[0..2].copy_from_slice(&0x1000u16.to_le_bytes());
        body[0x0C] = 1;
        structure(MEMORY_DEVICE, handle, &body, &[locator])
    }

    fn mapped(kind: u8, of: u16, start_kib: u32, end_kib: u32, extended: (u64, u64)) -> Vec<u8> {
        let mut body: Vec<u8> = [start_kib.to_le_bytes(), end_kib.to_le_bytes()].concat();
        body.extend(of.to_le_bytes());
        body.extend(vec![0; if kind == DEVICE_ADDRESSES { 5 } else { 1 }]);
        body.extend(extended.0.to_le_bytes());
        body.extend(extended.1.to_le_bytes());
        structure(kind, 0x2000, &body, &[])
    }

    #[test]
    fn devices_are_those_whose_range_has_the_address() {
        let gib = 1 << 30;
        let mut table = [device(1, "DIMM_A1"), device(2, "DIMM_B1")].concat();
        table.extend(mapped(DEVICE_ADDRESSES, 1, 0, (2 << 20) - 1, (0, 0)));
        table.extend(mapped(DEVICE_ADDRESSES, 2, u32::MAX, u32::MAX, (2 * gib, 8 * gib - 1)));
        table.extend(mapped(ARRAY_ADDRESSES, 0x1000, u32::MAX, u32::MAX, (0, 16 * gib - 1)));
        let map = DeviceMap::parse(&table);
        assert_eq!(map.at(0).unwrap(), ["DIMM_A1"]);
        assert_eq!(map.at(2 * gib - 1).unwrap(), ["DIMM_A1"]);
        assert_eq!(map.at(2 * gib).unwrap(), ["DIMM_B1"]);
        assert_eq!(map.at(9 * gib).unwrap(), ["DIMM_A1", "DIMM_B1"], "all of the array, where the device is not told");
        assert!(map.at(17 * gib).unwrap_err().contains("none of the ranges"));
        assert!(DeviceMap::parse(&device(1, "DIMM_A1")).at(0).unwrap_err().contains("types 19 and 20"));
        // Garbage of any length.
        (0..table.len()).for_each(|len| drop(DeviceMap::parse(&table[..len])));
    }
}
