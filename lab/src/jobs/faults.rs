//! A device that returns errors while it is measured: pages with hardware errors, and a disc that goes away. Both raise SIGBUS.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memgauge_core::estimate::NotMeasured;
use memgauge_core::wording::reasons;

use crate::contract::SHARE;
use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{Ran, Running, memgauge};

pub(crate) const JOB: Job = Job {
    name: "faults",
    about: "poisoned pages of files in memory, of a page cache and of DAX, a hundred times; a disc that goes away",
    optional: false,
    machine: Machine {
        qemu: QEMU,
        kernel: &["memmap=256M!512M"],
        modules: &["nd_e820", "nd_pmem", "virtio_blk", "crc32c_generic", "ext4"],
        tools: &["mke2fs"],
        ..PLAIN
    },
    tests: tests![
        file_systems,
        each_command_says_where_the_error_is,
        a_hundred_poisoned_pages,
        a_hundred_that_the_kernel_announces,
        poisoned_page_cache,
        poisoned_dax,
        disc_goes_away,
    ],
};

const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 1G",
    "-drive if=none,id=disc,format=raw,snapshot=on,file.driver=null-co,file.size=134217728,file.read-zeroes=on",
    "-device virtio-blk-pci,bus=pcie.0,drive=disc",
];

const TMPFS: &str = "/tmp/tmpfs";
const DAX: &str = "/tmp/dax";
const DISC: &str = "/tmp/disc";
const DAX_DEVICE: &str = "/dev/pmem0";
const DISC_DEVICE: &str = "/dev/vda";
const EARLY_KILL: &str = "/proc/sys/vm/memory_failure_early_kill";

const PAGE: u64 = 4096;
/// Of each file that is measured.
const FILE: u64 = 2 << 20;
/// asm-generic/mman-common.h.
const MADV_PAGEOUT: libc::c_int = 21;
const MADV_HWPOISON: libc::c_int = 100;
/// What a reason says of a poisoned page.
const POISONED: &str = "has a hardware memory error at byte ";

/// Not a test of memgauge, but the ground of all others.
fn file_systems() -> Result<()> {
    guest::mount("tmpfs", TMPFS, "tmpfs", "size=96m")?;
    for (device, directory, options) in [(DAX_DEVICE, DAX, "dax"), (DISC_DEVICE, DISC, "")] {
        guest::appears(Path::new(device))?;
        let output = Command::new("/tools/mke2fs").args(["-q", "-F", "-t", "ext4", "-b", "4096", "-E", "nodiscard", device]).output()?;
        ensure!(output.status.success(), "mke2fs {device}: {}", String::from_utf8_lossy(&output.stderr));
        guest::mount(device, directory, "ext4", options)?;
    }
    Ok(())
}

/// A mapping of another process.
struct Range {
    start: u64,
    end: u64,
}

/// The mappings of whole files of `FILE` bytes in a directory. One with a page that was replaced is in pieces.
fn files(process: u32, directory: &str) -> Vec<Range> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        rest.contains(&format!(" {directory}/")).then_some(())?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).ok());
        Some(Range { start: start?, end: end? }).filter(|range| range.end - range.start == FILE)
    };
    maps.lines().filter_map(range).collect()
}

/// Poisons a page of a file that another process has mapped. `false` where the mapping has gone.
fn poison(process: u32, range: &Range, page: u64) -> Result<bool> {
    let path = format!("/proc/{process}/map_files/{:x}-{:x}", range.start, range.end);
    let Ok(file) = File::options().read(true).write(true).open(path) else { return Ok(false) };
    // A process of its own, as the kernel kills whoever poisons a page of persistent memory.
    // SAFETY: the child makes system calls and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a mapping at an address of the kernel's choice, of a file that is as long as that; the process ends with it.
        unsafe {
            let flags = libc::PROT_READ | libc::PROT_WRITE;
            let at =
                libc::mmap(std::ptr::null_mut(), PAGE as usize, flags, libc::MAP_SHARED, file.as_raw_fd(), (page * PAGE) as libc::off_t);
            if at == libc::MAP_FAILED {
                libc::_exit(1);
            }
            std::ptr::read_volatile(at.cast::<u8>());
            let done = libc::madvise(at, PAGE as usize, MADV_HWPOISON);
            libc::_exit(if done == 0 { 0 } else { 2 });
        }
    }
    ensure!(child > 0, "fork: {}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: waits for the child of this function.
    ensure!(unsafe { libc::waitpid(child, &raw mut status, 0) } == child, "waitpid: {}", std::io::Error::last_os_error());
    let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS;
    let code = libc::WEXITSTATUS(status);
    // 1: the file was truncated or removed meanwhile.
    ensure!(killed || code < 2, "madvise(MADV_HWPOISON): exit status {code}; this kernel has no CONFIG_MEMORY_FAILURE");
    Ok(killed || code == 0)
}

/// Poisons a page of every file that a run has in a directory, again and again until it has ended.
fn poison_all_along(running: Running, directory: &str) -> Result<Ran> {
    let mut page = 7;
    running.while_it_runs(Duration::from_secs(100), |id| {
        // Not before it measures: what fails while a file is made is another error.
        if running.workers().is_empty() {
            return Ok(());
        }
        for range in files(id, directory) {
            // Not the first page, and another one each time.
            page = 1 + (page * 37) % (FILE / PAGE - 1);
            poison(id, &range, page)?;
        }
        Ok(())
    })?;
    running.wait()
}

