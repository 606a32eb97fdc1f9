//! The table of firmware (SMBIOS), which the kernel passes on: what memory is installed, and which addresses it has. The format is read by
//! [`memgauge_model::installed::smbios`].

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use memgauge_model::installed::InstalledMemory;
use memgauge_model::installed::smbios::device_map::DeviceMap;
use memgauge_model::installed::smbios::{parse, states_virtual_machine};

use crate::files::open_regular;
use crate::security::{CAP_DAC_OVERRIDE, explained, has_capability};
use crate::tree::Tree;

/// The kernel lets only root read it, because it holds serial numbers.
const TABLE: &str = "sys/firmware/dmi/tables/DMI";
/// The most that is read of the table. Real tables have 4 to 100 KiB.
const MAX_BYTES: u64 = 4 << 20;

/// Reads which memory is installed, as firmware states it.
pub(crate) fn read(tree: Tree<'_>) -> InstalledMemory {
    table(tree).map_or_else(InstalledMemory::unknown, |bytes| parse(&bytes))
}

/// The physical addresses of the memory devices, as firmware states them.
///
/// # Errors
/// Why its table cannot be read.
pub fn device_map(root: &Path) -> Result<DeviceMap, String> {
    table(Tree::new(root)).map(|table| DeviceMap::parse(&table))
}

/// Whether firmware's table, which only root may read, says that it describes a virtual machine.
pub(super) fn is_of_virtual_machine(tree: Tree<'_>) -> bool {
    table(tree).is_ok_and(|bytes| states_virtual_machine(&bytes))
}

/// The bytes of firmware's table, or why they cannot be read.
fn table(tree: Tree<'_>) -> Result<Vec<u8>, String> {
    table_bytes(tree).map_err(|error| match error.kind() {
        // Root reads it whatever its mode: what is denied then is denied by something else.
        ErrorKind::PermissionDenied if has_capability(tree, CAP_DAC_OVERRIDE) => format!("/{TABLE} cannot be read: {}", explained(&error)),
        ErrorKind::PermissionDenied => format!("only root may read /{TABLE}"),
        ErrorKind::NotFound => "this machine shows no firmware table (SMBIOS)".to_owned(),
        _ => format!("/{TABLE} cannot be read: {error}"),
    })
}

fn table_bytes(tree: Tree<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(&tree.path(TABLE))?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A field of DMI that every user may read.
pub(super) fn dmi(tree: Tree<'_>, field: &str) -> Option<String> {
    let folder = ["sys/class/dmi/id", "sys/devices/virtual/dmi/id"].into_iter().find(|folder| tree.exists(folder))?;
    tree.text(&format!("{folder}/{field}")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Fixture;

    #[test]
    fn no_table_says_why() {
        let tree = Fixture::new();
        assert!(read(Tree::new(tree.root())).reason.is_some_and(|r| r.contains("no firmware table")));
        assert!(device_map(tree.root()).unwrap_err().contains("no firmware table"));
        // A memory device of 16 GiB in version 2.3 of the format, with one string.
        let mut device = vec![17, 0x1B, 0, 1];
        device.extend([0; 0x17]);
        (device[0x0C], device[0x0D], device[0x10]) = (0x00, 0x40, 1);
        device.extend(b"DIMM_A1\0\0");
        let tree = tree.file(TABLE, device);
        let devices = read(Tree::new(tree.root())).devices;
        assert_eq!(devices.iter().map(|device| device.locator.as_deref()).collect::<Vec<_>>(), [Some("DIMM_A1")]);
        assert!(device_map(tree.root()).unwrap().at(0).unwrap_err().contains("types 19 and 20"));
    }
}
