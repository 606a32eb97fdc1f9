//! Buffers: memory on the node and with the pages asked for, touched, and both read back.
//!
//! A buffer is private committed memory between two guard ranges of reserved addresses, so nothing is left behind however the process ends.
//! Its region prefers the node (`VirtualAllocExNuma`). Windows follows the preference when a page is first touched, but not strictly: a full
//! node does not cause an error. The result is therefore always read back with `QueryWorkingSetEx`: the kind of each page, and its node.
//!
//! A buffer in a directory is a view of a file that Windows deletes with its last handle ([`file`](self::file)), so it is gone with the
//! process as well.

mod allocate;
mod buffer;
mod error;
mod file;
mod interrupted;
mod large;
mod map;
mod node_state;
mod placement;
mod readback;
mod touch;
mod turns;
mod watch;

pub use buffer::Buffer;
pub use interrupted::Interrupted;
pub use watch::{MemoryWatch, prefer_out_of_memory_kill};
