//! Terminals of any size, with any settings, which may go away during a run.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Result;

use super::bench::{Bench, Dice, LONGEST, Outcome};
use super::confinement::LINES;

/// The longest that a terminal stays when it goes away.
const LATEST_MS: u64 = 200;

pub(super) fn once(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let line = *dice.pick(&LINES);
    let columns = *dice.pick(&[0, 1, 2, 20, 80, 500, u16::MAX]);
    let term = *dice.pick(&["", "dumb", "xterm-256color", "\u{1b}[2J"]);
    let stays = dice.next().is_multiple_of(2);
    let after = Duration::from_micros(dice.next() % (LATEST_MS * 1000));
    let what = format!("{line}, {columns} columns, TERM={term:?}{}", if stays { String::new() } else { format!(", gone after {after:?}") });
    let Some((ours, theirs)) = terminal(columns) else {
        return Ok((what, Outcome::NotTried("no terminal can be made".to_owned())));
    };
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.env("TERM", term).env_remove("NO_COLOR").env_remove("COLUMNS");
    command.stdin(Stdio::from(theirs.try_clone()?)).stdout(Stdio::from(theirs.try_clone()?)).stderr(Stdio::from(theirs));
    // SAFETY: between fork and exec it makes two system calls only: standard input becomes the terminal of a session of its own.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            if libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let child = command.spawn()?;
    // It has the child's end of the terminal open, and reading from ours would not end before that is closed.
    drop(command);
    let (outcome, shown) = std::thread::scope(|scope| {
        let (reader, ours) = if stays {
            // Reading ends with an error once no process has the other end open.
            let read = move || {
                let mut bytes = Vec::new();
                let _ = File::from(ours).read_to_end(&mut bytes);
                bytes
            };
            (Some(scope.spawn(read)), None)
        } else {
            std::thread::sleep(after);
            (None, Some(ours))
        };
        drop(ours);
        let outcome = bench.judge(child, LONGEST);
        (outcome, reader.and_then(|reader| reader.join().ok()).unwrap_or_default())
    });
    if shown.windows(8).any(|word| word == b"panicked") {
        return Ok((what, Outcome::Failed("panicked".to_owned())));
    }
    let outcome = match outcome? {
        // Its messages went to the terminal. And a terminal that goes away ends a program that does not yet handle the signal.
        Outcome::Failed(why) if why.starts_with("failed without a word") => Outcome::Passed,
        Outcome::Failed(why) if !stays && why.starts_with(&format!("ended by signal {}:", libc::SIGHUP)) => Outcome::Passed,
        outcome => outcome,
    };
    Ok((what, outcome))
}

/// Both ends of a new terminal: ours, and that of a program.
fn terminal(columns: u16) -> Option<(OwnedFd, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes two descriptors and reads one `winsize`; names and settings are not asked for.
    let made =
        unsafe { libc::openpty(&raw mut ours, &raw mut theirs, std::ptr::null_mut(), std::ptr::null(), (&raw const size).cast_mut()) };
    if made != 0 {
        return None;
    }
    // No other process that is started here may have our end, or the terminal would stay.
    // SAFETY: both descriptors were just opened, and nothing else owns them.
    unsafe {
        libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(theirs, libc::F_SETFD, libc::FD_CLOEXEC);
        Some((OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)))
    }
}
