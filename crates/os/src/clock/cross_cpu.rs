//! Checks whether stamps of different CPUs can be compared.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memgauge_model::units::IdSet;

use super::calibrated::Clock;
use crate::system;

/// Exchanges per pair of CPUs. The shortest of several hundred round trips is undisturbed.
const EXCHANGES: u64 = 500;
/// The longest time for a pair. Between CPUs that are free, 500 exchanges take 0.1 to 0.5 ms.
const PAIR_LIMIT: Duration = Duration::from_millis(20);
/// A message between packages takes less than a microsecond: in a trip as long as this, a thread was off its CPU.
const LONGEST_TRIP_NS: f64 = 100_000.0;
/// The most CPUs that are compared with the first one. They are evenly spread, so that every package is among them.
const PARTNERS: usize = 16;

/// The clocks of different CPUs agree: no stamp was lower than one that its CPU had already seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockOffsets {
    /// Pairs of CPUs compared.
    pub pairs: u32,
    /// Round trips in total.
    pub exchanges: u64,
    /// The largest offset between the clocks of two CPUs, in nanoseconds, estimated from the shortest round trip of each pair. An offset of
    /// less than half a trip may as well come from the asymmetry of the trip.
    pub max_offset_ns: f64,
}

/// Why stamps of different CPUs cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// The clock of a CPU is behind that of another by more than a message takes.
    #[error("the clock of CPU {later} is behind that of CPU {earlier} by at least {ns:.0} ns")]
    Backwards {
        /// The CPU that sent its stamp.
        earlier: u32,
        /// The CPU that received it and read a lower one.
        later: u32,
        /// By how much.
        ns: f64,
    },
    /// Two CPUs could not be compared, because threads may not run there or did not run at the same time.
    #[error("the clocks of CPU {a} and CPU {b} could not be compared: {why}")]
    NotTested {
        /// One CPU.
        a: u32,
        /// The other.
        b: u32,
        /// Why.
        why: String,
    },
}

/// A stamp and the number of its exchange. It has 128 bytes for itself, because prefetchers fetch cache lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    stamp: AtomicU64,
    round: AtomicU64,
}

impl Slot {
    fn send(&self, stamp: u64, round: u64) {
        self.stamp.store(stamp, Ordering::Relaxed);
        self.round.store(round, Ordering::Release);
    }
}

#[derive(Debug, Default)]
struct Exchange {
    there: Slot,
    back: Slot,
    stop: AtomicBool,
}

impl Exchange {
    /// Waits for the stamp of `round`; `None` when the time is up or the other side has stopped.
    fn receive(&self, slot: &Slot, round: u64, deadline: Instant) -> Option<u64> {
        let mut spins = 0u32;
        while slot.round.load(Ordering::Acquire) != round {
            std::hint::spin_loop();
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(256) && (self.stop.load(Ordering::Relaxed) || Instant::now() >= deadline) {
                return None;
            }
        }
        Some(slot.stamp.load(Ordering::Relaxed))
    }
}

/// The result of the exchanges between one pair of CPUs.
#[derive(Debug, Clone, Copy, Default)]
struct PairOffset {
    exchanges: u64,
    /// Shortest round trip, in ticks.
    trip: Option<i64>,
    /// Offset at that trip, in ticks.
    offset: i64,
    /// The most ticks that a stamp of the second CPU was behind the stamp that it had received from the first.
    behind_there: i64,
    /// As `behind_there`, on the way back.
    behind_back: i64,
}

impl Clock {
    /// Compares the clock on the lowest of `cpus` with the clock on up to 16 others, by sending stamps back and forth. A pair takes about 1 ms,
    /// and at most 20 ms.
    ///
    /// # Errors
    /// When a stamp was lower than an earlier one from another CPU, or when CPUs could not be compared.
    pub fn cross_cpu_check(&self, cpus: &IdSet) -> Result<ClockOffsets, ClockError> {
        let ids: Vec<u32> = cpus.iter().collect();
        let mut result = ClockOffsets { pairs: 0, exchanges: 0, max_offset_ns: 0.0 };
        let Some((&first, others)) = ids.split_first() else { return Ok(result) };
        let count = others.len().min(PARTNERS);
        // The last CPU is always among them.
        for &other in (1..=count).map(|i| &others[i * others.len() / count - 1]) {
            let pair = self.exchange(first, other)?;
            let backwards = |earlier, later, ticks: i64| ClockError::Backwards { earlier, later, ns: self.ns(ticks.unsigned_abs()) };
            if pair.behind_there > 0 {
                return Err(backwards(first, other, pair.behind_there));
            }
            if pair.behind_back > 0 {
                return Err(backwards(other, first, pair.behind_back));
            }
            if pair.trip.is_none_or(|trip| self.ns(trip.unsigned_abs()) > LONGEST_TRIP_NS) {
                return Err(ClockError::NotTested { a: first, b: other, why: "they did not run together for a round trip".to_owned() });
            }
            result.pairs += 1;
            result.exchanges += pair.exchanges;
            result.max_offset_ns = result.max_offset_ns.max(self.ns(pair.offset.unsigned_abs()));
        }
        Ok(result)
    }

