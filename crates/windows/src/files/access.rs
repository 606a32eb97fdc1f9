//! Who may do what with a file: its owner and its list of access rights (DACL).

use std::fs::File;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GENERIC_ALL, GENERIC_WRITE, INVALID_HANDLE_VALUE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1, SE_FILE_OBJECT, SetSecurityInfo,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce, GetSecurityDescriptorControl, GetSecurityDescriptorDacl,
    INHERIT_ONLY_ACE, INHERITED_ACE, IsWellKnownSid, OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR,
    PSID, SE_DACL_PROTECTED, UNPROTECTED_DACL_SECURITY_INFORMATION, WinWorldSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ADD_FILE, FILE_DELETE_CHILD, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, ReOpenFile, WRITE_DAC, WRITE_OWNER,
};

use crate::registry::wide;
use crate::security::{Sid, own_user};

/// Kinds of entries of a list (winnt.h): one that allows, and one that denies.
const ALLOWS: u8 = 0;
const DENIES: u8 = 1;
/// The rights that let somebody put files in a folder, remove those of others, or get these rights.
const WRITING: u32 = FILE_ADD_FILE | FILE_DELETE_CHILD | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

/// A security descriptor of the system's, with owner and list.
pub(super) struct Access {
    descriptor: PSECURITY_DESCRIPTOR,
    owner: PSID,
    /// Null: everybody may do everything.
    list: *mut ACL,
}

/// One entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    kind: u8,
    flags: u32,
    rights: u32,
    everybody: bool,
}

impl Access {
    /// Reads that of a file, which must be open with `READ_CONTROL` (`GetSecurityInfo`); `None` where the file system has none.
    pub(super) fn read(file: &File) -> Option<Self> {
        let (mut descriptor, mut owner, mut list) = (null_mut(), null_mut(), null_mut());
        let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
        // SAFETY: the handle is open while `file` lives. The function writes three pointers: the descriptor, which is ours to free, and two
        // into it.
        let status = unsafe {
            let handle = file.as_raw_handle();
            GetSecurityInfo(handle, SE_FILE_OBJECT, what, &raw mut owner, null_mut(), &raw mut list, null_mut(), &raw mut descriptor)
        };
        (status == ERROR_SUCCESS && !descriptor.is_null()).then_some(Self { descriptor, owner, list })
    }

    pub(super) fn owner(&self) -> Option<Sid> {
        // SAFETY: a pointer that is not null points to a valid SID in the descriptor, which lives as long as `self`.
        (!self.owner.is_null()).then(|| unsafe { Sid::copy(self.owner) })
    }

    pub(super) fn lets_everybody_write(&self) -> bool {
        self.list.is_null() || lets_write(&self.entries())
    }

    /// Whether some of it was given to the file itself, and is not inherited.
    pub(super) fn is_own_of_the_file(&self) -> bool {
        self.is_protected() || self.list.is_null() || self.entries().iter().any(|entry| entry.flags & INHERITED_ACE == 0)
    }

    /// Whether nothing is inherited.
    fn is_protected(&self) -> bool {
        let (mut control, mut revision) = (0, 0);
        // SAFETY: the descriptor is valid while `self` lives, and the function writes two numbers.
        let read = unsafe { GetSecurityDescriptorControl(self.descriptor, &raw mut control, &raw mut revision) } != 0;
        read && control & SE_DACL_PROTECTED != 0
    }

    /// Gives the list to another file, which may be open without the right for that.
    pub(super) fn give_to(&self, file: &File) -> bool {
        let inherits = if self.is_protected() { PROTECTED_DACL_SECURITY_INFORMATION } else { UNPROTECTED_DACL_SECURITY_INFORMATION };
        // SAFETY: the handle is open while `file` lives. The function takes numbers besides.
        let changing = unsafe { ReOpenFile(file.as_raw_handle(), WRITE_DAC, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, 0) };
        if changing == INVALID_HANDLE_VALUE {
            return false;
        }
        // SAFETY: the handle was just opened, and nothing else owns it.
        let changing = unsafe { OwnedHandle::from_raw_handle(changing) };
        // SAFETY: the list is null or valid while `self` lives, and the function only reads it.
        unsafe { set_list(&changing, inherits, self.list) }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        if self.list.is_null() {
            return all;
        }
        // SAFETY: the list is valid while `self` lives.
        let count = unsafe { (*self.list).AceCount };
        for at in 0..u32::from(count) {
            let mut entry = null_mut();
            // SAFETY: the list is valid, and the function writes one pointer into it.
            if unsafe { GetAce(self.list, at, &raw mut entry) } == 0 {
                break;
            }
            // SAFETY: every entry begins with its header.
            let ACE_HEADER { AceType: kind, AceFlags: flags, .. } = unsafe { *entry.cast::<ACE_HEADER>() };
            // Others are for objects of directory services or under conditions.
            if kind != ALLOWS && kind != DENIES {
                continue;
            }
            let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
            // SAFETY: entries of both kinds have this form: the rights, and then a valid SID in place of `SidStart`.
            let (rights, everybody) = unsafe { ((*entry).Mask, IsWellKnownSid((&raw mut (*entry).SidStart).cast(), WinWorldSid) != 0) };
            all.push(Entry { kind, flags: u32::from(flags), rights, everybody });
        }
        all
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        // SAFETY: the system has made the descriptor with `LocalAlloc` and handed it to this value; nothing refers to it any more.
        unsafe { LocalFree(self.descriptor) };
    }
}

