//! riscv64: sequential traffic that keeps a checksum of what it loads. None writes lines back: programs may do that only with the
//! Zicbom extension.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

/// The stored line starts as the sum so far.
pub(super) const KERNELS: &[&[&[Kernel]]] = &[&[&[in_order!("xor-scalar", AllReads, Checked, fixed, [Load a [0, 64, 128, 192]],
    chunk step!(fixed, Xor a at [0, 64, 128, 192]), finish whole!(Store "0", "{line}"), line(walk) &raw mut walk.sum)]]];
