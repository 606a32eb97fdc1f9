//! The table of firmware (SMBIOS), which Windows shows every program: what memory is installed. The format of its structures is read by
//! [`memgauge_model::installed::smbios`].

use std::path::Path;

use memgauge_model::installed::InstalledMemory;
use memgauge_model::installed::smbios::device_map::DeviceMap;
use memgauge_model::installed::smbios::parse;
#[cfg(windows)]
use memgauge_model::installed::smbios::{states_chassis, states_virtual_machine};

/// Before the structures Windows puts `RawSMBIOSData`: four bytes of versions, and the length of the structures.
const HEADER: usize = 8;

/// Which memory is installed, as firmware states it.
#[cfg(windows)]
pub(super) fn read() -> InstalledMemory {
    asked().map_or_else(|| InstalledMemory::unknown("Windows shows no firmware table (SMBIOS)"), |answer| installed(&answer))
}

/// Whether firmware's table says that it describes a virtual machine.
#[cfg(windows)]
pub(super) fn is_of_virtual_machine() -> bool {
    asked().as_deref().and_then(structures).is_some_and(states_virtual_machine)
}

/// Whether firmware states the shape of a chassis.
#[cfg(windows)]
pub(super) fn has_chassis() -> bool {
    asked().as_deref().and_then(structures).is_some_and(states_chassis)
}

/// Which memory devices have which physical addresses.
///
/// # Errors
/// Always: Windows never tells a program a physical address, so there is none to look up.
pub fn device_map(_root: &Path) -> Result<DeviceMap, String> {
    Err("Windows does not show programs the physical addresses of their memory, so the memory device is not known".to_owned())
}

/// Which memory is installed, by what `GetSystemFirmwareTable` answered; the answer begins with `RawSMBIOSData`.
pub fn installed(answer: &[u8]) -> InstalledMemory {
    structures(answer).map_or_else(|| InstalledMemory::unknown("Windows' copy of the firmware table (SMBIOS) is damaged"), parse)
}

/// The structures of an answer; `None` if it is shorter than its header says.
fn structures(answer: &[u8]) -> Option<&[u8]> {
    let (header, rest) = answer.split_at_checked(HEADER)?;
    let length = u32::from_le_bytes(*header.last_chunk()?);
    rest.get(..length as usize)
}

/// The answer of Windows; `None` where it has none.
#[cfg(windows)]
fn asked() -> Option<Vec<u8>> {
    use windows_sys::Win32::System::SystemInformation::{GetSystemFirmwareTable, RSMB};

    // SAFETY: without a buffer, it only says how long one must be.
    let length = unsafe { GetSystemFirmwareTable(RSMB, 0, std::ptr::null_mut(), 0) };
    let mut answer = vec![0u8; length as usize];
    // SAFETY: the buffer is as long as stated.
    let written = unsafe { GetSystemFirmwareTable(RSMB, 0, answer.as_mut_ptr(), length) };
    // 0 is a failure; more than the buffer means that nothing was written.
    (written > 0 && written <= length).then(|| {
        answer.truncate(written as usize);
        answer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory device of 16 GiB in version 2.3 of the format, as Windows answers.
    fn answer() -> Vec<u8> {
        let mut device = vec![17, 0x1B, 0, 1];
        device.extend([0; 0x17]);
        (device[0x0C], device[0x0D], device[0x10], device[0x12]) = (0x00, 0x40, 1, 0x1A);
        device.extend(b"DIMM_A1\0\0");
        let mut answer = vec![0, 2, 3, 0];
        answer.extend((device.len() as u32).to_le_bytes());
        answer.extend(device);
        answer
    }

    #[test]
    fn devices_are_those_after_the_header() {
        let found = installed(&answer());
        let [device] = &found.devices[..] else { panic!("{found:?}") };
        assert_eq!(
            (device.locator.as_deref(), device.kind.as_deref(), device.size.map(|size| size.0 >> 30)),
            (Some("DIMM_A1"), Some("DDR4"), Some(16))
        );
    }

    #[test]
    fn a_damaged_answer_is_no_answer() {
        let whole = answer();
        for length in 0..whole.len() {
            let found = installed(&whole[..length]);
            assert!(found.devices.is_empty() && found.reason.is_some_and(|why| why.contains("damaged")), "{length} bytes");
        }
    }

    #[test]
    fn no_device_is_named_for_an_address() {
        assert!(device_map(Path::new("/")).unwrap_err().contains("physical addresses"));
    }
}
