//! The search for a buffer that is large enough to be memory and not cache, and the short chases that it compares.

use std::sync::Arc;

use memgauge_core::experiment::ChaseOrder;
use memgauge_core::plan::Probe;
use memgauge_core::protocol::{COMPARISON_WINDOWS, MAX_COMPARISON_BURSTS, MAX_DOUBLINGS};
use memgauge_core::result::Plateau;
use memgauge_core::stats;
use memgauge_core::units::Bytes;
use memgauge_os::memory::Buffer;

use super::sampling::hop_ns;
use crate::burst::chase::Chase;
use crate::burst::runner::BurstShape;
use crate::error::CellError;
use crate::session::Session;

/// Half of a buffer agrees with the whole within this: well above noise, well below the step from a cache to memory.
const TOLERANCE: f64 = 0.05;

/// A short chase over the first `bytes` of `buffer`: median nanoseconds per hop.
pub(crate) fn short_chase_ns(
    session: &mut Session<'_>,
    probe: &Probe,
    bytes: Bytes,
    order: ChaseOrder,
    buffer: &Arc<Buffer>,
) -> Result<f64, CellError> {
    let mut chase = Chase::new(session.ring(probe, bytes, order, buffer, 0)?);
    let (clock, shape) = (session.clock(), BurstShape::cell(COMPARISON_WINDOWS));
    for _ in 0..MAX_COMPARISON_BURSTS {
        let burst = session.run_burst(Some((probe.cpu, chase)), Vec::new(), shape)?;
        let Some((trace, moved)) = burst.chase else { return Err(CellError::ChaseLost { cpu: probe.cpu }) };
        if let Some(ns) = stats::median(&hop_ns(&trace, &clock, shape)) {
            return Ok(ns);
        }
        chase = moved;
    }
    Err(CellError::ChaseStarved { cpu: probe.cpu, bursts: MAX_COMPARISON_BURSTS })
}

/// Sets the probe's buffer to a size on the plateau, as this probe has found it before or as it finds it now.
pub(crate) fn find(session: &mut Session<'_>, probe: &mut Probe) -> Result<Option<Plateau>, CellError> {
    if let Some((_, bytes, plateau)) = session.calibration.plateaus.iter().find(|(planned, ..)| planned == probe) {
        probe.buffer.bytes = *bytes;
        return Ok(*plateau);
    }
    let planned = probe.clone();
    let plateau = search(session, probe)?;
    session.calibration.plateaus.push((planned, probe.buffer.bytes, plateau));
    Ok(plateau)
}

/// Doubles the probe's buffer until half of it is as slow as all of it, so that what is measured is memory even where the machine's
/// description of its caches is wrong, as it is in many virtual machines.
fn search(session: &mut Session<'_>, probe: &mut Probe) -> Result<Option<Plateau>, CellError> {
    if probe.buffer.bytes.0 / 2 < probe.window.0 {
        return Ok(None);
    }
    let planned = probe.buffer.bytes;
    let (bytes, found) = double_until_plateau::<CellError>(planned, |bytes| {
        probe.buffer.bytes = bytes;
        let buffer = match session.chase_buffer(&probe.buffer, 0) {
            // A pool or a node may not hold the larger buffer; the one before is the best there is.
            Err(_) if bytes > planned => return Ok(None),
            buffer => buffer?,
        };
        let half_ns = short_chase_ns(session, probe, Bytes(bytes.0 / 2), ChaseOrder::WindowLocal, &buffer)?;
        let whole_ns = short_chase_ns(session, probe, bytes, ChaseOrder::WindowLocal, &buffer)?;
        let reached = whole_ns <= half_ns * (1.0 + TOLERANCE);
        let room = !session.interrupted() && session.memory.fits(&probe.buffer, Bytes(bytes.0 * 2));
        Ok(Some((Plateau { half_ns, whole_ns, reached }, room)))
    })?;
    probe.buffer.bytes = bytes;
    Ok(found)
}

/// Doubles a size until the plateau is reached. Returns the last size that was measured, with what was seen there. `measure` returns what it
/// saw and whether there is room for twice the size; `None` where the size cannot be allocated.
fn double_until_plateau<E>(
    from: Bytes,
    mut measure: impl FnMut(Bytes) -> Result<Option<(Plateau, bool)>, E>,
) -> Result<(Bytes, Option<Plateau>), E> {
    let (mut bytes, mut found) = (from, None);
    for doublings in 0..=MAX_DOUBLINGS {
        let next = Bytes(from.0 << doublings);
        let Some((plateau, room)) = measure(next)? else { break };
        (bytes, found) = (next, Some(plateau));
        if plateau.reached || !room {
            break;
        }
    }
    Ok((bytes, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes measured and the one that is left, where the plateau is reached at `reached`, twice `last` has no room and `refused` cannot be allocated.
    fn search(reached: u64, last: u64, refused: u64) -> (Vec<u64>, u64, Option<bool>) {
        let mut measured = Vec::new();
        let (bytes, found) = double_until_plateau::<()>(Bytes(100), |bytes| {
            if bytes.0 == refused {
                return Ok(None);
            }
            measured.push(bytes.0);
            Ok(Some((Plateau { half_ns: 1.0, whole_ns: 2.0, reached: bytes.0 >= reached }, bytes.0 < last)))
        })
        .unwrap();
        (measured, bytes.0, found.map(|p| p.reached))
    }

    #[test]
    fn the_size_that_is_left_was_measured() {
        assert_eq!(search(100, 9999, 0), (vec![100], 100, Some(true)));
        assert_eq!(search(400, 9999, 0), (vec![100, 200, 400], 400, Some(true)));
        assert_eq!(search(9999, 9999, 0), (vec![100, 200, 400, 800], 800, Some(false)), "three doublings and no more");
        assert_eq!(search(9999, 200, 0), (vec![100, 200], 200, Some(false)));
        assert_eq!(search(9999, 9999, 400), (vec![100, 200], 200, Some(false)), "the one before");
    }
}
