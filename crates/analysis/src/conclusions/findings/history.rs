//! Compares a machine with its own earlier checks.

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, PageKind, Report};
use memgauge_model::significance;
use memgauge_model::stats;
use memgauge_model::wording::spelled;
use memgauge_model::words;
use memgauge_model::words::Verb;

use crate::conclusions::findings::compare::{Bounds, MIN_DIFFERENCE, counterpart, is_judged, machine_difference, severity};
use crate::conclusions::findings::machine::all_cores_ghz;
use crate::conclusions::findings::rules::Baselines;
use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, name};
use crate::fleet::robust::{self, Centre};
use memgauge_model::properties::properties;
use memgauge_model::result::DifferentField;

/// The assumed standard deviation between two checks of one undisturbed machine, before its own checks say more. It is an estimate: physical
/// machines repeat within 1 to 2 %, and hosts move virtual machines between cores and memory.
const SPREAD_BEFORE: f64 = 0.015;
/// The same for virtual machines.
const SPREAD_BEFORE_VIRTUAL: f64 = 0.04;
/// The estimate counts as much as this many checks.
const WEIGHT_BEFORE: f64 = 8.0;
/// How often a number of a healthy machine is so low by chance in one of the three measurements that must agree.
const CHANCE: f64 = 0.001;
/// A failure needs at least this many earlier checks.
const MIN_TO_FAIL: usize = 4;

/// Properties that change numbers without a fault: checks in one state are compared with each other, if there are any.
const STATE: [DifferentField; 7] = [
    DifferentField::AllowedCpus,
    DifferentField::Smt,
    DifferentField::TransparentHugePages,
    DifferentField::Governor,
    DifferentField::EnergyPreference,
    DifferentField::Turbo,
    DifferentField::Prefetchers,
];

/// Properties whose change may have made a machine slower since an earlier check.
const CHANGES: [DifferentField; 15] = [
    DifferentField::Cpus,
    DifferentField::AllowedCpus,
    DifferentField::Smt,
    DifferentField::Memory,
    DifferentField::Channels,
    DifferentField::MemoryEncryption,
    DifferentField::Microcode,
    DifferentField::Firmware,
    DifferentField::Kernel,
    DifferentField::TransparentHugePages,
    DifferentField::Governor,
    DifferentField::EnergyPreference,
    DifferentField::Turbo,
    DifferentField::NumaBalancing,
    DifferentField::Prefetchers,
];

/// The earlier checks of a machine.
#[derive(Debug, Default)]
pub struct History {
    /// Those that numbers are compared with, the oldest first: in the state that the machine is in now, or in any if there are none.
    pub checks: Vec<Report>,
    /// The newest check of all, if the machine had another number of CPUs or nodes then.
    pub former: Option<Report>,
}

/// Those of `earlier` that are checks of the report's machine.
pub fn earlier_checks(report: &Report, mut earlier: Vec<Report>) -> History {
    let id = |report: &Report| report.run.host.as_ref().and_then(|host| host.machine_id_hash.clone());
    // Home folders may be shared by machines: without an ID on one side it may be another one.
    earlier.retain(|check| check.health.is_some() && id(report) == id(check));
    earlier.sort_by(|a, b| a.started.utc.cmp(&b.started.utc));
    let former = earlier.last().filter(|newest| id(newest).is_some() && shape_change(newest, report).is_some()).cloned();
    let mut checks: Vec<Report> = earlier.into_iter().filter(|check| machine_difference(report, check).is_none()).collect();
    let in_state = |check: &Report| differences(check, report, &STATE).is_empty();
    if checks.iter().any(in_state) {
        checks.retain(in_state);
    }
    History { checks, former }
}

/// `nodes 4 → 2`: how the number of CPUs or nodes of a machine with this CPU has changed; `None` if it has not.
fn shape_change(before: &Report, now: &Report) -> Option<String> {
    let same_cpu = before.machine.identity.model_name == now.machine.identity.model_name && !now.is_on_another_hypervisor_than(before);
    let changes = differences(before, now, &[DifferentField::Cpus, DifferentField::Nodes]);
    (same_cpu && !changes.is_empty()).then(|| changes.join(", "))
}

/// A machine that has other CPUs or nodes than in its last check: a part went away, or firmware has other settings.
pub(super) fn machine_changed(report: &Report, references: Baselines<'_>) -> Option<Finding> {
    let former = references.former?;
    let change = shape_change(former, report)?;
    let day = former.started.utc.get(..10).unwrap_or("an earlier day");
    let message = format!("the machine is another one than in its last check ({day}): {change}");
    let advice = "look for CPUs that are offline, and at the firmware's settings of cores, threads and nodes per package; if it is meant, check \
                  again: later checks are compared with this one";
    Some(Finding::new(FindingCode::MachineChanged, HealthStatus::Warning, message, advice))
}

