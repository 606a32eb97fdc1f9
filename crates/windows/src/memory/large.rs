//! Large pages: the privilege that they need, and pages of 1 GiB.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{ERROR_NOT_ALL_ASSIGNED, ERROR_PROC_NOT_FOUND, HANDLE, LUID};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_LOCK_MEMORY_NAME, SE_PRIVILEGE_ENABLED, TOKEN_ADJUST_PRIVILEGES,
    TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Memory::{
    GetLargePageMinimum, MEM_COMMIT, MEM_EXTENDED_PARAMETER, MEM_EXTENDED_PARAMETER_0, MEM_EXTENDED_PARAMETER_1, MEM_LARGE_PAGES,
    MEM_RESERVE, MemExtendedParameterAttributeFlags, MemExtendedParameterNumaNode, PAGE_READWRITE,
};
use windows_sys::Win32::System::SystemServices::MEM_EXTENDED_PARAMETER_NONPAGED_HUGE;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};
use windows_sys::w;

use crate::security::explained;

/// Advice for a user without the privilege.
pub(super) const GRANT: &str =
    "grant 'Lock pages in memory' to this user (secpol.msc, Local Policies, User Rights Assignment), log on again";

/// The bytes of a large page (`GetLargePageMinimum`), with the privilege that it needs enabled for this process; or in words why there are
/// none.
pub(super) fn page() -> Result<usize, String> {
    // A privilege is part of the token that a logon makes, so it does not come while the process runs.
    static ENABLED: OnceLock<Result<(), String>> = OnceLock::new();
    // SAFETY: the call has no preconditions.
    let page = unsafe { GetLargePageMinimum() };
    if page == 0 {
        return Err("this processor has no large pages (GetLargePageMinimum is 0)".to_owned());
    }
    ENABLED.get_or_init(enable_lock_memory).clone().map(|()| page)
}

/// Enables SeLockMemoryPrivilege for this process.
fn enable_lock_memory() -> Result<(), String> {
    let refused = |e: io::Error| match e.raw_os_error() {
        Some(code) if code == ERROR_NOT_ALL_ASSIGNED as i32 => {
            "large pages need the privilege 'Lock pages in memory' (SeLockMemoryPrivilege), which this user does not have".to_owned()
        }
        _ => format!("the privilege 'Lock pages in memory' (SeLockMemoryPrivilege) cannot be enabled: {}", explained(&e)),
    };
    let mut token: HANDLE = null_mut();
    // SAFETY: the call writes one handle, and `token` is one.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(refused(io::Error::last_os_error()));
    }
    // SAFETY: the handle was just opened, and nothing else closes it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut id = LUID::default();
    // SAFETY: the name is a constant that ends in zero; the call writes one `LUID`.
    if unsafe { LookupPrivilegeValueW(null(), SE_LOCK_MEMORY_NAME, &raw mut id) } == 0 {
        return Err(refused(io::Error::last_os_error()));
    }
    let privilege = LUID_AND_ATTRIBUTES { Luid: id, Attributes: SE_PRIVILEGE_ENABLED };
    let wanted = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [privilege] };
    // SAFETY: the structure has the one entry that it states. No earlier state is asked for, so the call writes nothing.
    let adjusted = unsafe { AdjustTokenPrivileges(token.as_raw_handle(), 0, &raw const wanted, 0, null_mut(), null_mut()) };
    // The call succeeds even if it enabled nothing; the last error then says so.
    let outcome = io::Error::last_os_error();
    if adjusted == 0 || outcome.raw_os_error() == Some(ERROR_NOT_ALL_ASSIGNED as i32) { Err(refused(outcome)) } else { Ok(()) }
}

/// `VirtualAlloc2`, as its documentation declares it.
type VirtualAlloc2 = unsafe extern "system" fn(
    HANDLE,
    *const core::ffi::c_void,
    usize,
    u32,
    u32,
    *mut MEM_EXTENDED_PARAMETER,
    u32,
) -> *mut core::ffi::c_void;

/// Allocates `len` bytes in pages of 1 GiB at the address `at`, on a node if one is given. Both are multiples of 1 GiB.
///
/// # Errors
/// As of `VirtualAlloc2` with `MEM_EXTENDED_PARAMETER_NONPAGED_HUGE`; `ERROR_PROC_NOT_FOUND` on a Windows before 10 version 1803.
pub(super) fn allocate_huge(at: usize, len: usize, node: Option<u32>) -> io::Result<usize> {
    let not_found = || io::Error::from_raw_os_error(ERROR_PROC_NOT_FOUND as i32);
    // SAFETY: the name ends in zero. The library is part of every process and is never unloaded.
    let found = unsafe { GetProcAddress(GetModuleHandleW(w!("kernelbase.dll")), c"VirtualAlloc2".as_ptr().cast()) };
    // SAFETY: the function of this name has this type.
    let allocate = unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, VirtualAlloc2>(found.ok_or_else(not_found)?) };
    let parameter = |kind: i32, value: u64| MEM_EXTENDED_PARAMETER {
        Anonymous1: MEM_EXTENDED_PARAMETER_0 { _bitfield: kind as u64 },
        Anonymous2: MEM_EXTENDED_PARAMETER_1 { ULong64: value },
    };
    let mut parameters = vec![parameter(MemExtendedParameterAttributeFlags, u64::from(MEM_EXTENDED_PARAMETER_NONPAGED_HUGE))];
    parameters.extend(node.map(|node| parameter(MemExtendedParameterNumaNode, u64::from(node))));
    let kind = MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES;
    let (list, count) = (parameters.as_mut_ptr(), parameters.len() as u32);
    // SAFETY: new memory is reserved and committed, at addresses that nothing uses or not at all. The list has as many entries as stated.
    let address = unsafe { allocate(GetCurrentProcess(), at as *const core::ffi::c_void, len, kind, PAGE_READWRITE, list, count) };
    if address.is_null() { Err(io::Error::last_os_error()) } else { Ok(address as usize) }
}
