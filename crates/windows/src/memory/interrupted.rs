//! Giving up what takes long.

use std::io;

/// Says whether what takes long is to be given up, such as touching gigabytes. Any thread may ask.
pub type Interrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// An error of [`io::ErrorKind::Interrupted`] once `interrupted` says so. No call of Windows that is used here has an error of this kind.
pub(super) fn interruption(interrupted: Interrupted<'_>) -> io::Result<()> {
    if interrupted() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}
