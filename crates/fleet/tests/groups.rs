//! Groups, what is unknown, populations, baselines and histories, in small fleets that are changed by hand.
#![allow(clippy::unwrap_used, reason = "a panic is the failure report of its test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use memgauge_analysis::fleet::{FleetField, GroupLevel, UnknownReason};
use memgauge_fleet::{Fingerprint, HostRun, Row, baseline, group_for, history, outliers};
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::result::DifferentField;
use memgauge_model::result::{PageKind, QualityLevel};
use memgauge_simulation::fleet::{FleetShape, fleet};

/// The rows of healthy hosts.
fn hosts(n: u32) -> Vec<Row> {
    fleet(&FleetShape { hosts: n, ..FleetShape::default() }, 7).rows
}

/// Changes the run of each host whose number this takes.
fn change(rows: &mut [Row], change: impl Fn(u32, &mut HostRun)) {
    let mut runs: BTreeMap<String, Arc<HostRun>> = BTreeMap::new();
    for row in rows {
        let number = number(row);
        let changed = runs.entry(row.run.run_id.clone()).or_insert_with(|| {
            let mut run = HostRun::clone(&row.run);
            change(number, &mut run);
            Arc::new(run)
        });
        row.run = Arc::clone(changed);
    }
}

/// The number in a host's name.
fn number(row: &Row) -> u32 {
    row.run.host[1..].parse().unwrap()
}

/// Makes values worse by a share.
fn slow(rows: &mut [Row], share: f64, is: impl Fn(u32, &Row) -> bool) {
    for row in rows {
        let factor = if row.cell.metric == Metric::Bandwidth { 1.0 - share } else { 1.0 + share };
        if is(number(row), row) {
            row.value = row.value.map(|v| v * factor);
            row.interval = row.interval.map(|(low, high)| (low * factor, high * factor));
        }
    }
}

#[test]
fn seven_hosts_of_a_kernel_are_compared_with_any_kernel_and_it_is_said() {
    let mut rows = hosts(40);
    change(&mut rows, |host, run| {
        if host < 7 {
            run.fingerprint.kernel = Some("6.13.0-rc1".into());
        }
    });
    slow(&mut rows, 0.15, |host, _| host == 3);
    let found = outliers(&rows);
    assert_eq!(found.groups.iter().map(|g| (g.level, g.hosts)).collect::<Vec<_>>(), [(GroupLevel::Kernel, 33), (GroupLevel::Firmware, 40)]);
    assert_eq!(found.slow.len(), 1);
    assert_eq!((found.slow[0].name.host.as_str(), found.groups[found.slow[0].group as usize].level), ("n00003", GroupLevel::Firmware));

    change(&mut rows, |host, run| {
        if host < 7 {
            run.fingerprint.firmware = Some("another".into());
        }
    });
    let found = outliers(&rows);
    assert_eq!(found.groups[found.slow[0].group as usize].level, GroupLevel::Hardware);

    change(&mut rows, |host, run| {
        if host < 7 {
            run.fingerprint.memory = Some("16 × 4800 MT/s × 8 B".into());
        }
    });
    let found = outliers(&rows);
    assert!(found.slow.is_empty(), "seven alone are no group: {:?}", found.slow);
    assert_eq!(found.unknown.len(), 7);
    assert!(found.unknown.iter().all(|u| u.reasons == [UnknownReason::TooFewSiblings { hosts: 7 }]), "{:?}", found.unknown);
}

#[test]
fn missing_degraded_and_unmeasured_numbers_are_unknown_and_never_pass() {
    let mut rows = hosts(30);
    change(&mut rows, |host, run| run.complete = host != 0);
    rows.retain(|row| !(number(row) == 1 && row.cell.experiment == Experiment::BandwidthPerCache));
    for row in &mut rows {
        match (number(row), row.cell.experiment) {
            (2, Experiment::CacheToCache) => row.quality = Some(QualityLevel::Unreliable),
            (3, Experiment::IdleLatency) => {
                (row.value, row.interval, row.quality, row.not_measured) = (None, None, None, Some("no-memory".into()));
            }
            (4, Experiment::IdleLatency) => row.value = Some(0.0),
            _ => {}
        }
    }
    slow(&mut rows, 0.2, |host, row| host == 2 && row.cell.experiment == Experiment::CacheToCache);
    let found = outliers(&rows);
    let reasons: Vec<_> = found.unknown.iter().map(|u| (u.name.host.as_str(), u.reasons.clone())).collect();
    assert_eq!(
        reasons,
        [
            ("n00000", vec![UnknownReason::Incomplete]),
            ("n00001", vec![UnknownReason::Missing { numbers: 8 }]),
            ("n00002", vec![UnknownReason::Degraded { numbers: 6, look_slow: 6 }]),
            ("n00003", vec![UnknownReason::NotMeasured { numbers: 8, why: "no-memory".into() }]),
            ("n00004", vec![UnknownReason::NotMeasured { numbers: 8, why: "not-a-positive-number".into() }]),
        ]
    );
    assert!(found.slow.is_empty() && found.as_siblings == 25, "{:?}", found.slow);
}