/// Whether these entries, in their order, give everybody one of the rights to write: the first that names a right decides.
fn lets_write(entries: &[Entry]) -> bool {
    let mut denied = 0;
    entries.iter().filter(|entry| entry.everybody && entry.flags & INHERIT_ONLY_ACE == 0).any(|entry| {
        if entry.kind == DENIES {
            denied |= entry.rights;
        }
        entry.kind == ALLOWS && entry.rights & WRITING & !denied != 0
    })
}

/// Lets only this user, administrators and the system open the file, which must be open with `WRITE_DAC`.
pub(super) fn keep_private(file: &File) -> bool {
    let Some(user) = own_user().and_then(|user| user.text()) else { return false };
    let text = wide(&format!("D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;{user})"));
    let mut descriptor = null_mut();
    // SAFETY: the text ends with a zero. The function writes one pointer, to a descriptor that is ours to free.
    let made =
        unsafe { ConvertStringSecurityDescriptorToSecurityDescriptorW(text.as_ptr(), SDDL_REVISION_1, &raw mut descriptor, null_mut()) };
    if made == 0 {
        return false;
    }
    let made = Access { descriptor, owner: null_mut(), list: null_mut() };
    let (mut present, mut list, mut by_default) = (0, null_mut(), 0);
    // SAFETY: the descriptor is valid while `made` lives. The function writes two numbers and a pointer into the descriptor.
    let found = unsafe { GetSecurityDescriptorDacl(made.descriptor, &raw mut present, &raw mut list, &raw mut by_default) } != 0;
    // SAFETY: the list is valid while `made` lives, and the function only reads it. Null is never passed: it would open the file to all.
    found && present != 0 && !list.is_null() && unsafe { set_list(file, PROTECTED_DACL_SECURITY_INFORMATION, list) }
}

/// # Safety
/// `list` is null or points to a valid list.
unsafe fn set_list(file: &impl AsRawHandle, inherits: u32, list: *const ACL) -> bool {
    let what = DACL_SECURITY_INFORMATION | inherits;
    // SAFETY: the handle is open while `file` lives, and the caller passes a list.
    let status = unsafe { SetSecurityInfo(file.as_raw_handle(), SE_FILE_OBJECT, what, null_mut(), null_mut(), list, null_mut()) };
    status == ERROR_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_may_write_where_the_first_entry_about_it_says_so() {
        let entry = |kind, rights, flags, everybody| Entry { kind, flags, rights, everybody };
        let allow = |rights| entry(ALLOWS, rights, 0, true);
        assert!(lets_write(&[allow(FILE_ADD_FILE)]) && lets_write(&[allow(GENERIC_ALL)]) && lets_write(&[allow(FILE_DELETE_CHILD)]));
        assert!(!lets_write(&[allow(0x1_200A9)]), "read and execute");
        assert!(!lets_write(&[entry(ALLOWS, GENERIC_ALL, 0, false)]), "somebody");
        assert!(!lets_write(&[entry(ALLOWS, GENERIC_ALL, INHERIT_ONLY_ACE, true)]), "what is in it");
        assert!(!lets_write(&[entry(DENIES, FILE_ADD_FILE, 0, true), allow(FILE_ADD_FILE)]));
        assert!(lets_write(&[entry(DENIES, FILE_ADD_FILE, 0, true), allow(FILE_ADD_FILE | WRITE_DAC)]));
        assert!(lets_write(&[allow(FILE_ADD_FILE), entry(DENIES, FILE_ADD_FILE, 0, true)]), "the order decides");
        assert!(!lets_write(&[]));
    }
}
