//! Which host this is.

use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};
use windows_sys::Win32::System::SystemInformation::{ComputerNamePhysicalDnsHostname, GetComputerNameExW};

use crate::registry;

/// Units of the longest name that is read. A name in DNS has 63 characters.
const NAME_UNITS: usize = 256;

/// The host's name in DNS, without its domain (`GetComputerNameExW`); `None` where it has none.
pub fn name(_root: &Path) -> Option<String> {
    let mut name = [0u16; NAME_UNITS];
    let mut length = name.len() as u32;
    // SAFETY: the function writes at most `length` units into `name`, which has as many, and the length of the name into `length`.
    let found = unsafe { GetComputerNameExW(ComputerNamePhysicalDnsHostname, name.as_mut_ptr(), &raw mut length) } != 0;
    found.then(|| String::from_utf16_lossy(&name[..(length as usize).min(NAME_UNITS)])).filter(|name| !name.is_empty())
}

/// The 32 hexadecimal digits of `MachineGuid`, which identify the installation; not to be published as they are.
pub fn machine_id(_root: &Path) -> Option<String> {
    digits(&registry::text(r"SOFTWARE\Microsoft\Cryptography", "MachineGuid")?)
}

fn digits(guid: &str) -> Option<String> {
    let digits = guid.replace('-', "").to_ascii_lowercase();
    (digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(digits)
}

/// A random UUID (version 4) of the system's random numbers (`BCryptGenRandom`).
pub fn random_uuid() -> Option<String> {
    let mut bytes = [0u8; 16];
    // SAFETY: the function writes as many bytes as `bytes` has. With this flag it takes no handle of an algorithm.
    let status = unsafe { BCryptGenRandom(null_mut(), bytes.as_mut_ptr(), bytes.len() as u32, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    (status >= 0).then(|| uuid(bytes))
}

/// The text of a UUID with these bytes, but for the bits of its version and variant (RFC 9562).
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_name_and_perhaps_an_id() {
        let name = name(Path::new("/")).unwrap();
        assert!(!name.is_empty() && !name.contains('\0'), "{name:?}");
        let id = machine_id(Path::new("/"));
        assert!(id.as_ref().is_none_or(|id| id.len() == 32), "{id:?}");
        assert_eq!(id, machine_id(Path::new("/")));
    }

    #[test]
    fn an_id_is_a_guid_without_hyphens() {
        let guid = "6B29FC40-CA47-1067-B31D-00DD010662DA";
        assert_eq!(digits(guid).unwrap(), "6b29fc40ca471067b31d00dd010662da");
        assert_eq!((digits(""), digits(&guid[1..]), digits("6B29FC40-CA47-1067-B31D-00DD010662DX")), (None, None, None));
    }

    #[test]
    fn uuids_have_their_form_and_differ() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        let all: std::collections::BTreeSet<String> = (0..100).map(|_| random_uuid().unwrap()).collect();
        assert_eq!(all.len(), 100);
    }
}
