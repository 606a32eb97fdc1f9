//! The identity and the rights of this process: its token, and the accounts that own files.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, LUID, LocalFree};
use windows_sys::Win32::Security::Authorization::ConvertSidToStringSidW;
use windows_sys::Win32::Security::{
    GetLengthSid, GetTokenInformation, LUID_AND_ATTRIBUTES, LookupAccountSidW, LookupPrivilegeNameW, PSID, SID_AND_ATTRIBUTES,
    TOKEN_ELEVATION, TOKEN_INFORMATION_CLASS, TOKEN_OWNER, TOKEN_PRIVILEGES, TOKEN_QUERY, TokenElevation, TokenOwner, TokenPrivileges,
    TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The system's message. If it refused something, and this process has no administrator's rights, the text says so, too.
pub fn explained(error: &io::Error) -> String {
    explain(error, is_elevated())
}

/// The same for a thread that was not started. Windows says what was missing, so nothing is added.
pub fn explained_start(error: &io::Error) -> String {
    explain(error, None)
}

fn explain(error: &io::Error, elevated: Option<bool>) -> String {
    // Windows ends its messages with a full stop, and the library adds the number behind it.
    let text = error.to_string().replace(". (os error", " (os error");
    let refused = error.kind() == io::ErrorKind::PermissionDenied;
    if refused && elevated == Some(false) { format!("{text}; this process runs without an administrator's rights") } else { text }
}

/// Whether this process has the rights of an administrator (`TokenElevation`); `None` where its token cannot be read.
pub(crate) fn is_elevated() -> Option<bool> {
    let buffer = token_information(TokenElevation)?;
    // SAFETY: for this class the system has written one `TOKEN_ELEVATION`, and `token_information` returns at least as many bytes, aligned
    // for any structure of Windows.
    let elevation = unsafe { buffer.as_ptr().cast::<TOKEN_ELEVATION>().read() };
    (size_of_val(&*buffer) >= size_of::<TOKEN_ELEVATION>()).then_some(elevation.TokenIsElevated != 0)
}

/// The names of the privileges that this process's token has (`TokenPrivileges`), enabled or not: a program may enable those that it has.
pub(crate) fn privileges() -> Vec<String> {
    let Some(buffer) = token_information(TokenPrivileges) else { return Vec::new() };
    let list = buffer.as_ptr().cast::<TOKEN_PRIVILEGES>();
    // SAFETY: for this class the system has written a `TOKEN_PRIVILEGES`: the count, then as many entries. The buffer is aligned for it.
    let count = unsafe { (*list).PrivilegeCount } as usize;
    let room = (size_of_val(&*buffer) - std::mem::offset_of!(TOKEN_PRIVILEGES, Privileges)) / size_of::<LUID_AND_ATTRIBUTES>();
    // SAFETY: the entries begin there, in the same buffer. The address is taken without reading the array's declared length of 1.
    let first = unsafe { (&raw const (*list).Privileges).cast::<LUID_AND_ATTRIBUTES>() };
    (0..count.min(room))
        .filter_map(|at| {
            // SAFETY: `at` is below the count that the system wrote, and within the buffer. Entries may be unaligned to 8 bytes.
            let entry = unsafe { first.add(at).read_unaligned() };
            privilege_name(&entry.Luid)
        })
        .collect()
}

fn privilege_name(id: &LUID) -> Option<String> {
    let mut name = [0u16; 128];
    let mut length = name.len() as u32;
    // SAFETY: the function reads one LUID and writes at most `length` units into `name`, which has as many. All outlive the call.
    let found = unsafe { LookupPrivilegeNameW(null(), id, name.as_mut_ptr(), &raw mut length) } != 0;
    found.then(|| String::from_utf16_lossy(&name[..(length as usize).min(name.len())]))
}

/// An account or a group: the bytes of a SID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sid(Vec<u8>);

impl Sid {
    /// Copies a SID.
    ///
    /// # Safety
    /// `sid` points to a valid SID.
    pub(crate) unsafe fn copy(sid: PSID) -> Self {
        // SAFETY: the caller passes a valid SID, whose length the function computes, and which has as many bytes.
        unsafe {
            let length = GetLengthSid(sid) as usize;
            Self(std::slice::from_raw_parts(sid.cast::<u8>(), length).to_vec())
        }
    }

    /// The SID as text, such as `S-1-5-18` (`ConvertSidToStringSidW`).
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = null_mut();
        // SAFETY: the SID is a copy of a valid one. The function sets `text` to memory of its own, which is freed below.
        if unsafe { ConvertSidToStringSidW(self.pointer(), &raw mut text) } == 0 {
            return None;
        }
        // SAFETY: the function has succeeded, so `text` is a string that ends with a zero, and nobody else frees it.
        unsafe {
            let length = (0..).take_while(|&at| *text.add(at) != 0).count();
            let copy = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
            LocalFree(text.cast());
            Some(copy)
        }
    }

    /// `DOMAIN\name` (`LookupAccountSidW`), or the SID as text where it has no name.
    pub(crate) fn name(&self) -> Option<String> {
        let (mut name, mut domain) = ([0u16; 260], [0u16; 260]);
        let (mut name_length, mut domain_length, mut kind) = (name.len() as u32, domain.len() as u32, 0);
        // SAFETY: the SID is a copy of a valid one. The function writes at most as many units as the lengths say, which are those of the
        // arrays, and the lengths and the kind.
        let found = unsafe {
            LookupAccountSidW(
                null(),
                self.pointer(),
                name.as_mut_ptr(),
                &raw mut name_length,
                domain.as_mut_ptr(),
                &raw mut domain_length,
                &raw mut kind,
            )
        } != 0;
        if !found {
            return self.text();
        }
        let text = |units: &[u16]| String::from_utf16_lossy(units.split(|&unit| unit == 0).next().unwrap_or_default());
        let (name, domain) = (text(&name), text(&domain));
        Some(if domain.is_empty() { name } else { format!("{domain}\\{name}") })
    }

    fn pointer(&self) -> PSID {
        self.0.as_ptr().cast_mut().cast()
    }
}

