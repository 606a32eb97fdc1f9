//! Findings about differences from earlier checks besides the numbers, and likely causes.

use memgauge_model::installed::{InstalledMemory, MemoryDevice};
use memgauge_model::result::{CauseCode, FindingCode, Host};

use super::*;

fn of_this_machine(mut report: Report, day: u32) -> Report {
    report.run.host = Some(Host { hostname: None, machine_id_hash: Some("this".into()) });
    report.started.utc = format!("2026-11-{day:02}T03:00:00.000Z");
    report.health = Some(Health::default());
    report
}

fn three_tries(machine: Machine, gbs: f64) -> Report {
    of_this_machine(report(machine, vec![node(0, gbs), again(node(0, gbs)), again(node(0, gbs))]), 20)
}

/// A machine whose sockets have these channels.
fn with_channels(channels: &[&str]) -> Machine {
    let mut machine = machine();
    let device = |bank: &&str| MemoryDevice {
        bank: Some((*bank).to_owned()),
        locator: Some("DIMM 0".into()),
        size: Some(Bytes::gib(32)),
        kind: Some("DDR5".into()),
        configured_mts: Some(4800),
        ..MemoryDevice::default()
    };
    machine.identity.installed = InstalledMemory { devices: channels.iter().map(device).collect(), slots: 8, reason: None };
    machine
}

#[test]
fn a_module_that_is_gone_is_named_with_what_speaks_for_it() {
    let four = ["P0 CHANNEL A", "P0 CHANNEL B", "P0 CHANNEL C", "P0 CHANNEL D"];
    let before = of_this_machine(report(with_channels(&four), vec![node(0, 60.0)]), 12);
    let now = three_tries(with_channels(&four[..3]), 45.0);
    let health = judge(&now, Baselines { history: std::slice::from_ref(&before), ..Baselines::default() });
    let cause = &health.causes[0];
    assert_eq!(cause.code, CauseCode::EmptyChannel, "{:?}", health.causes);
    assert_eq!(cause.what, "memory modules are missing: P0 CHANNEL D DIMM 0");
    assert_eq!(
        (cause.evidence[0].points, cause.evidence[0].text.as_str()),
        (4, "firmware listed P0 CHANNEL D DIMM 0 in the check of 2026-11-12, and does not now")
    );
    assert!(cause.check.as_ref().unwrap().to_string().contains("(memgauge info, as root)"), "{:?}", cause.check);
    // With the same modules as before it is not one of them.
    let same = judge(&three_tries(with_channels(&four), 45.0), Baselines { history: &[before], ..Baselines::default() });
    assert!(!same.causes.iter().any(|cause| cause.code == CauseCode::EmptyChannel), "{:?}", same.causes);
}

#[test]
fn nothing_is_accused_where_nothing_is_wrong() {
    let mut machine = with_channels(&["P0 CHANNEL A", "P0 CHANNEL B"]);
    machine.identity.kernel = Some("6.12.9".into());
    machine.identity.memory_encryption = Some("AMD TSME".into());
    let mut before = of_this_machine(report(machine.clone(), vec![node(0, 60.0)]), 12);
    before.machine.identity.kernel = Some("6.12.0".into());
    before.machine.identity.memory_encryption = None;
    let health = judge(&three_tries(machine, 59.5), Baselines { history: &[before], ..Baselines::default() });
    assert_eq!((health.status, health.causes.len()), (HealthStatus::Ok, 0), "{health:?}");
}

#[test]
fn a_machine_with_other_nodes_than_in_its_last_check_is_told() {
    let before = of_this_machine(report(silent(), vec![node(0, 60.0)]), 12);
    let mut machine = silent();
    machine.topology.nodes.truncate(2);
    let now = three_tries(machine, 60.0);
    let history = earlier_checks(&now, vec![before.clone()]);
    assert!(history.checks.is_empty());
    let references = Baselines { history: &history.checks, former: history.former.as_ref(), ..Baselines::default() };
    let health = judge(&now, references);
    let finding = &health.findings[0];
    assert!(finding.code == FindingCode::MachineChanged && health.status == HealthStatus::Warning);
    assert_eq!(finding.message, "the machine is another one than in its last check (2026-11-12): nodes 3 → 2");
    assert_eq!(health.causes[0].code, CauseCode::NodesPerPackage, "{:?}", health.causes);
    // The next check has this one to compare with.
    let next = earlier_checks(&now, vec![before, of_this_machine(now.clone(), 21)]);
    assert_eq!((next.checks.len(), next.former.is_some()), (1, false));
    // Without an id it may be another machine.
    let mut unnamed = now.clone();
    unnamed.run.host = None;
    assert!(earlier_checks(&unnamed, Vec::new()).former.is_none());
}

#[test]
fn fewer_cpus_slower_cores_and_smaller_pages_are_told() {
    let huge = |mut report: Report| {
        report.results.iter_mut().for_each(|m| m.evidence.pages.obtained = Some(PageKind::Thp));
        report.environment.all_cores_ghz = [(0, 3.0), (1, 3.0)].into();
        report
    };
    let before = huge(of_this_machine(report(silent(), vec![node(0, 60.0)]), 12));
    let check = |change: fn(&mut Report)| {
        let mut now = huge(three_tries(silent(), 60.0));
        change(&mut now);
        let health = judge(&now, Baselines { history: std::slice::from_ref(&before), ..Baselines::default() });
        let codes: Vec<String> = health.findings.iter().map(|f| f.code.word().to_owned()).collect();
        (codes, health.causes.first().map(|cause| cause.code.word().to_owned()))
    };
    assert_eq!(check(|_| {}), (vec![], None));
    let (codes, cause) = check(|now| now.machine.allowed.cpus = "0-1".parse().unwrap());
    assert!(codes.contains(&"fewer-cpus".to_owned()) && cause.as_deref() == Some("cpu-limits"), "{codes:?} {cause:?}");
    let (codes, cause) = check(|now| now.environment.all_cores_ghz = [(0, 2.1), (1, 2.1)].into());
    assert!(codes.contains(&"slower-cores".to_owned()) && cause.as_deref() == Some("frequency-limited"), "{codes:?} {cause:?}");
    let (codes, cause) = check(|now| now.results.iter_mut().for_each(|m| m.evidence.pages.obtained = Some(PageKind::Base)));
    assert!(codes.contains(&"smaller-pages".to_owned()) && cause.as_deref() == Some("small-pages"), "{codes:?} {cause:?}");
}

#[test]
fn memory_without_cpus_that_became_slower_is_no_link_between_packages() {
    let far = |gbs| {
        let mut m = bandwidth("0-1", Some(2), Mix::AllReads, gbs, Some(gbs));
        (m.experiment, m.at.cpu_node) = (Experiment::BandwidthMatrix, Some(0));
        m
    };
    let before = of_this_machine(report(silent(), vec![node(0, 60.0), far(20.0)]), 12);
    let now = of_this_machine(report(silent(), vec![node(0, 60.0), far(15.0), again(far(15.0)), again(far(15.0))]), 20);
    let health = judge(&now, Baselines { history: &[before], ..Baselines::default() });
    let codes: Vec<&str> = health.causes.iter().map(|cause| cause.code.word()).collect();
    assert_eq!(codes, ["memory-of-one-node"], "{:?}", health.causes);
    assert!(health.causes[0].what.starts_with("the memory of node 2 is slow"), "{:?}", health.causes);
}
