//! A closed network: threads keep a fixed number of lines in flight, and their lines queue where memory, links and caches have a limited
//! capacity.
//!
//! A thread that keeps `L` lines in flight and waits `Z` between them moves `x = 1 / (R / L + Z)` lines a nanosecond (Little's law), where `R`
//! is the unloaded latency and the waiting at every station on the way. A station with capacity `C` and service time `S` at utilisation
//! `u = (sum of x * bytes) / C` lets lines wait `W = S * u / (2 * (1 - u))`, as a queue with random arrivals and a fixed service time does
//! (M/D/1; L. Kleinrock, "Queueing Systems", volume 1, 5.7). `S` is the time that a bank is busy with a line. The waiting times at which all
//! of this holds at once are found station by station.

/// Where lines queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Station {
    /// Bytes per nanosecond.
    pub(crate) capacity: f64,
    /// Nanoseconds that a line occupies its server.
    pub(crate) service: f64,
}

/// Threads that do the same.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) threads: f64,
    /// Latency in nanoseconds without other traffic.
    pub(crate) unloaded: f64,
    /// Lines in flight.
    pub(crate) in_flight: f64,
    /// Nanoseconds between lines.
    pub(crate) think: f64,
    /// Lines waited for, per line of work: stores that do not read first wait for less.
    pub(crate) waits: f64,
    /// Share of the lines that go to the stations.
    pub(crate) misses: f64,
    /// The stations on the way, and the bytes at each per line.
    pub(crate) stations: Vec<(usize, f64)>,
}

impl Flow {
    /// Nanoseconds of a line with these waiting times.
    fn latency(&self, waits: &[f64]) -> f64 {
        self.unloaded + self.misses * self.stations.iter().map(|(s, _)| waits[*s]).sum::<f64>()
    }

    /// Lines per nanosecond of one thread.
    fn rate(&self, waits: &[f64]) -> f64 {
        1.0 / (self.waits * self.latency(waits) / self.in_flight + self.think)
    }
}

/// The service that a flow's threads get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    /// Lines per nanosecond of one thread.
    pub(crate) rate: f64,
    /// Nanoseconds of a line.
    pub(crate) latency: f64,
}

/// Waiting times change by less than this share of a nanosecond when the network is solved.
const CLOSE: f64 = 1e-3;
const MAX_SWEEPS: usize = 60;
const HALVINGS: usize = 40;

/// The service that each flow gets when all run together.
pub(crate) fn solve(stations: &[Station], flows: &[Flow]) -> Vec<Served> {
    let mut waits = vec![0.0; stations.len()];
    let through: Vec<Vec<&Flow>> =
        (0..stations.len()).map(|s| flows.iter().filter(|f| f.stations.iter().any(|(at, _)| *at == s)).collect()).collect();
    for _ in 0..MAX_SWEEPS {
        let mut moved = 0.0_f64;
        for (s, station) in stations.iter().enumerate().filter(|(s, _)| !through[*s].is_empty()) {
            let before = waits[s];
            waits[s] = wait_at(s, station, &through[s], &mut waits);
            moved = moved.max((waits[s] - before).abs());
        }
        if moved < CLOSE {
            break;
        }
    }
    flows.iter().map(|flow| Served { rate: flow.rate(&waits), latency: flow.latency(&waits) }).collect()
}

/// The waiting time at station `s` at which the load that flows offer is the one that makes them wait so long, with the other stations as
/// they are.
fn wait_at(s: usize, station: &Station, flows: &[&Flow], waits: &mut [f64]) -> f64 {
    let offered = |wait: f64, waits: &mut [f64]| {
        waits[s] = wait;
        let bytes = |flow: &Flow| flow.stations.iter().filter(|(at, _)| *at == s).map(|(_, bytes)| bytes).sum::<f64>();
        flows.iter().map(|flow| flow.threads * flow.rate(waits) * flow.misses * bytes(flow)).sum::<f64>()
    };
    // W = S u / (2 (1 - u)), solved for u.
    let carried = |wait: f64| station.capacity * wait / (wait + station.service / 2.0);
    let mut high = 1.0;
    while offered(high, waits) > carried(high) {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if offered(middle, waits) > carried(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(threads: f64, in_flight: f64) -> Flow {
        Flow { threads, unloaded: 100.0, in_flight, think: 0.0, waits: 1.0, misses: 1.0, stations: vec![(0, 64.0)] }
    }

    #[test]
    fn one_thread_is_limited_by_its_lines_in_flight_and_many_by_the_memory() {
        let memory = [Station { capacity: 200.0, service: 10.0 }];
        let alone = solve(&memory, &[flow(1.0, 20.0)])[0];
        assert!((alone.rate * 64.0 - 12.8).abs() < 0.1, "20 lines of 64 bytes in 100 ns: {}", alone.rate * 64.0);
        let many = solve(&memory, &[flow(64.0, 20.0), flow(1.0, 1.0)]);
        let gbs = 64.0 * 64.0 * many[0].rate;
        assert!(gbs > 190.0 && gbs < 200.0, "{gbs}");
        // Little's law: all lines in flight over what the memory moves is the latency of a chase beside them.
        let expected = 64.0 * 20.0 * 64.0 / gbs;
        assert!((many[1].latency / expected - 1.0).abs() < 0.01, "{} ns, not {expected}", many[1].latency);
    }

    #[test]
    fn a_thread_that_waits_between_lines_leaves_the_memory_alone() {
        let memory = [Station { capacity: 200.0, service: 10.0 }];
        let slow = Flow { think: 100.0, ..flow(64.0, 20.0) };
        let served = solve(&memory, &[slow, flow(1.0, 1.0)]);
        assert!(served[1].latency < 104.0, "{served:?}");
    }

    #[test]
    fn what_waits_longest_decides() {
        let stations = [Station { capacity: 200.0, service: 10.0 }, Station { capacity: 50.0, service: 10.0 }];
        let far = Flow { stations: vec![(0, 64.0), (1, 64.0)], ..flow(32.0, 20.0) };
        let gbs = 32.0 * 64.0 * solve(&stations, &[far])[0].rate;
        assert!(gbs > 47.0 && gbs < 50.0, "{gbs}");
    }
}
