//! Buffers of memory: on the node asked for, backed by the pages asked for, touched, and both read back.
//!
//! A buffer is an anonymous private mapping between two guard pages, so nothing is left behind whatever way the process ends. Its
//! pages are bound to the node with `mbind` before they are touched; where a container refuses memory policies (`EPERM` of a seccomp
//! filter, `ENOSYS`), first touch from CPUs of that node places them instead. What was obtained is never assumed: the kind of page is
//! read from `/proc/self/smaps` and the node from `move_pages` in query mode or from `/proc/self/numa_maps`.
//!
//! A buffer in a directory is a shared mapping of a file without a name ([`file`](self::file)), which is gone with the process as well.

mod allocate;
mod backing;
mod buffer;
mod error;
mod file;
mod map;
mod oom;
mod page_scan;
mod physical;
mod place;
mod readback;
mod system;
mod touch;
mod watch;

pub use buffer::Buffer;
pub use error::{MemoryError, MemoryErrorKind};
pub use oom::prefer_out_of_memory_kill;
pub use watch::MemoryWatch;
