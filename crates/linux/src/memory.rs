//! Buffers: memory on the node and with the pages asked for, touched, and both read back.
//!
//! A buffer is an anonymous private mapping between two guard pages, so nothing is left behind however the process ends. Its pages are bound
//! to the node with `mbind` before they are touched. When a container refuses memory policies (`EPERM` of a seccomp filter, `ENOSYS`), the
//! first touch by CPUs of that node places them instead. The result is always read back: the kind of page from `/proc/self/smaps`, and the
//! node from `move_pages` in query mode or from `/proc/self/numa_maps`.
//!
//! A buffer in a directory is a shared mapping of a file without a name (`memory/file.rs`), which is gone with the process as well.

mod allocate;
mod buffer;
mod error;
mod file;
mod interrupted;
mod map;
mod node_state;
mod page_maps;
mod placement;
mod touch;
mod watch;

pub use buffer::Buffer;
pub use interrupted::Interrupted;
pub(crate) use node_state::{THP_SWITCH, thp_disabled, thp_disabled_advice};
pub use watch::{MemoryWatch, prefer_out_of_memory_kill};
