//! How much memory each node has: the performance counter `\NUMA Node Memory(*)\Total MBytes`. No other source is documented.
//!
//! `pdh.dll` is loaded when it is needed: the smallest installations of Windows lack it, and the program must start there.

use core::ffi::{CStr, c_void};
use std::collections::BTreeMap;
use std::mem::transmute;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, FARPROC, FreeLibrary, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW};
use windows_sys::Win32::System::Performance::{
    PDH_FMT, PDH_FMT_COUNTERVALUE_ITEM_W, PDH_FMT_LARGE, PDH_HCOUNTER, PDH_HQUERY, PDH_MORE_DATA,
};
use windows_sys::core::PCWSTR;

use crate::registry::wide;

const COUNTER: &str = r"\NUMA Node Memory(*)\Total MBytes";
/// The largest answer that is taken; a node needs less than a hundred bytes.
const LARGEST: u32 = 1 << 20;
/// `PDH_CSTATUS_VALID_DATA` and `PDH_CSTATUS_NEW_DATA`: the value is one.
const VALID: [u32; 2] = [0, 1];

type OpenQuery = unsafe extern "system" fn(PCWSTR, usize, *mut PDH_HQUERY) -> u32;
type AddCounter = unsafe extern "system" fn(PDH_HQUERY, PCWSTR, usize, *mut PDH_HCOUNTER) -> u32;
type OfQuery = unsafe extern "system" fn(PDH_HQUERY) -> u32;
type GetArray = unsafe extern "system" fn(PDH_HCOUNTER, PDH_FMT, *mut u32, *mut u32, *mut PDH_FMT_COUNTERVALUE_ITEM_W) -> u32;

/// The bytes of each node; `None` where Windows does not count them, or its counters are switched off.
pub(super) fn read() -> Option<BTreeMap<u32, u64>> {
    let library = Library::load("pdh.dll")?;
    // SAFETY: the types are those of the functions in Microsoft's documentation (pdh.h), and `library` outlives their use.
    let (open, add, collect, close, get) = unsafe {
        (
            transmute::<FARPROC, Option<OpenQuery>>(library.function(c"PdhOpenQueryW"))?,
            transmute::<FARPROC, Option<AddCounter>>(library.function(c"PdhAddEnglishCounterW"))?,
            transmute::<FARPROC, Option<OfQuery>>(library.function(c"PdhCollectQueryData"))?,
            transmute::<FARPROC, Option<OfQuery>>(library.function(c"PdhCloseQuery"))?,
            transmute::<FARPROC, Option<GetArray>>(library.function(c"PdhGetFormattedCounterArrayW"))?,
        )
    };
    let mut query: PDH_HQUERY = null_mut();
    // SAFETY: no data source means the running system. The function writes one handle.
    if unsafe { open(null(), 0, &raw mut query) } != ERROR_SUCCESS {
        return None;
    }
    let query = Query { query, close };
    let mut counter: PDH_HCOUNTER = null_mut();
    let path = wide(COUNTER);
    // SAFETY: the query is open, the path ends with a zero, and the function writes one handle.
    if unsafe { add(query.query, path.as_ptr(), 0, &raw mut counter) } != ERROR_SUCCESS {
        return None;
    }
    // SAFETY: the query is open.
    if unsafe { collect(query.query) } != ERROR_SUCCESS {
        return None;
    }
    let totals: BTreeMap<u32, u64> = values(get, counter)?.into_iter().filter_map(|(name, mib)| total(&name, mib)).collect();
    (!totals.is_empty()).then_some(totals)
}

/// The node and its bytes. There is an instance for each node, whose name is its number, and one for all.
fn total(name: &str, mib: i64) -> Option<(u32, u64)> {
    Some((name.parse().ok()?, u64::try_from(mib).ok()?.checked_mul(1 << 20)?))
}

/// The values of a counter that was collected, with the names of their instances.
fn values(get: GetArray, counter: PDH_HCOUNTER) -> Option<Vec<(String, i64)>> {
    let (mut size, mut count) = (0u32, 0u32);
    // SAFETY: without a buffer the function writes only the two numbers.
    if unsafe { get(counter, PDH_FMT_LARGE, &raw mut size, &raw mut count, null_mut()) } != PDH_MORE_DATA || size > LARGEST {
        return None;
    }
    let item = size_of::<PDH_FMT_COUNTERVALUE_ITEM_W>();
    let mut items = vec![PDH_FMT_COUNTERVALUE_ITEM_W::default(); (size as usize).div_ceil(item)];
    // SAFETY: the buffer has at least `size` bytes. It holds the items and, behind them, their names.
    if unsafe { get(counter, PDH_FMT_LARGE, &raw mut size, &raw mut count, items.as_mut_ptr()) } != ERROR_SUCCESS {
        return None;
    }
    let end = items.as_ptr_range().end.cast::<u16>();
    let mut found = Vec::new();
    for item in items.iter().take(count as usize).filter(|item| VALID.contains(&item.FmtValue.CStatus)) {
        let (mut units, mut at) = (Vec::new(), item.szName.cast_const());
        // SAFETY: the name lies within the buffer, which the bounds hold it to, and ends with a zero.
        unsafe {
            while items.as_ptr().cast::<u16>() <= at && at < end && *at != 0 {
                units.push(*at);
                at = at.add(1);
            }
        }
        // SAFETY: the value was asked for as a large integer, and is valid.
        found.push((String::from_utf16_lossy(&units), unsafe { item.FmtValue.Anonymous.largeValue }));
    }
    Some(found)
}

struct Query {
    query: PDH_HQUERY,
    close: OfQuery,
}

impl Drop for Query {
    fn drop(&mut self) {
        // SAFETY: the query is open, and is not used after this. Its library is dropped later.
        unsafe { (self.close)(self.query) };
    }
}

/// A library of the system.
struct Library(HMODULE);

impl Library {
    fn load(name: &str) -> Option<Self> {
        let name = wide(name);
        // SAFETY: the name ends with a zero. Only the system's own folder is searched.
        let module = unsafe { LoadLibraryExW(name.as_ptr(), null_mut::<c_void>(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        (!module.is_null()).then_some(Self(module))
    }

    fn function(&self, name: &CStr) -> FARPROC {
        // SAFETY: the library is loaded, and the name ends with a zero.
        unsafe { GetProcAddress(self.0, name.as_ptr().cast::<u8>()) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the library is loaded, and none of its functions is called after this.
        unsafe { FreeLibrary(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_of_nodes() {
        assert_eq!(total("1", 16), Some((1, 16 << 20)));
        assert_eq!(total("_Total", 32), None);
        assert_eq!(total("0", -1), None);
        assert_eq!(total("0", i64::MAX), None);
    }

    #[test]
    fn what_is_counted_is_plausible() {
        // Wine does not have the counter, and some installations of Windows have counters switched off.
        if let Some(totals) = read() {
            let total = crate::answers::memory_status().unwrap().ullTotalPhys;
            let sum: u64 = totals.values().sum();
            assert!(sum <= total + (total >> 4) + (64 << 20) && sum >= total / 2, "{totals:?} of {total}");
        }
    }

    #[test]
    fn a_library_that_is_not_there() {
        assert!(Library::load("memgauge-no-such-library.dll").is_none());
        let kernel = Library::load("kernel32.dll").unwrap();
        assert!(kernel.function(c"GetTickCount64").is_some());
        assert!(kernel.function(c"MemgaugeNoSuchFunction").is_none());
    }
}
