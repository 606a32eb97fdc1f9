//! What memgauge asks of Windows. [`memgauge_os`] lists what the rest of the program may use of it, one module for each module here.
//!
//! The modules that interpret answers about CPUs, nodes and memory devices (`answers`, [`topology`]) are built and tested on every system; the
//! rest is empty on systems other than Windows.
//!
//! [`memgauge_os`]: ../memgauge_os/index.html

mod answers;
#[cfg(windows)]
pub mod clock;
#[cfg(windows)]
pub mod counters;
#[cfg(windows)]
pub mod cpu;
#[cfg(windows)]
pub mod directory;
#[cfg(windows)]
pub mod edac;
#[cfg(windows)]
pub mod environment;
#[cfg(windows)]
pub mod faults;
#[cfg(windows)]
pub mod files;
#[cfg(windows)]
pub mod heat;
#[cfg(windows)]
pub mod host;
#[cfg(windows)]
pub mod interleave;
#[cfg(windows)]
mod job;
#[cfg(windows)]
mod limits;
#[cfg(windows)]
pub mod memory;
#[cfg(windows)]
pub mod noise;
#[cfg(windows)]
pub mod prefetch;
#[cfg(windows)]
pub mod process;
#[cfg(windows)]
pub mod processes;
#[cfg(windows)]
pub mod program;
#[cfg(windows)]
mod registry;
#[cfg(windows)]
pub mod residency;
#[cfg(windows)]
pub mod security;
#[cfg(windows)]
pub mod signals;
#[cfg(windows)]
pub mod start_signal;
pub mod topology;