#[test]
fn a_fleet_without_a_usable_number_is_unknown() {
    let mut rows = hosts(12);
    rows.iter_mut().for_each(|row| row.quality = Some(QualityLevel::Degraded));
    let found = outliers(&rows);
    assert_eq!((found.slow.len(), found.unknown.len(), found.as_siblings), (0, 12, 0));
    assert!(found.unknown.iter().all(|u| u.reasons == [UnknownReason::NothingToCompare]) && found.not_judged.len() == 60);
    assert!(baseline(&rows).groups.is_empty());
    let nothing = outliers(&[]);
    assert_eq!((nothing.hosts, nothing.as_siblings), (0, 0));
}

#[test]
fn the_latest_value_counts_and_none_from_before_a_change_of_hardware() {
    let mut rows = hosts(20);
    let mut again: Vec<Row> = rows.iter().filter(|r| number(r) < 2).cloned().collect();
    change(&mut again, |host, run| {
        run.run_id = format!("again-{host}");
        run.started = "2026-12-01T00:00:00Z".into();
        if host == 1 {
            run.fingerprint.memory = Some("16 × 4800 MT/s × 8 B".into());
        }
    });
    slow(&mut again, 0.2, |host, _| host == 0);
    again.retain(|row| number(row) == 0 || row.cell.metric == Metric::Latency);
    rows.splice(0..0, again);
    let found = outliers(&rows);
    assert_eq!(found.slow.iter().map(|s| (s.name.host.as_str(), s.name.run_id.as_str())).collect::<Vec<_>>(), [("n00000", "again-0")]);
    assert_eq!(found.unknown.len(), 1, "{:?}", found.unknown);
    assert_eq!(found.unknown[0].reasons, [UnknownReason::TooFewSiblings { hosts: 1 }]);
}

/// A later run of each host whose number this takes, of its latencies only.
fn later_latencies(rows: &[Row], who: impl Fn(u32) -> bool, pages: PageKind) -> Vec<Row> {
    let is_latency = |row: &&Row| who(number(row)) && row.cell.experiment == Experiment::IdleLatency;
    let mut later: Vec<Row> = rows.iter().filter(is_latency).cloned().collect();
    change(&mut later, |host, run| {
        run.run_id = format!("later-{host}");
        run.started = "2026-12-01T00:00:00Z".into();
        run.fingerprint.pages = Some(memgauge_model::wording::spelled(&pages));
    });
    for row in &mut later {
        row.pages = Some(pages);
        // Base pages cost more than hosts differ by.
        let factor = if pages == PageKind::Base { 1.3 } else { 1.0 };
        row.value = row.value.map(|v| factor * v);
        row.interval = row.interval.map(|(low, high)| (factor * low, factor * high));
    }
    later
}

/// The slow hosts, and the unknown ones with their reasons.
fn verdicts(rows: &[Row]) -> (Vec<String>, Vec<(String, Vec<UnknownReason>)>) {
    let found = outliers(rows);
    let slow = found.slow.iter().map(|slow| slow.name.host.clone()).collect();
    (slow, found.unknown.into_iter().map(|unknown| (unknown.name.host, unknown.reasons)).collect())
}

