//! What memgauge asks of Linux. [`memgauge_os`] lists what the rest of the program may use of it, one module for each module here.
//!
//! Every file of `/sys` and `/proc` is read below a root folder that the caller names, so that a recorded machine is read by the same code
//! as the live one.
//!
//! [`memgauge_os`]: ../memgauge_os/index.html

pub mod clock;
pub mod counters;
pub mod cpu;
pub mod directory;
pub mod edac;
pub mod environment;
pub mod faults;
pub mod files;
pub mod heat;
pub mod host;
pub mod interleave;
pub mod limits;
pub mod memory;
pub mod noise;
pub mod prefetch;
pub mod process;
pub mod processes;
pub mod program;
pub mod residency;
pub mod security;
pub mod signals;
pub mod start_signal;
pub mod topology;

mod cgroup;
mod container;
mod exhausted;
mod journal;
mod meminfo;
mod mount;
mod persistent;
mod policy;
mod pools;
mod setting;
mod substitute;
#[cfg(test)]
mod tests;
mod tree;
mod trusted;

/// The kernel's base page in bytes.
fn base_page() -> usize {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Makes a system call, again when a signal interrupted it, and returns its error when `succeeds` does not hold.
fn system_call(mut succeeds: impl FnMut() -> bool) -> std::io::Result<()> {
    while !succeeds() {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}
