//! Giving up what takes long.

use std::io;

/// Says whether what takes long is to be given up, such as touching gigabytes. Any thread may ask.
pub type Interrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// An error of [`io::ErrorKind::Interrupted`] once `interrupted` says so; calls of the kernel that signals interrupt are repeated, so this
/// kind has no other source.
pub(super) fn interruption(interrupted: Interrupted<'_>) -> io::Result<()> {
    if interrupted() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}