/// The user of this process (`TokenUser`).
pub(crate) fn own_user() -> Option<Sid> {
    let buffer = token_information(TokenUser)?;
    // SAFETY: for this class the system has written a `TOKEN_USER`, which is one `SID_AND_ATTRIBUTES`, and the SID that it points to behind
    // it, in the same buffer, which lives until the end of this function.
    unsafe { Some(Sid::copy((*buffer.as_ptr().cast::<SID_AND_ATTRIBUTES>()).Sid)) }
}

/// The owner of new objects of this process (`TokenOwner`): its user, or the group of administrators.
pub(crate) fn own_owner() -> Option<Sid> {
    let buffer = token_information(TokenOwner)?;
    // SAFETY: for this class the system has written a `TOKEN_OWNER` and, behind it in the same buffer, the SID that it points to.
    unsafe { Some(Sid::copy((*buffer.as_ptr().cast::<TOKEN_OWNER>()).Owner)) }
}

/// The system's data about this process's token (`GetTokenInformation`), aligned for any structure of Windows.
fn token_information(class: TOKEN_INFORMATION_CLASS) -> Option<Vec<u64>> {
    let mut token = null_mut();
    // SAFETY: the pseudo handle of this process needs no closing, and the function writes one handle into `token`.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return None;
    }
    // SAFETY: the handle was just opened, and nothing else owns it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut buffer = vec![0u64; 32];
    loop {
        let mut needed = 0;
        // SAFETY: the function writes at most as many bytes as `buffer` has, and the number that it needs into `needed`.
        let done = unsafe {
            let bytes = size_of_val(&*buffer) as u32;
            GetTokenInformation(token.as_raw_handle(), class, buffer.as_mut_ptr().cast::<c_void>(), bytes, &raw mut needed) != 0
        };
        if done {
            return Some(buffer);
        }
        let too_small = io::Error::last_os_error().raw_os_error() == Some(ERROR_INSUFFICIENT_BUFFER as i32);
        let words = (needed as usize).div_ceil(size_of::<u64>());
        if !too_small || words <= buffer.len() {
            return None;
        }
        buffer = vec![0; words];
    }
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_DISK_FULL};

    use super::*;

    #[test]
    fn a_refusal_says_that_rights_are_missing_and_other_errors_do_not() {
        let error = |code: u32| io::Error::from_raw_os_error(code as i32);
        let refused = explain(&error(ERROR_ACCESS_DENIED), Some(false));
        assert!(refused.contains("(os error 5); this process runs without") && !refused.contains(". ("), "{refused}");
        for elevated in [Some(true), None] {
            assert!(!explain(&error(ERROR_ACCESS_DENIED), elevated).contains("administrator"));
        }
        assert!(!explain(&error(ERROR_DISK_FULL), Some(false)).contains("administrator"));
        assert!(!explained_start(&error(ERROR_ACCESS_DENIED)).contains("administrator"));
    }

    #[test]
    fn the_token_names_a_user_and_its_privileges() {
        let user = own_user().unwrap();
        assert!(user.text().unwrap().starts_with("S-1-5-"), "{user:?}");
        assert!(!user.name().unwrap().is_empty());
        assert!(own_owner().unwrap().text().unwrap().starts_with("S-1-"));
        assert!(is_elevated().is_some());
        // Every user has this one, and Wine gives it as well.
        assert!(privileges().iter().any(|name| name == "SeChangeNotifyPrivilege"), "{:?}", privileges());
    }
}