/// Cells that were lost by poisoned pages of a run that ended by itself; each says in which directory and at which byte.
fn lost(ran: &Ran, directory: &str) -> Result<usize> {
    ensure!(matches!(ran.status, Some(1 | 4)), "exit status {:?} (none: a signal): {}", ran.status, ran.stderr);
    let report = ran.report()?;
    let mut lost = 0;
    for m in report.measurements() {
        let Some(reason @ NotMeasured::Corrupted { .. }) = &m.estimate.not_measured else { continue };
        let text = reasons::not_measured(reason);
        let (before, after) = text.split_once(POISONED).with_context(|| format!("not a poisoned page: {text}"))?;
        ensure!(before.ends_with(&format!("its file in {directory} ")), "{text}");
        let byte: String = after.chars().take_while(char::is_ascii_digit).collect();
        let byte: u64 = byte.parse().with_context(|| text.clone())?;
        ensure!(byte > 0 && byte < FILE && byte.is_multiple_of(PAGE), "{text}");
        lost += 1;
    }
    ensure!(lost == 0 || ran.stderr.contains(POISONED), "not a word of it: {}", ran.stderr);
    ensure!(lost == 0 || report.notes.iter().any(|n| n.code == "memory-corrupted" && n.advice.is_some()), "{:?}", report.notes);
    Ok(lost)
}

fn each_command_says_where_the_error_is() -> Result<()> {
    for command in ["latency", "bandwidth", "loaded --delay 0,2000"] {
        let running = memgauge(&format!("{command} --size 2M --time 300ms --memory-dir {TMPFS}")).start()?;
        let ran = poison_all_along(running, TMPFS)?;
        ensure!(lost(&ran, TMPFS)? > 0, "{command}: nothing was lost: {}", ran.stderr);
    }
    Ok(())
}

/// Runs of the suite until this many pages have cost a cell each.
fn suites(directory: &str, wanted: usize) -> Result<()> {
    let (mut found, mut runs, began) = (0, 0, Instant::now());
    while found < wanted {
        let running = memgauge(&format!("pmem {directory} --size 2M --time 40ms")).start()?;
        let ran = poison_all_along(running, directory)?;
        found += lost(&ran, directory)?;
        runs += 1;
        ensure!(began.elapsed() < Duration::from_secs(100), "{found} of {wanted} pages in {runs} runs");
    }
    let summary = format!("{found} poisoned pages in {directory}, {runs} runs of the suite, {:.0} s\n", began.elapsed().as_secs_f64());
    let kept = Path::new(SHARE).join(format!("{}.txt", guest::current()));
    std::fs::write(&kept, summary).with_context(|| format!("cannot write {}", kept.display()))
}

/// The kernel tells whoever uses the page (`BUS_MCEERR_AR`).
fn a_hundred_poisoned_pages() -> Result<()> {
    suites(TMPFS, 100)
}

/// The kernel tells every process that has it mapped, used or not (`BUS_MCEERR_AO`).
fn a_hundred_that_the_kernel_announces() -> Result<()> {
    guest::write(EARLY_KILL, "1")?;
    let outcome = suites(TMPFS, 100);
    guest::write(EARLY_KILL, "0")?;
    outcome
}

fn poisoned_page_cache() -> Result<()> {
    suites(DISC, 5)
}

/// Of a page of persistent memory the kernel tells at once, whatever is set.
fn poisoned_dax() -> Result<()> {
    suites(DAX, 5)
}

/// Its pages are taken out of memory once there is no disc to read them from again.
fn disc_goes_away() -> Result<()> {
    let running = memgauge(&format!("latency --size 2M --time 5s --memory-dir {DISC}")).start()?;
    running.until("it measures", |_| !running.workers().is_empty())?;
    running.until("it has a whole file", |id| !files(id, DISC).is_empty())?;
    let folder = File::open(DISC)?;
    // SAFETY: an open file.
    ensure!(unsafe { libc::syncfs(folder.as_raw_fd()) } == 0, "syncfs: {}", std::io::Error::last_os_error());
    let device = Path::new("/sys/block/vda/device").canonicalize()?;
    guest::write(device.parent().context("no bus")?.join("remove"), "1")?;
    running.while_it_runs(Duration::from_secs(60), |id| files(id, DISC).iter().try_for_each(|range| page_out(id, range)))?;
    let ran = running.wait()?;
    ensure!(matches!(ran.status, Some(1 | 4)), "exit status {:?} (none: a signal): {}", ran.status, ran.stderr);
    let words = "the file system or device failed to provide byte ";
    let reasons: Vec<String> =
        ran.report()?.measurements().filter_map(|m| m.estimate.not_measured.as_ref().map(reasons::not_measured)).collect();
    ensure!(reasons.iter().any(|r| r.contains(words) && r.contains(DISC) && !r.contains("truncated")), "{reasons:?}");
    ran.refused(ran.status.unwrap_or_default(), &[words, "dmesg"])
}

/// Has the kernel take a range of another process out of memory.
fn page_out(process: u32, range: &Range) -> Result<()> {
    let part = libc::iovec { iov_base: range.start as *mut libc::c_void, iov_len: (range.end - range.start) as usize };
    // SAFETY: the numbers are those of a process and of a range of its addresses, none of this one's.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, process, 0) as libc::c_int;
        if process >= 0 {
            // What cannot be taken out now can be a moment later.
            libc::syscall(libc::SYS_process_madvise, process, &raw const part, 1, MADV_PAGEOUT, 0);
            libc::close(process);
        }
    }
    Ok(())
}