/// `kernel 6.1.0-25 → 6.1.0-26`: the properties that both state, with different values.
fn differences(before: &Report, now: &Report, fields: &[DifferentField]) -> Vec<String> {
    let pairs = properties(before).into_iter().zip(properties(now));
    let known = pairs.filter_map(|((field, before), (_, now))| Some((field, before?, now?)));
    let differ = known.filter(|(field, before, now)| fields.contains(field) && before != now);
    differ.map(|(field, before, now)| format!("{} {before} → {now}", spelled(&field).replace('-', " "))).collect()
}

/// The usual value of a number.
pub(super) struct Usual {
    /// How many checks have it.
    checks: usize,
    centre: Centre,
    metric: Metric,
}

impl Usual {
    /// Of the earlier checks that have this number and can be relied on.
    pub(super) fn of(report: &Report, m: &Measurement, checks: &[Report]) -> Option<Self> {
        let values = checks.iter().filter_map(|check| Some(Bounds::new(counterpart(report, m, check)?)?.value));
        // A file that somebody changed may have any.
        let mut costs: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).map(|value| m.metric.cost(value)).collect();
        let checks = costs.len();
        let seen = robust::centre(&mut costs)?;
        let before = if report.machine.identity.may_be_virtual() { SPREAD_BEFORE_VIRTUAL } else { SPREAD_BEFORE };
        // The spread of few checks is uncertain: it is weighed with the estimate (G. K. Smyth, "Linear models and empirical Bayes methods",
        // 2004).
        let of_checks = seen.n as f64 - 1.0;
        let variance = (WEIGHT_BEFORE * before * before + of_checks * seen.spread * seen.spread) / (WEIGHT_BEFORE + of_checks);
        Some(Self { checks, centre: Centre { spread: variance.sqrt(), ..seen }, metric: m.metric })
    }

    fn freedom(&self) -> f64 {
        WEIGHT_BEFORE + self.centre.n as f64 - 1.0
    }

    fn value(&self, cost: f64) -> f64 {
        self.metric.value_at(cost)
    }

    /// The median.
    pub(super) fn median(&self) -> f64 {
        self.value(self.centre.median)
    }

    /// 95 % of the checks are within so much of the median.
    fn around(&self) -> f64 {
        self.median() * (significance::t_quantile(self.freedom()) * self.centre.spread).exp_m1()
    }

    /// A number that is worse than this is not there by chance.
    fn bar(&self) -> f64 {
        let deviations = significance::upper_quantile(CHANCE, self.freedom());
        let least = match self.metric {
            Metric::Latency => MIN_DIFFERENCE.ln_1p(),
            Metric::Bandwidth => -(-MIN_DIFFERENCE).ln_1p(),
        };
        self.value(self.centre.median + (deviations * self.centre.spread.hypot(self.centre.error())).max(least))
    }

    /// By what share a number is worse than the median.
    pub(super) fn worse_by(&self, value: f64) -> f64 {
        self.metric.worse_by(value, self.median())
    }

    /// The same if it is so much worse that chance does not explain it.
    pub(super) fn slower_by(&self, own: Bounds) -> Option<f64> {
        let (beyond, apart) = match self.metric {
            Metric::Latency => (own.value > self.bar(), own.low > self.median()),
            Metric::Bandwidth => (own.value < self.bar(), own.high < self.median()),
        };
        (beyond && apart).then(|| self.worse_by(own.value))
    }
}

