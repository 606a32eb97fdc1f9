use std::hint::black_box;
use std::path::Path;

use memgauge_core::counters::Event;
use memgauge_core::metrics::Role;
use memgauge_core::topology::Identity;

use super::*;
use crate::counters::catalogue::Catalogue;

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
