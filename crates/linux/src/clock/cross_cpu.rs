//! Whether stamps of different CPUs can be compared.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memgauge_core::units::IdSet;

use super::calibrated::Clock;

/// Exchanges per pair of CPUs: the shortest of some hundred round trips is undisturbed.
const EXCHANGES: u64 = 500;
/// The most time for a pair; 500 exchanges take 0.1 to 0.5 ms between CPUs that are free.
const PAIR_LIMIT: Duration = Duration::from_millis(20);
/// The most CPUs compared with the first: evenly spread, so that every package of any machine is among them.
const PARTNERS: usize = 16;

/// Stamps of different CPUs were compared, and none was earlier than one that it had seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockOffsets {
    /// Pairs of CPUs compared.
    pub pairs: u32,
    /// Round trips made in all.
    pub exchanges: u64,
    /// The largest offset between two CPUs' clocks, in nanoseconds, estimated from the shortest round trip of each pair; what lies
    /// below half of that trip cannot be told from the trip's asymmetry.
    pub worst_offset_ns: f64,
}

/// Why stamps of different CPUs cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// A CPU's clock lies behind another's by more than a message takes.
    #[error("the clock of CPU {later} is behind that of CPU {earlier} by at least {ns:.0} ns")]
    Backwards {
        /// The CPU that sent its stamp.
        earlier: u32,
        /// The CPU that read a lower one on receipt.
        later: u32,
        /// By how much.
        ns: f64,
    },
    /// Two CPUs could not be compared, because threads may not run there or did not get to run together.
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

/// A stamp and the number of the exchange that it belongs to, alone on its lines: 128 bytes, because prefetchers take lines in pairs.
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
    /// Waits for the stamp of `round`; `None` when time is up or the other side gave up.
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

/// What one pair's exchanges told.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    exchanges: u64,
    /// Shortest round trip, in ticks.
    trip: Option<i64>,
    /// Offset at that trip, in ticks.
    offset: i64,
    /// Ticks by which the second CPU's stamp lay before the first's that it had seen, at worst.
    behind_there: i64,
    /// The same on the way back.
    behind_back: i64,
}

impl Clock {
    /// Compares the clock on the lowest of `cpus` with it on up to 16 others, by sending stamps to and fro; takes about 1 ms a pair,
    /// and 20 ms at most.
    ///
    /// # Errors
    /// When a stamp was lower than one taken before it on another CPU, or CPUs could not be compared.
    pub fn cross_cpu_check(&self, cpus: &IdSet) -> Result<ClockOffsets, ClockError> {
        let ids: Vec<u32> = cpus.iter().collect();
        let mut result = ClockOffsets { pairs: 0, exchanges: 0, worst_offset_ns: 0.0 };
        let Some((&first, others)) = ids.split_first() else { return Ok(result) };
        let count = others.len().min(PARTNERS);
        // The last is always among them.
        for &other in (1..=count).map(|i| &others[i * others.len() / count - 1]) {
            let told = self.exchange(first, other)?;
            let backwards = |earlier, later, ticks: i64| ClockError::Backwards { earlier, later, ns: self.ns(ticks.unsigned_abs()) };
            if told.behind_there > 0 {
                return Err(backwards(first, other, told.behind_there));
            }
            if told.behind_back > 0 {
                return Err(backwards(other, first, told.behind_back));
            }
            result.pairs += 1;
            result.exchanges += told.exchanges;
            result.worst_offset_ns = result.worst_offset_ns.max(self.ns(told.offset.unsigned_abs()));
        }
        Ok(result)
    }

    fn exchange(&self, a: u32, b: u32) -> Result<Told, ClockError> {
        let shared = Exchange::default();
        let not_tested = |why: String| ClockError::NotTested { a, b, why };
        let deadline = Instant::now() + PAIR_LIMIT;
        let (asked, answered) = std::thread::scope(|scope| {
            let spawn = std::thread::Builder::new;
            let answers = spawn().spawn_scoped(scope, || self.answer(&shared, b, deadline))?;
            let asks = spawn().spawn_scoped(scope, || self.ask(&shared, a, deadline));
            if asks.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            Ok((asks?.join(), answers.join()))
        })
        .map_err(|e: std::io::Error| not_tested(format!("no thread can be had: {e}")))?;
        let panicked = |_| not_tested("a thread of the test ended early".to_owned());
        let told = asked.map_err(panicked)?.map_err(|e| not_tested(e.to_string()))?;
        answered.map_err(panicked)?.map_err(|e| not_tested(e.to_string()))?;
        if told.exchanges == 0 {
            return Err(not_tested(format!("they did not run together within {} ms", PAIR_LIMIT.as_millis())));
        }
        Ok(told)
    }

    fn ask(&self, shared: &Exchange, cpu: u32, deadline: Instant) -> std::io::Result<Told> {
        let pinned = crate::cpu::pin_to(cpu);
        let mut told = Told::default();
        if pinned.is_ok() {
            for round in 1..=EXCHANGES {
                let sent = self.stamp();
                shared.there.send(sent, round);
                let Some(answer) = shared.receive(&shared.back, round, deadline) else { break };
                told.add(sent, answer, self.stamp());
            }
        }
        shared.stop.store(true, Ordering::Relaxed);
        pinned.map(|()| told)
    }

    fn answer(&self, shared: &Exchange, cpu: u32, deadline: Instant) -> std::io::Result<()> {
        let pinned = crate::cpu::pin_to(cpu);
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

impl Told {
    fn add(&mut self, sent: u64, answer: u64, received: u64) {
        // Differences of stamps fit in an i64 whatever the counter's value.
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
        let mut told = Told::default();
        // The second CPU's clock is 40 ahead; the trip takes 30 each way at best.
        for slow in [0, 100, 7] {
            told.add(1000, 1000 + 30 + 40 + slow, 1000 + 60 + slow);
        }
        assert_eq!((told.exchanges, told.trip, told.offset), (3, Some(60), 40));
        assert_eq!((told.behind_there, told.behind_back), (0, 10));
        let mut even = Told::default();
        even.add(u64::MAX - 5, 10, 26);
        assert_eq!((even.offset, even.behind_there, even.behind_back), (0, 0, 0));
    }

    #[test]
    fn this_machines_cpus_agree() {
        let clock = Clock::calibrate(Path::new("/"));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let cpus: IdSet = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().parse().unwrap();
        match clock.cross_cpu_check(&cpus) {
            Ok(told) => {
                assert_eq!(told.pairs as usize, (cpus.len() - 1).min(PARTNERS));
                assert!(told.pairs == 0 || told.exchanges > 0);
                assert!(told.worst_offset_ns < 1e6, "{told:?}");
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
