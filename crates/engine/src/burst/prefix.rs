//! Chains over the first bytes of a buffer, as many as a working set has. Those of large working sets share their windows and differ only in
//! the order of these.

use std::sync::Arc;

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::memory::Buffer;

use super::chase::{self, ChainSpec, Ring, WindowExits};
use crate::error::ChainError;

/// Working sets from here on share the windows of the largest one. Smaller ones are written anew in a millisecond, with windows that divide
/// them evenly.
const SHARED_FROM: Bytes = Bytes::mib(8);

/// The chain of a working set, in the buffer of the largest one.
pub(crate) struct Prefix<'a> {
    pub(crate) buffer: &'a Arc<Buffer>,
    /// The working set is spread over this part of the buffer.
    pub(crate) size: Bytes,
    /// The chain of the largest working set.
    pub(crate) whole: &'a ChainSpec,
    /// The CPUs that write.
    pub(crate) cpus: &'a IdSet,
}

/// Whether the chain of a working set that is spread over `size` bytes shares its windows with that of the largest one.
pub(crate) fn shares_windows(size: Bytes, whole: &ChainSpec) -> bool {
    whole.order == ChaseOrder::WindowLocal && size >= SHARED_FROM && size.0 >= 2 * whole.window.0
}

/// Writes the chain of a working set. Returns it with the window that it is random in. `exits` are those of the windows that several working
/// sets share, once they are written.
pub(crate) fn write(
    prefix: &Prefix<'_>,
    exits: &mut Option<WindowExits>,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(Ring, Bytes), ChainError> {
    let Prefix { buffer, size, whole, cpus } = *prefix;
    let (window, stride, local) = (whole.window, whole.stride, whole.order == ChaseOrder::WindowLocal);
    if shares_windows(size, whole) {
        let exits = match exits {
            Some(exits) => exits,
            None => exits.insert(chase::write_with_exits(buffer, whole, cpus, interrupted)?),
        };
        return Ok((chase::relink(buffer, &ChainSpec { bytes: size, ..whole.clone() }, exits)?, window));
    }
    // This writes over the first of the shared windows.
    *exits = None;
    // Windows of equal size, so that none of the working set is left over.
    let random_in = if local { window } else { whole.bytes };
    let windows = size.0.div_ceil(random_in.0.max(1)).max(1);
    let window = Bytes((size.0 / windows / stride.0 * stride.0).max(2 * stride.0));
    let bytes = if local { Bytes((window.0 * windows).min(size.0)) } else { size };
    Ok((chase::write(buffer, &ChainSpec { bytes, window, ..whole.clone() }, cpus, interrupted)?, window))
}
