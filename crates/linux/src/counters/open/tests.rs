use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;

use memgauge_model::counters::{Counters, CountingContext, Event, ExpectedEvents, Scope};
use memgauge_model::metrics::{CounterMetric, Role};
use memgauge_model::topology::Identity;

use super::*;
use crate::counters::catalogue::Catalogue;
use crate::counters::perf_event::Config;

fn software(names: &[&str]) -> Vec<Vec<EncodedEvent>> {
    let catalogue = Catalogue::read(Path::new("/"), &Identity::default(), 0);
    vec![names.iter().map(|name| catalogue.named(name).unwrap()).collect()]
}

/// Whether counters can be opened here. Some containers forbid perf_event_open.
fn allowed(counting: &OpenCounters) -> bool {
    if !counting.any_open() {
        assert!(
            matches!(counting.first_error(), Some(CounterError::Forbidden | CounterError::NoSystemCall | CounterError::Refused(..))),
            "{:?}",
            counting.first_error()
        );
    }
    counting.any_open()
}

fn tallies(counting: &OpenCounters, n: usize, work: impl FnOnce()) -> Vec<EventTotals> {
    let before = counting.read();
    counting.enable();
    work();
    counting.disable();
    let after = counting.read();
    let mut tallies: Vec<Result<EventTotals, String>> = vec![Ok(EventTotals::default()); n];
    counting.add(&mut tallies, &before, &after);
    tallies.into_iter().map(Result::unwrap).collect()
}

fn touch(pages: usize) {
    let memory = vec![0u8; (pages + 1) * 4096];
    for page in 0..pages {
        // SAFETY: the byte is inside the vector. The compiler cannot leave out a volatile read.
        black_box(unsafe { memory.as_ptr().add(page * 4096).read_volatile() });
    }
}

#[test]
fn a_thread_counts_between_on_and_off_only() {
    let groups = software(&["task-clock", "page-faults"]);
    let counting = OpenCounters::open(&groups, Target::ThisThread, false);
    if !allowed(&counting) {
        return;
    }
    touch(64);
    let counts = tallies(&counting, 2, || touch(512));
    touch(64);
    // Huge pages may back the vector. Pages touched before the counter was switched on are not counted.
    assert!((1..=512 + 16).contains(&counts[1].raw), "{counts:?}");
    assert_eq!(counts[1].running(), Some(1.0), "software events need no turns");
    assert!(counts[0].raw > 0 && counts[0].raw <= counts[0].enabled_ns + 1_000_000, "{counts:?}");
    let again = tallies(&counting, 2, || ());
    assert!(again[1].raw <= 1, "differences, not totals: {again:?}");
}

#[test]
fn what_happens_in_the_kernel_is_not_zero_for_user_code() {
    let groups = software(&["task-clock", "context-switches", "cpu-migrations"]);
    let counting = OpenCounters::open(&groups, Target::ThisThread, true);
    let in_kernel = |o: &Opened| matches!(o.counters, Err(CounterError::InKernelOnly));
    assert!(!in_kernel(&counting.opened[0]) && in_kernel(&counting.opened[1]) && in_kernel(&counting.opened[2]));
    let all = OpenCounters::open(&groups, Target::ThisThread, false);
    if all.first_error().is_none() {
        let counts = tallies(&all, 3, || (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1))));
        assert!(counts[1].raw >= 20, "each sleep is a switch: {counts:?}");
    }
}

#[test]
fn programs_count_from_their_start_and_with_their_children() {
    let groups = software(&["task-clock", "page-faults"]);
    let faults = |command: &str| {
        let counting = OpenCounters::for_program(&groups);
        allowed(&counting).then(|| {
            touch(256);
            let before = counting.read();
            assert!(std::process::Command::new("/bin/sh").args(["-c", command]).status().unwrap().success());
            counting.read()[1][0].since(before[1][0]).value
        })
    };
    // The first run fills the page cache.
    let _ = faults("/bin/true; exit 0");
    let Some((single, several)) = faults("/bin/true; exit 0").zip(faults("/bin/true; /bin/true; /bin/true; /bin/true; exit 0")) else {
        return;
    };
    assert!(single > 10, "a program faults its pages in: {single}");
    assert!(several > 3 * single / 2, "children count: {several} with four children, {single} with one");
}

#[test]
fn this_machine_counts_or_says_why_not() {
    // Any machine has counters that open, or a reason why not.
    let identity = Identity { hypervisor: Some("Firecracker".into()), ..Identity::default() };
    let catalogue = Catalogue::read(Path::new("/"), &identity, 0);
    match catalogue.metrics() {
        Ok(set) => {
            let counting = OpenCounters::for_this_thread(&set);
            assert!(counting.any_open() || counting.first_error().is_some());
        }
        Err(error) => assert!(error.to_string().contains("Firecracker"), "{error}"),
    }
}