#[test]
fn a_later_run_of_another_kind_takes_no_value_of_an_earlier_one_away() {
    let mut rows = hosts(60);
    slow(&mut rows, 0.2, |host, row| host == 5 && row.cell.metric == Metric::Bandwidth);
    let sick = vec!["n00005".to_owned()];
    assert_eq!(verdicts(&rows), (sick.clone(), Vec::new()));
    // All run it with other pages and without root, which does not see the channels.
    let mut all = later_latencies(&rows, |_| true, PageKind::Base);
    change(&mut all, |_, run| run.fingerprint.memory = None);
    assert_eq!(verdicts(&[rows.clone(), all].concat()), (sick.clone(), Vec::new()));
    // Half of them do: each is compared with those that have its pages.
    let half = later_latencies(&rows, |host| host % 2 == 0, PageKind::Base);
    let both = [rows.clone(), half].concat();
    assert_eq!(verdicts(&both), (sick.clone(), Vec::new()));
    let numbers =
        |made: &memgauge_analysis::fleet::FleetBaseline, pages| made.groups[0].numbers.iter().filter(|n| n.pages == Some(pages)).count();
    let made = baseline(&both);
    assert_eq!([PageKind::Pool, PageKind::Base].map(|pages| numbers(&made, pages)), [60, 8]);
    // Two do, of which one is the sick one: what they have alone is unknown, and what they have besides is judged.
    let two = later_latencies(&rows, |host| host == 5 || host == 6, PageKind::Base);
    let other_pages = vec![UnknownReason::OtherPages { numbers: 8 }];
    assert_eq!(verdicts(&[rows.clone(), two].concat()), (sick.clone(), vec![("n00006".into(), other_pages)]));
    // The same pages again replace the values.
    let again = later_latencies(&rows, |_| true, PageKind::Pool);
    assert_eq!(verdicts(&[rows, again].concat()), (sick, Vec::new()));
}

#[test]
fn values_from_before_a_change_of_memory_do_not_count_though_the_latest_run_does_not_see_it() {
    let rows = hosts(20);
    let mut all = rows.clone();
    for (day, memory) in [(1, Some("24 × 4800 MT/s × 8 B")), (2, Some("16 × 4800 MT/s × 8 B")), (3, None)] {
        let mut later = later_latencies(&rows, |host| host < 10, PageKind::Pool);
        change(&mut later, |host, run| {
            run.run_id = format!("day-{day}-{host}");
            run.started = format!("2026-12-{day:02}T00:00:00Z");
            run.fingerprint.memory = memory.map(str::to_owned);
        });
        all.extend(later);
    }
    let found = outliers(&all);
    let fields =
        |hosts| found.groups.iter().find(|g| g.hosts == hosts).unwrap().fields.iter().filter_map(|f| f.value.clone()).collect::<Vec<_>>();
    assert_eq!(found.groups.iter().map(|g| g.hosts).collect::<Vec<_>>(), [10, 10], "{:?}", found.groups);
    assert!(fields(10).iter().any(|value| value.starts_with("16 ×")), "{:?}", found.groups);
    // Of the ten that have other memory now, the latencies of the last two days count and nothing else.
    let numbers: Vec<usize> =
        baseline(&all).groups.iter().filter(|g| g.group.level == GroupLevel::Kernel).map(|g| g.numbers.len()).collect();
    assert_eq!(numbers, [8, 60]);
}

#[test]
fn properties_that_change_together_are_named_together() {
    let mut rows = hosts(60);
    change(&mut rows, |host, run| {
        if host >= 20 {
            (run.fingerprint.microcode, run.fingerprint.firmware) = (Some("0xb".into()), Some("BIOS 9".into()));
        }
        run.fingerprint.kernel = Some(if host % 2 == 0 { "6.1" } else { "6.6" }.into());
    });
    slow(&mut rows, 0.08, |host, row| host < 20 && row.cell.metric == Metric::Latency);
    let found = outliers(&rows);
    assert!(found.slow.is_empty(), "{:?}", found.slow);
    let [told] = &found.populations[..] else { panic!("{:?}", found.populations) };
    assert_eq!(told.fields, [DifferentField::Microcode, DifferentField::Firmware].map(FleetField::Property));
    assert_eq!(told.populations.iter().map(|p| p.hosts).collect::<Vec<_>>(), [40, 20]);
    assert_eq!(told.populations[0].values, ["0xb", "BIOS 9"]);
    assert!(told.numbers.iter().all(|n| n.metric == Metric::Latency && (n.ratio - 1.08).abs() < 0.01), "{:?}", told.numbers);
}

