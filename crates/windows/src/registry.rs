//! Single values of the registry, below `HKEY_LOCAL_MACHINE`. A value that is missing, of another type or not readable is unknown.

use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, ERROR_SUCCESS};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_ROUTINE_FLAGS, RRF_RT_REG_BINARY, RRF_RT_REG_DWORD, RRF_RT_REG_QWORD, RRF_RT_REG_SZ, RegGetValueW,
};

/// The largest value that is read. Those that are asked for have less than a hundred bytes.
const LARGEST: usize = 64 << 10;

/// A text (`REG_SZ`) with the spaces around it removed; `None` where it is missing or empty.
pub(crate) fn text(key: &str, name: &str) -> Option<String> {
    let bytes = value(key, name, RRF_RT_REG_SZ)?;
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).take_while(|&unit| unit != 0).collect();
    let text = String::from_utf16_lossy(&units).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A number (`REG_DWORD` or `REG_QWORD`).
pub(crate) fn number(key: &str, name: &str) -> Option<u64> {
    let bytes = value(key, name, RRF_RT_REG_DWORD | RRF_RT_REG_QWORD)?;
    match bytes.len() {
        4 | 8 => Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))),
        _ => None,
    }
}

/// Bytes (`REG_BINARY`).
pub(crate) fn bytes(key: &str, name: &str) -> Option<Vec<u8>> {
    value(key, name, RRF_RT_REG_BINARY)
}

fn value(key: &str, name: &str, types: REG_ROUTINE_FLAGS) -> Option<Vec<u8>> {
    let (key, name) = (wide(key), wide(name));
    let mut buffer = vec![0u8; 256];
    loop {
        let mut size = u32::try_from(buffer.len()).ok()?;
        // SAFETY: both names end with a zero. The function writes at most `size` bytes, which is the length of `buffer`, and the size that
        // it has or needs into `size`. Both outlive the call. The type of the value is not asked for.
        let rc = unsafe {
            RegGetValueW(
                HKEY_LOCAL_MACHINE,
                key.as_ptr(),
                name.as_ptr(),
                types,
                null_mut(),
                buffer.as_mut_ptr().cast::<core::ffi::c_void>(),
                &raw mut size,
            )
        };
        match rc {
            ERROR_SUCCESS => {
                buffer.truncate(size as usize);
                return Some(buffer);
            }
            // The value may grow between two calls, so the buffer grows until it fits.
            ERROR_MORE_DATA if buffer.len() < LARGEST => buffer = vec![0; buffer.len().max(size as usize).saturating_mul(2).min(LARGEST)],
            _ => return None,
        }
    }
}

/// A text as Windows takes it, with a zero at its end.
pub(crate) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_the_type_that_is_asked_for() {
        let version = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";
        // Every Windows, and Wine, has this value.
        assert!(text(version, "CurrentBuildNumber").unwrap().parse::<u32>().unwrap() > 0);
        assert_eq!(number(version, "CurrentBuildNumber"), None, "it is a text");
        assert_eq!(bytes(version, "CurrentBuildNumber"), None, "it is a text");
        let cpu = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0";
        assert!(number(cpu, "~MHz").unwrap() > 0);
        assert_eq!(text(cpu, "~MHz"), None, "it is a number");
    }

    #[test]
    fn what_is_missing_is_unknown() {
        assert_eq!(text("memgauge no such key", "x"), None);
        assert_eq!(text(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion", "memgauge no such value"), None);
        assert_eq!(number("memgauge no such key", "x"), None);
    }

    #[test]
    fn a_text_for_windows_ends_with_a_zero() {
        assert_eq!(wide("aµ"), [0x61, 0xb5, 0]);
    }
}