    fn exchange(&self, a: u32, b: u32) -> Result<PairOffset, ClockError> {
        let shared = Exchange::default();
        let not_tested = |why: String| ClockError::NotTested { a, b, why };
        let deadline = Instant::now() + PAIR_LIMIT;
        let (initiated, responded) = std::thread::scope(|scope| {
            let spawn = std::thread::Builder::new;
            let responder = spawn().spawn_scoped(scope, || self.respond(&shared, b, deadline))?;
            let initiator = spawn().spawn_scoped(scope, || self.initiate(&shared, a, deadline));
            if initiator.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            Ok((initiator?.join(), responder.join()))
        })
        .map_err(|e: std::io::Error| not_tested(format!("no thread can be started: {e}")))?;
        let panicked = |_| not_tested("a thread of the test ended early".to_owned());
        let pair = initiated.map_err(panicked)?.map_err(|e| not_tested(e.to_string()))?;
        responded.map_err(panicked)?.map_err(|e| not_tested(e.to_string()))?;
        if pair.exchanges == 0 {
            return Err(not_tested(format!("they did not run together within {} ms", PAIR_LIMIT.as_millis())));
        }
        Ok(pair)
    }

    fn initiate(&self, shared: &Exchange, cpu: u32, deadline: Instant) -> std::io::Result<PairOffset> {
        let pinned = system::cpu::pin_to(cpu);
        let mut pair = PairOffset::default();
        if pinned.is_ok() {
            for round in 1..=EXCHANGES {
                let sent = self.stamp();
                shared.there.send(sent, round);
                let Some(answer) = shared.receive(&shared.back, round, deadline) else { break };
                pair.add(sent, answer, self.stamp());
            }
        }
        shared.stop.store(true, Ordering::Relaxed);
        pinned.map(|()| pair)
    }

    fn respond(&self, shared: &Exchange, cpu: u32, deadline: Instant) -> std::io::Result<()> {
        let pinned = system::cpu::pin_to(cpu);
        if pinned.is_ok() {
            for round in 1..=EXCHANGES {
                if shared.receive(&shared.there, round, deadline).is_none() {
                    break;
                }
                shared.back.send(self.stamp(), round);
            }
        } else {
            shared.stop.store(true, Ordering::Relaxed);
        }
        pinned
    }
}

impl PairOffset {
    fn add(&mut self, sent: u64, answer: u64, received: u64) {
        // Differences of stamps fit into an i64 for any value of the counter.
        let there = answer.wrapping_sub(sent) as i64;
        let back = received.wrapping_sub(answer) as i64;
        self.exchanges += 1;
        self.behind_there = self.behind_there.max(-there);
        self.behind_back = self.behind_back.max(-back);
        if self.trip.is_none_or(|trip| there + back < trip) {
            self.trip = Some(there + back);
            self.offset = (there - back) / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn an_offset_shows_as_one() {
        let mut pair = PairOffset::default();
        // The second CPU's clock is 40 ahead; the trip takes 30 each way at best.
        for slow in [0, 100, 7] {
            pair.add(1000, 1000 + 30 + 40 + slow, 1000 + 60 + slow);
        }
        assert_eq!((pair.exchanges, pair.trip, pair.offset), (3, Some(60), 40));
        assert_eq!((pair.behind_there, pair.behind_back), (0, 10));
        let mut even = PairOffset::default();
        even.add(u64::MAX - 5, 10, 26);
        assert_eq!((even.offset, even.behind_there, even.behind_back), (0, 0, 0));
    }

    #[test]
    fn this_machines_cpus_agree() {
        let clock = Clock::calibrate(Path::new("/"));
        let cpus = system::cpu::process_affinity().unwrap();
        match clock.cross_cpu_check(&cpus) {
            Ok(pair) => {
                assert_eq!(pair.pairs as usize, (cpus.len() - 1).min(PARTNERS));
                assert!(pair.pairs == 0 || pair.exchanges > 0);
                // Half of the longest trip that counts.
                assert!(pair.max_offset_ns <= LONGEST_TRIP_NS / 2.0, "{pair:?}");
            }
            // A loaded machine may not let two threads run together.
            Err(ClockError::NotTested { .. }) => {}
            Err(e) => panic!("{e}"),
        }
        assert_eq!(clock.cross_cpu_check(&IdSet::one(cpus.first().unwrap())).unwrap().pairs, 0);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let clock = Clock::calibrate(Path::new("/"));
        let e = clock.cross_cpu_check(&IdSet::from_iter([0, 1_000_000])).unwrap_err();
        assert!(matches!(e, ClockError::NotTested { b: 1_000_000, .. }), "{e}");
    }
}