#[test]
fn medians_of_populations_are_those_that_were_measured() {
    let mut rows = hosts(80);
    let (old_bios, old_kernel) = (|host: u32| host.is_multiple_of(2), |host: u32| host % 4 < 2);
    change(&mut rows, |host, run| {
        run.fingerprint.firmware = Some(if old_bios(host) { "BIOS 1" } else { "BIOS 2" }.into());
        run.fingerprint.kernel = Some(if old_kernel(host) { "6.1" } else { "6.6" }.into());
    });
    let bandwidth = |row: &Row| row.cell.metric == Metric::Bandwidth;
    slow(&mut rows, 0.10, |host, row| bandwidth(row) && old_bios(host));
    slow(&mut rows, 0.05, |host, row| bandwidth(row) && old_kernel(host));
    let found = outliers(&rows);
    let [bios, kernel] = &found.populations[..] else { panic!("{:?}", found.populations) };
    let property = |field| vec![FleetField::Property(field)];
    assert_eq!((&bios.fields, &bios.besides), (&property(DifferentField::Firmware), &Vec::new()));
    assert_eq!((&kernel.fields, &kernel.besides), (&property(DifferentField::Kernel), &property(DifferentField::Firmware)));
    assert_eq!(kernel.populations.iter().map(|p| p.values[0].as_str()).collect::<Vec<_>>(), ["6.6", "6.1"]);
    for number in &kernel.numbers {
        let measured = |is: bool| {
            let of = rows
                .iter()
                .filter(|r| old_kernel(self::number(r)) == is && r.cell.at == number.at && r.cell.experiment == number.experiment);
            let mut values: Vec<f64> = of.filter_map(|row| row.value).collect();
            values.sort_by(f64::total_cmp);
            (values[19], values[20])
        };
        for (median, (low, high)) in number.medians.iter().zip([measured(false), measured(true)]) {
            assert!((low - 1e-9..=high + 1e-9).contains(&median.unwrap()), "{median:?} is not between {low} and {high}: {number:?}");
        }
        assert!((number.ratio - 0.95).abs() < 0.01, "without what the BIOS costs: {number:?}");
    }
    assert!(kernel.numbers.len() > 20, "{:?}", kernel.numbers.len());
}

#[test]
fn two_populations_that_only_a_label_tells_apart_are_unknown_on_the_slower_side() {
    let mut rows = hosts(64);
    slow(&mut rows, 0.12, |host, row| host < 20 && row.cell.experiment == Experiment::Bandwidth);
    let unexplained = outliers(&rows);
    assert!(unexplained.slow.is_empty(), "{:?}", unexplained.slow);
    let [told] = &unexplained.populations[..] else { panic!("{:?}", unexplained.populations) };
    assert!(told.fields.is_empty(), "racks of 32 do not explain 20 hosts");
    assert_eq!((told.populations[1].hosts, told.numbers.len(), told.of_numbers), (20, 10, 60));
    assert_eq!(unexplained.unknown.len(), 20);
    assert_eq!(unexplained.unknown[0].reasons, [UnknownReason::SlowerPopulation { numbers: 10 }]);
    change(&mut rows, |host, run| {
        run.labels.insert("row".into(), if host < 20 { "a" } else { "b" }.into());
    });
    assert_eq!(outliers(&rows).populations[0].fields, [FleetField::Label { label: "row".into() }]);
}

#[test]
fn a_baseline_has_the_bar_of_each_number_and_finds_the_group_of_a_host() {
    let mut rows = hosts(40);
    change(&mut rows, |host, run| run.fingerprint.kernel = Some(if host < 30 { "6.1" } else { "6.6" }.into()));
    let made = baseline(&rows);
    assert_eq!(
        made.groups.iter().map(|g| (g.group.level, g.group.hosts, g.numbers.len())).collect::<Vec<_>>(),
        [(GroupLevel::Kernel, 30, 60), (GroupLevel::Kernel, 10, 60), (GroupLevel::Firmware, 40, 60), (GroupLevel::Hardware, 40, 60)]
    );
    for number in made.groups.iter().flat_map(|g| &g.numbers) {
        let share = (number.flagged_beyond / number.median - 1.0) * if number.metric == Metric::Bandwidth { -1.0 } else { 1.0 };
        // With few hosts the bar is high: some are left out as outliers by chance, and the spread of the others is uncertain.
        assert!((0.03 - 1e-9..if number.hosts < 12 { 0.15 } else { 0.08 }).contains(&share), "{number:?}");
        assert!(number.median_low <= number.median && number.median <= number.median_high);
    }
    let own = rows[0].run.fingerprint.clone();
    let level = |fingerprint: &Fingerprint| group_for(&made, fingerprint).map(|g| (g.group.level, g.group.hosts));
    assert_eq!(level(&own), Some((GroupLevel::Kernel, 30)));
    assert_eq!(level(&Fingerprint { kernel: Some("7.0".into()), ..own.clone() }), Some((GroupLevel::Firmware, 40)));
    assert_eq!(level(&Fingerprint { firmware: None, ..own.clone() }), Some((GroupLevel::Hardware, 40)));
    assert_eq!(level(&Fingerprint { cpus: 8, ..own }), None);
    assert_eq!(made.impossible(), None);
    let mut forged = made.clone();
    forged.groups[3].numbers[59].median = 1e308;
    assert_eq!(forged.impossible(), Some(1e308));
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<memgauge_analysis::fleet::FleetBaseline>(&json).unwrap(), made);
}

