//! A core that reads its clock ahead of the loads that it waits for, as real ones do: for tests and simulated machines.

use std::cell::Cell;

use memgauge_os::clock::Clock;

use super::windows::ThreadClock;

/// Ticks are nanoseconds here; the clock's own are made at the edge.
pub(crate) struct Pipeline {
    clock: Clock,
    /// The time up to which the core has read instructions: the thread has come this far.
    front_ns: Cell<f64>,
    /// When the last hop has its data.
    done_ns: Cell<f64>,
    /// Hops of a chase that wait in the core while it goes on.
    in_flight: f64,
    ghz: f64,
}

/// What a reading of the clock and one of the CPU time take.
const READING_NS: f64 = 10.0;
const CALL_NS: f64 = 200.0;

impl Pipeline {
    /// A thread that begins `now`, in ticks of `clock`, on a core that has up to `in_flight` hops in flight.
    pub(crate) fn new(clock: &Clock, now: u64, in_flight: u32, ghz: f64) -> Self {
        let now_ns = Cell::new(clock.ns(now));
        Self { clock: *clock, front_ns: now_ns.clone(), done_ns: now_ns, in_flight: f64::from(in_flight), ghz }
    }

    /// When the core has all the data that it waits for.
    pub(crate) fn done_ns(&self) -> f64 {
        self.done_ns.get().max(self.front_ns.get())
    }

    /// Makes `hops` hops, each of which takes `ns`.
    pub(crate) fn hop(&self, hops: usize, ns: f64) {
        self.done_ns.set(self.done_ns() + hops as f64 * ns);
        self.front_ns.set(self.front_ns.get().max(self.done_ns.get() - self.in_flight * ns));
    }

    /// Waits for the hops on their way.
    fn drain(&self) {
        self.front_ns.set(self.done_ns());
    }

    fn read(&self) -> u64 {
        let read = self.front_ns.get();
        self.front_ns.set(read + READING_NS);
        (read / self.clock.ns(1)).round() as u64
    }
}

impl ThreadClock for Pipeline {
    fn now(&self) -> u64 {
        self.read()
    }

    fn stamp(&self) -> u64 {
        self.drain();
        self.read()
    }

    fn is_early(&self) -> bool {
        true
    }

    fn cpu_ns(&self) -> Option<u64> {
        // A system call waits for the loads before it.
        self.drain();
        self.front_ns.set(self.front_ns.get() + CALL_NS);
        Some(self.front_ns.get() as u64)
    }

    fn ghz(&self) -> Option<f64> {
        Some(self.ghz)
    }
}
