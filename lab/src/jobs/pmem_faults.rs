//! Directories that give no memory, or stop giving it while it is measured.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_core::estimate::NotMeasured;
use memgauge_core::wording::reasons;

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
    // Until there is no more, again and again: a cell gives its space back before the next one takes it.
    let chunk = vec![1; 1 << 20];
    running.until("the space is taken", |_| {
        while file.write_all(&chunk).is_ok() {}
        free(TMPFS).is_ok_and(|now| now < 2 << 20) && filler.metadata().is_ok_and(|found| found.len() + (16 << 20) > before)
    })?;
    let ran = running.wait();
    fs::remove_file(&filler)?;
    lost_some(&ran?, TMPFS, "free")?;
    nothing_left(TMPFS, before)
}

/// The kernel knows of bad blocks of the device: pages of files there are not provided, and a load of one raises SIGBUS. The list cannot be
/// emptied again, so this is the last test on the device.
pub(super) fn bad_blocks_under_dax() -> Result<()> {
    let device = devices()?.0;
    let list = Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join("badblocks");
    let run = || memgauge(&format!("pmem {DAX} --node 0 --size 8M --time 20ms")).run();
    ensure!(run()?.status == Some(0), "nothing is wrong before");
    // A page of every MiB beyond the first 48, in sectors of 512 bytes: a file that begins below meets some, or lies among them.
    for mib in 48..250u32 {
        guest::write(&list, &format!("{} 8", mib * 2048 + 1024))?;
    }
    ensure!(guest::read(&list)?.lines().count() > 190, "{}", guest::read(&list)?);
    let ran = run()?;
    // Where the file system has put a file decides which cells are lost; that none kills the program is what counts.
    ensure!(matches!(ran.status, Some(1 | 4)), "exit status {:?} (none: a signal): {}", ran.status, ran.stderr);
    let report = ran.report.as_ref().with_context(|| format!("no result: {}", ran.stderr))?;
    let lost: Vec<String> = report.measurements().filter_map(|m| m.estimate.not_measured.as_ref()).map(reasons::not_measured).collect();
    ensure!(lost.iter().any(|why| why.contains(DAX)), "{lost:?} {}", ran.stderr);
    ensure!(ran.stderr.contains(DAX), "the message does not name it: {}", ran.stderr);
    Ok(())
}
