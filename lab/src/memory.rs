//! The memory of a process that runs: where its buffers are, errors of the hardware in them, and blocks of memory that come and go.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::guest;
use crate::program::Running;

/// Bytes of a page on the guests that use this.
pub const PAGE: u64 = 4096;
/// Bits 0 to 54 of an entry of `/proc/PID/pagemap`: where the page is, in pages.
const FRAME: u64 = (1 << 55) - 1;
/// Bit 63: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// How long a page must stay where it is before an error is put there: the kernel may be joining pages to huge ones.
const SETTLED: Duration = Duration::from_millis(20);

/// CPU time that memgauge uses after a page is there before an error is put there: it has read back by then where its pages are, and of what
/// size. An error before that splits a huge page, and memgauge finds that only half of its buffer has one.
const READ_BACK: Duration = Duration::from_millis(50);

/// A range of addresses that a process measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its first address.
    pub start: u64,
    /// Its size.
    pub bytes: u64,
    /// The file behind it; empty for anonymous memory.
    pub path: String,
}

/// The buffers of memgauge: they are the ranges that it keeps out of core dumps (`dd` of `VmFlags`), and those of pages of pools (`ht`).
pub fn buffers(process: u32) -> Vec<Buffer> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps")).unwrap_or_default();
    let mut range = None;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            found.extend(range.take().filter(|_| flags.split_whitespace().any(|flag| ["dd", "ht"].contains(&flag))));
        } else if let Some(header) = header(line) {
            range = header;
        }
    }
    found
}

/// The buffer in the first line of an entry of smaps, if it is writable memory; `None` if `line` is another one.
fn header(line: &str) -> Option<Option<Buffer>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let writable = words.next()?.starts_with("rw");
    let path = words.skip(3).collect::<Vec<_>>().join(" ");
    Some(writable.then_some(Buffer { start, bytes: end - start, path }))
}

/// The physical address of the page at an address of a process; `None` if the page is not in memory, or the process has ended.
fn physical(process: u32, address: u64) -> Option<u64> {
    let mut entry = [0; 8];
    File::open(format!("/proc/{process}/pagemap")).ok()?.read_exact_at(&mut entry, address / PAGE * 8).ok()?;
    let entry = u64::from_ne_bytes(entry);
    (entry & PRESENT != 0 && entry & FRAME != 0).then_some((entry & FRAME) * PAGE)
}

/// CPU time of all threads of a process so far, of those that have not ended.
fn cpu_time(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    // The first number: nanoseconds on a CPU.
    let used = |task: fs::DirEntry| fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok();
    Duration::from_nanos(tasks.filter_map(used).sum())
}

/// A page that has an error.
#[derive(Debug, Clone)]
pub struct Poisoned {
    /// Its place in its buffer, in bytes.
    pub offset: u64,
    /// Its place in physical memory.
    pub physical: u64,
}

/// Waits until memgauge has a buffer of this size, and lets the kernel treat the page at `offset` in it as if the hardware had reported
/// an uncorrectable error there. The buffer must live for a second or so: a page that was given back meanwhile may be anybody's.
///
/// # Errors
/// When there is no such buffer within half a minute, or the kernel refuses.
pub fn poison(running: &Running, bytes: u64, offset: u64) -> Result<Poisoned> {
    let mut place = None;
    running.until("it has touched its buffer", |id| {
        place = buffers(id).into_iter().find(|buffer| buffer.bytes == bytes).and_then(|buffer| {
            let (before, used) = (physical(id, buffer.start + offset)?, cpu_time(id));
            std::thread::sleep(SETTLED);
            while cpu_time(id).saturating_sub(used) < READ_BACK && physical(id, buffer.start + offset) == Some(before) {
                std::thread::sleep(Duration::from_millis(1));
            }
            physical(id, buffer.start + offset).filter(|after| *after == before)
        });
        place.is_some()
    })?;
    let physical = place.context("it has no place")?;
    guest::write("/sys/devices/system/memory/hard_offline_page", &format!("{physical:#x}"))?;
    Ok(Poisoned { offset, physical })
}

/// KiB that the kernel has set aside because of errors.
///
/// # Errors
/// When it does not say so.
pub fn corrupted() -> Result<u64> {
    let meminfo = guest::read("/proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("HardwareCorrupted:")).context("no HardwareCorrupted")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The memory blocks of a node, and whether each is online.
///
/// # Errors
/// When they cannot be read.
pub fn blocks(node: u32) -> Result<BTreeMap<u32, bool>> {
    let folder = format!("/sys/devices/system/node/node{node}");
    let mut blocks = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.clone())? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(number) = name.to_str().and_then(|name| name.strip_prefix("memory")?.parse().ok()) {
            blocks.insert(number, guest::read(entry.path().join("state"))? == "online");
        }
    }
    Ok(blocks)
}

/// Takes a block of memory offline, or back online for pages that can be moved. Pages in passing use make the kernel refuse; it has them moved a
/// moment later.
///
/// # Errors
/// When the kernel refuses for long.
pub fn set_block(number: u32, online: bool) -> Result<()> {
    let state = Path::new("/sys/devices/system/memory").join(format!("memory{number}/state"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = guest::write(&state, if online { "online_movable" } else { "offline" }) {
        ensure!(Instant::now() < deadline, error);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_of_entries_are_told_from_others() {
        let buffer = header("7f0000200000-7f0000600000 rw-s 00000000 00:1d 12 /tmp/dax/#12 (deleted)").unwrap().unwrap();
        assert_eq!((buffer.start, buffer.bytes, buffer.path.as_str()), (0x7f00_0020_0000, 4 << 20, "/tmp/dax/#12 (deleted)"));
        assert_eq!(header("7f0000200000-7f0000201000 ---p 00000000 00:00 0"), Some(None));
        for line in ["Size:               4096 kB", "VmFlags: rd wr mr mw me ac dd", "THPeligible:    0"] {
            assert_eq!(header(line), None, "{line}");
        }
    }
}