#[test]
fn channels_are_added_up_and_without_one_there_is_no_sum() {
    let channel = |outcome| EventOutcome {
        event: Event { name: "cas_count_read".into(), roles: vec![Role::DramReads], code: "imc".into(), source: "sysfs".into() },
        outcome,
    };
    let tally = |value| {
        let mut tally = EventTotals::default();
        tally.add(value, 10, 10);
        Ok(tally)
    };
    let sum = merge_controllers(vec![channel(tally(3)), channel(tally(4))]);
    assert_eq!(sum.len(), 1);
    assert_eq!(sum[0].outcome.as_ref().unwrap().raw, 7);
    let gap = merge_controllers(vec![channel(tally(3)), channel(Err("is refused".into())), channel(tally(4))]);
    assert_eq!(gap[0].outcome, Err("is refused".to_owned()));
}

/// A core with two fixed counters, for events 0x3c and 0xc0, and four others. The NMI watchdog holds the fixed one for 0x3c. The kernel's
/// rules: a group may have as many events as the core has counters, but it is counted only if enough of them are free, and otherwise never.
const FREE_GENERAL: usize = 4;
const FIXED_FREE: [u64; 1] = [0xc0];

thread_local! {
    /// The codes of each group.
    static GROUPS: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// An event on the simulated core: its group, and the nanoseconds for which it was enabled.
struct Simulated {
    group: usize,
    leads: bool,
}

impl Count for Simulated {
    fn open(config: Config, _: Target, _: bool, leader: Option<&Self>) -> Result<Self, CounterError> {
        GROUPS.with_borrow_mut(|groups| {
            let group = leader.map_or(groups.len(), |l| l.group);
            groups.resize_with(groups.len().max(group + 1), Vec::new);
            groups[group].push(config.words[0]);
            if groups[group].len() > FREE_GENERAL + 2 { Err(CounterError::Invalid) } else { Ok(Self { group, leads: leader.is_none() }) }
        })
    }

    fn switch(&self, _: bool) {
        assert!(self.leads, "a group is switched by its leader");
    }

    fn read(&self) -> Option<Reading> {
        let general = GROUPS.with_borrow(|groups| groups[self.group].iter().filter(|code| !FIXED_FREE.contains(code)).count());
        let fits = general <= FREE_GENERAL;
        Some(Reading { value: if fits { 500_000 } else { 0 }, enabled_ns: 1_000_000, running_ns: if fits { 500_000 } else { 0 } })
    }
}

fn metrics_of(groups: &[Vec<EncodedEvent>]) -> Counters {
    let opened: Vec<Opened<Simulated>> = groups.iter().flat_map(|g| open_group(g, Target::ThisThread, true)).collect();
    let outcome = |(event, opened): (&EncodedEvent, &Opened<Simulated>)| {
        let mut totals = EventTotals::default();
        let reading = opened.counters.as_ref().unwrap()[0].read().unwrap();
        totals.add(reading.value, reading.enabled_ns, reading.running_ns);
        EventOutcome { event: event.event.clone(), outcome: Ok(totals) }
    };
    let outcomes: Vec<EventOutcome> = groups.iter().flatten().zip(&opened).map(outcome).collect();
    let context = CountingContext {
        scope: Scope::User,
        threads: 1,
        thread_s: 1.0,
        wall_s: 1.0,
        work: None,
        expected: ExpectedEvents { loads: true, ..ExpectedEvents::default() },
    };
    Counters::new(&context, &outcomes)
}

#[test]
fn a_group_that_the_watchdog_starves_is_divided() {
    // Cycles, instructions and four programmable events of a load, as on Skylake-SP.
    let event = |role: Role, code: u64| EncodedEvent {
        event: Event { name: role.to_string(), roles: vec![role], code: String::new(), source: "a test".into() },
        config: Ok(Config { kind: 4, words: [code, 0, 0] }),
        cpus: Vec::new(),
        per_line: 1.0,
    };
    use Role as R;
    let roles = [(R::Cycles, 0x3c), (R::Instructions, 0xc0), (R::L1Accesses, 0x81d0), (R::L1Misses, 0x08d1), (R::Loads, 0x10d1)];
    let mut loads: Vec<EncodedEvent> = roles.map(|(role, code)| event(role, code)).into();
    loads.push(event(R::LoadLlcMisses, 0x20d1));
    let whole = vec![loads.clone()];
    let starved = metrics_of(&whole);
    assert!(starved.metric(CounterMetric::Ipc).is_none() && starved.metric(CounterMetric::L1MissRate).is_none(), "{starved:?}");
    let fitted: Vec<Vec<EncodedEvent>> = whole.iter().flat_map(|g| fitting_parts::<Simulated>(g)).collect();
    assert_eq!(fitted.iter().map(Vec::len).collect::<Vec<_>>(), [5, 1]);
    assert_eq!(fitted.concat(), loads, "the order of the events stays");
    let counted = metrics_of(&fitted);
    for metric in [CounterMetric::Ipc, CounterMetric::L1MissRate, CounterMetric::LlcMissesPerLoad] {
        assert_eq!(counted.metric(metric), Some(1.0), "{metric:?}");
    }
    assert_eq!(counted.running, Some(0.5), "scaled, and said so");
    assert_eq!(fitting_parts::<Simulated>(&loads[..3]).len(), 1, "a group that fits stays whole");
}