/// Numbers that are worse than in earlier checks.
pub(super) fn slower_than_before(report: &Report, view: &[&Measurement], checks: &[Report]) -> Vec<Suspicion> {
    let found = view.iter().enumerate().filter(|(_, m)| is_judged(m)).filter_map(|(index, m)| {
        let usual = Usual::of(report, m, checks)?;
        let own = Bounds::new(m)?;
        let by = usual.slower_by(own)?;
        let mut severity = capped(severity(by, m.metric), m, report);
        if severity == HealthStatus::Failure && usual.checks < MIN_TO_FAIL {
            severity = HealthStatus::Warning;
        }
        let usually = match usual.checks {
            1 => format!("{} in the earlier check", format_value(m.metric, usual.median())),
            _ => format!("usually {:.1} ±{}", usual.median(), format_value(m.metric, usual.around())),
        };
        let message = format!("slower than before: {}: {}, {usually}", name(m), format_value(m.metric, own.value));
        let good = |check: &&Report| {
            let then = counterpart(report, m, check).and_then(Bounds::new);
            then.is_some_and(|then| usual.slower_by(then).is_none())
        };
        let changed = checks.iter().rev().find(good).map(|check| differences(check, report, &CHANGES)).unwrap_or_default();
        let advice = match changed.is_empty() {
            true => "look for power limits, heat and memory errors; nothing that memgauge records has changed since".to_owned(),
            false => format!("this has changed since: {}", changed.join(", ")),
        };
        Some(Suspicion { index, others: Vec::new(), finding: Finding::new(FindingCode::SlowerThanBefore, severity, message, advice) })
    });
    found.collect()
}

/// Fewer CPUs that may be used than in the earlier check or the baseline: what fewer of them reach is not compared.
pub(super) fn fewer_cpus(report: &Report, references: Baselines<'_>) -> Option<Finding> {
    let before = references.baseline.or(references.history.last())?;
    if machine_difference(report, before).is_some() {
        return None;
    }
    let [then, now] = [before, report].map(|report| report.machine.allowed.cpus.len());
    let message = format!("{now} CPUs may be used here, and {then} could be used in what it is compared with");
    let advice = "start it outside of the cpuset, container or taskset that leaves CPUs out";
    (now < then).then(|| Finding::new(FindingCode::FewerCpus, HealthStatus::Unknown, message, advice))
}

/// Cores that are slower than before by this share, all of them together.
const SLOWER_CORES: f64 = 0.10;

/// Cores whose frequency, while all of them work, is far below the usual one of the earlier checks, and below that of each of them; or below that of
/// the baseline. A virtual machine's cores are shared.
pub(super) fn slower_cores(report: &Report, references: Baselines<'_>) -> Option<Finding> {
    if report.machine.identity.may_be_virtual() {
        return None;
    }
    let baseline = references.baseline.filter(|baseline| machine_difference(report, baseline).is_none());
    let before: Vec<f64> = match baseline {
        Some(baseline) => all_cores_ghz(baseline).into_iter().collect(),
        None => references.history.iter().filter_map(all_cores_ghz).collect(),
    };
    let (usual, lowest, now) = (stats::median(&before)?, before.iter().copied().min_by(f64::total_cmp)?, all_cores_ghz(report)?);
    let message = format!("cores run at {now:.2} GHz while all of them work, and usually ran at {usual:.2} GHz before");
    let advice = "look at power limits, cooling, governor and turbo";
    let slower = now < usual * (1.0 - SLOWER_CORES) && now < lowest;
    slower.then(|| Finding::new(FindingCode::SlowerCores, HealthStatus::Warning, message, advice))
}

/// Numbers whose memory has small pages, while earlier checks or the baseline had huge ones: they are not compared, and are slower.
pub(super) fn smaller_pages(report: &Report, results: &[&Measurement], references: Baselines<'_>) -> Option<Finding> {
    let before: Vec<&Report> = references.baseline.into_iter().chain(references.history).collect();
    let kind = |m: &Measurement, check: &Report| {
        let then = check.results.iter().find(|then| then.is_of_same_cell(m) && then.estimate.value.is_some());
        then.and_then(|then| then.evidence.pages.obtained)
    };
    let small = |m: &&&Measurement| {
        let mut then = before.iter().filter_map(|check| kind(m, check)).peekable();
        m.evidence.pages.obtained == Some(PageKind::Base) && then.peek().is_some() && then.all(|kind| kind != PageKind::Base)
    };
    let judged: Vec<&&Measurement> = results.iter().filter(|m| is_judged(m)).collect();
    let smaller = judged.iter().filter(|m| small(m)).count();
    // One buffer may not get any from a fragmented memory.
    if 2 * smaller <= judged.len() {
        return None;
    }
    let thp = before.last().map(|check| differences(check, report, &[DifferentField::TransparentHugePages]).concat()).unwrap_or_default();
    let why = if thp.is_empty() { String::new() } else { format!(" ({thp})") };
    let message = format!("{smaller} of {} numbers were measured with small pages, and with huge pages before{why}", judged.len());
    let advice = words![Verb::Info, " says which pages there are; memory that is fragmented has no huge ones until it is compacted"];
    Some(Finding::new(FindingCode::SmallerPages, HealthStatus::Warning, message, advice))
}