/// How much worse a number must be to be flagged, as a share: the middle one of all numbers of many fleets of this size, and the one that a
/// twentieth exceed.
fn bars(hosts: u32, deviation: f64) -> (f64, f64) {
    let mut shares = Vec::new();
    for seed in 0..40 {
        let made = baseline(&fleet(&FleetShape { hosts, deviation, ..FleetShape::default() }, 500 + seed).rows);
        for number in &made.groups[0].numbers {
            shares.push((number.flagged_beyond / number.median - 1.0).abs());
        }
    }
    shares.sort_by(f64::total_cmp);
    (shares[shares.len() / 2], shares[shares.len() * 19 / 20])
}

/// docs/method/fleet.md has these bars; `--nocapture` prints them.
#[test]
fn the_bar_is_higher_in_small_groups() {
    let sizes = [8, 10, 16, 50, 200];
    let found = sizes.map(|hosts| bars(hosts, 0.008));
    for (hosts, (middle, high)) in sizes.into_iter().zip(found) {
        println!("| {hosts} | {:.1} % | {:.1} % |", 100.0 * middle, 100.0 * high);
    }
    assert!(found.windows(2).all(|pair| pair[0].0 > pair[1].0), "{found:?}");
    assert!(found[1].0 > 0.03 && found[1].0 < 0.08 && found[4].0 < 0.035, "{found:?}");
}

#[test]
fn a_history_tells_when_numbers_changed_and_what_changed_with_them() {
    let mut rows = Vec::new();
    for run in 0..30 {
        let mut of_run = fleet(&FleetShape { hosts: 1, deviation: 0.004, ..FleetShape::default() }, 100 + run).rows;
        change(&mut of_run, |_, host| {
            host.run_id = format!("run-{run:02}");
            host.started = format!("2026-10-{:02}T04:00:00Z", run + 1);
            if run >= 18 {
                host.fingerprint.firmware = Some("BIOS 9".into());
            }
        });
        let changed = run >= 18;
        slow(&mut of_run, 0.07, |_, row| changed && row.cell.experiment == Experiment::BandwidthMatrix);
        rows.extend(of_run);
    }
    let told = history(&rows, "n00000", false).unwrap();
    assert_eq!((told.runs.len(), told.series.len()), (30, 60));
    let [change] = &told.changes[..] else { panic!("{:?}", told.changes) };
    assert_eq!((change.before, change.after, change.numbers.len()), (17, 18, 12));
    assert!(change.numbers.iter().all(|n| n.worse && (n.ratio - 0.93).abs() < 0.01), "{:?}", change.numbers);
    assert_eq!(change.differences.iter().map(|d| d.field).collect::<Vec<_>>(), [DifferentField::Firmware]);
    assert_eq!(history(&rows, "N0", false).unwrap_err().to_string(), "no host 'N0'; it has n00000");
}

#[test]
fn hosts_that_do_not_change_have_no_changes() {
    let mut with_change = 0;
    for seed in 0..100 {
        let mut rows = Vec::new();
        for run in 0..20 {
            let mut of_run = fleet(&FleetShape { hosts: 1, deviation: 0.01, ..FleetShape::default() }, 1_000 * seed + run).rows;
            change(&mut of_run, |_, host| {
                host.run_id = format!("run-{run:02}");
                host.started = format!("2026-10-{:02}T04:00:00Z", run + 1);
            });
            rows.extend(of_run);
        }
        with_change += u32::from(!history(&rows, "n00000", false).unwrap().changes.is_empty());
    }
    assert!(with_change <= 5, "{with_change} of 100 hosts, 60 numbers each");
}

/// Results of older versions have the name that only root reads.
#[test]
fn hosts_measured_by_root_and_by_users_are_siblings_on_one_hypervisor() {
    let mut rows = hosts(12);
    change(&mut rows, |host, run| {
        run.fingerprint.hypervisor = Some(if host % 2 == 0 { "Firecracker" } else { "KVM" }.into());
    });
    slow(&mut rows, 0.15, |host, _| host == 3);
    let found = outliers(&rows);
    assert_eq!(found.groups.iter().map(|g| g.hosts).collect::<Vec<_>>(), [12]);
    assert_eq!(found.slow.len(), 1);
    change(&mut rows, |host, run| {
        run.fingerprint.hypervisor = Some(if host % 2 == 0 { "Xen" } else { "KVM" }.into());
    });
    assert!(outliers(&rows).groups.is_empty(), "six of each are too few");
}
