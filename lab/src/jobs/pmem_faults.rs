//! Directories that give no memory, or stop giving it while it is measured.

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_model::estimate::NotMeasured;
use memgauge_model::wording::reasons;

use super::pmem_files::{DAX, TMPFS, devices, free, nothing_left};
use crate::guest;
use crate::program::{Ran, memgauge};

/// Another user's directory, and one that may be read but not written to.
pub(super) fn no_permission() -> Result<()> {
    for (name, mode, words) in [("closed", 0o700, "this user may"), ("readable", 0o755, "give a directory that this user may write to")] {
        let directory = format!("{TMPFS}/{name}");
        fs::create_dir(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode))?;
        let ran = memgauge(&format!("pmem {directory} --size 2M --time 20ms")).without_root().run();
        fs::remove_dir(&directory)?;
        ran?.refused(4, &[&directory, "Permission denied", words])?;
    }
    Ok(())
}

/// Makes sure that a run ended by itself, measured something, and lost something in this directory for a reason with these words.
fn lost_some(ran: &Ran, directory: &str, words: &str) -> Result<()> {
    ensure!(ran.status == Some(1), "exit status {:?} (none: a signal): {}", ran.status, ran.stderr);
    let report = ran.report()?;
    ensure!(report.measured() > 0 && !report.complete, "{} measured: {}", report.measured(), ran.stderr);
    let lost: Vec<&NotMeasured> = report.measurements().filter_map(|m| m.estimate.not_measured.as_ref()).collect();
    let found = lost.iter().find(|why| matches!(why, NotMeasured::NoMemory { .. } | NotMeasured::Corrupted { .. }));
    let reason = found.map(|why| reasons::not_measured(why)).with_context(|| format!("{lost:?}"))?;
    ensure!(reason.contains(directory) && reason.contains(words), "'{words}' is missing in: {reason}");
    ensure!(ran.stderr.contains(directory), "the message does not name it: {}", ran.stderr);
    Ok(())
}

/// Somebody else takes the space between one cell and the next.
pub(super) fn a_file_system_that_fills() -> Result<()> {
    let before = free(TMPFS)?;
    let running = memgauge(&format!("pmem {TMPFS} --node 0 --size 4M --time 300ms")).start()?;
    running.until("its first file has its size", |_| free(TMPFS).is_ok_and(|now| now + (4 << 20) <= before))?;
    let filler = Path::new(TMPFS).join("filler");
    let mut file = fs::File::create(&filler)?;
    // Takes all space again and again, because a cell gives its space back before the next one takes it.
    let chunk = vec![1; 1 << 20];
    running.until("the space is taken", |_| {
        while file.write_all(&chunk).is_ok() {}
        free(TMPFS).is_ok_and(|now| now < 2 << 20) && filler.metadata().is_ok_and(|found| found.len() + (16 << 20) > before)
    })?;
    let ran = running.wait();
    // Space returns when nobody has the file open.
    drop(file);
    fs::remove_file(&filler)?;
    lost_some(&ran?, TMPFS, "free")?;
    nothing_left(TMPFS, before)
}

/// FIBMAP of linux/fs.h: returns the device's block for a block of a file.
const FIBMAP: libc::Ioctl = 1;
/// The unit of the kernel's lists of bad blocks.
const SECTOR_BYTES: u64 = 512;

/// A page of every MiB that files of this directory can get, as the first of its sectors on the device: those of a file that takes all free
/// space, which is removed again.
fn pages_for_files(directory: &str) -> Result<Vec<u64>> {
    let filler = Path::new(directory).join("filler");
    let mut file = fs::File::create(&filler)?;
    // Written to, because FIBMAP gives no block for one that is only reserved.
    let chunk = vec![1; 1 << 20];
    while file.write_all(&chunk).is_ok() {}
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    let block_bytes = file.metadata()?.blksize();
    let sector = |mib: u64| {
        let mut block = libc::c_int::try_from((mib << 20) / block_bytes)?;
        // SAFETY: FIBMAP reads and writes one integer.
        ensure!(unsafe { libc::ioctl(file.as_raw_fd(), FIBMAP, &raw mut block) } == 0, "FIBMAP: {}", std::io::Error::last_os_error());
        Ok(u64::try_from(block)? * block_bytes / SECTOR_BYTES)
    };
    let sectors = (0..bytes >> 20).map(sector).collect::<Result<_>>();
    fs::remove_file(&filler)?;
    sectors
}

/// The kernel knows of bad blocks of the device, and files get them: it clears each when a page is written, so no cell is lost. Errors that
/// appear later, in pages that are in use, are those of the job `poison`. The list cannot be emptied, so this is the last test on the device.
pub(super) fn bad_blocks_under_dax() -> Result<()> {
    let device = devices()?.0;
    let list = Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join("badblocks");
    let listed = || Ok::<_, anyhow::Error>(guest::read(&list)?.lines().count());
    for sector in pages_for_files(DAX)? {
        guest::write(&list, &format!("{sector} 8"))?;
    }
    let before = listed()?;
    ensure!(before > 100, "{before} bad blocks");
    let free_before = free(DAX)?;
    memgauge(&format!("pmem {DAX} --node 0 --size 8M --time 20ms")).measure()?;
    let after = listed()?;
    ensure!(after < before, "no file got one of the {before} bad blocks");
    nothing_left(DAX, free_before)
}
