//! Memory that is free only in single pages, which nothing can join.

use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result, ensure};

use crate::guest::read;

const PAGE: usize = 4096;
/// The most bytes that a pipe may hold without privilege (`/proc/sys/fs/pipe-max-size`).
const PIPE: usize = 1 << 20;
/// `MPOL_PREFERRED` of linux/mempolicy.h: this node while it has memory, then others, so that nothing is killed for want of it.
const PREFERRED: libc::c_long = 1;

/// Pages that keep a node's free memory in pieces while they live.
pub struct Pieces(#[expect(dead_code, reason = "held, not used")] Vec<(PipeReader, PipeWriter)>);

/// Takes all free memory of `node` and gives every other page back. It keeps pages in pipes, because the kernel cannot move those, unlike a
/// process's pages, locked or not.
///
/// # Errors
/// The kernel's error.
pub fn node(node: u32) -> Result<Pieces> {
    let meminfo = read(format!("/sys/devices/system/node/node{node}/meminfo"))?;
    let free = meminfo.lines().find(|l| l.contains("MemFree:")).and_then(|l| l.split_whitespace().rev().nth(1)?.parse::<usize>().ok());
    let pages = (free.context("the node does not say how much is free")? << 10) / PAGE;
    let (mut kept, mut given_back) = (Vec::new(), Vec::new());
    prefer(Some(node))?;
    let filled = (|| {
        for _ in 0..pages.div_ceil(2 * PIPE / PAGE) {
            let (mut one, mut other) = (large_pipe()?, large_pipe()?);
            for _ in 0..PIPE / PAGE {
                one.1.write_all(&[1; PAGE])?;
                other.1.write_all(&[1; PAGE])?;
            }
            kept.push(one);
            given_back.push(other);
        }
        Ok(())
    })();
    prefer(None)?;
    filled.map(|()| Pieces(kept))
}

fn large_pipe() -> Result<(PipeReader, PipeWriter)> {
    let ends = pipe()?;
    // SAFETY: an open file of this process.
    let size = unsafe { libc::fcntl(ends.1.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
    ensure!(size == PIPE as libc::c_int, "F_SETPIPE_SZ: {}", std::io::Error::last_os_error());
    Ok(ends)
}

/// Where this thread's pages come from; `None`: as usual.
fn prefer(node: Option<u32>) -> Result<()> {
    let (mode, mask) = node.map_or((0, 0u64), |node| (PREFERRED, 1 << node));
    // SAFETY: the mask has the 64 bits that the call is given; the call reads one bit fewer.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, 65) };
    ensure!(done == 0, "set_mempolicy: {}", std::io::Error::last_os_error());
    Ok(())
}
