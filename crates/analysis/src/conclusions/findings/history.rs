//! Compares a machine with its own earlier checks.

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, Report};
use memgauge_model::significance;
use memgauge_model::wording::spelled;

use crate::comparison::{DifferentField, properties};
use crate::conclusions::findings::compare::{Bounds, MIN_DIFFERENCE, counterpart, is_judged, machine_difference, severity};
use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, name};
use crate::fleet::robust::{self, Centre};

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
const CHANGES: [DifferentField; 14] = [
    DifferentField::Cpus,
    DifferentField::AllowedCpus,
    DifferentField::Smt,
    DifferentField::Memory,
    DifferentField::Channels,
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

/// Those of `earlier` that are checks of the report's machine, the oldest first: in the state that it is in now, or in any if there are none.
pub fn earlier_checks(report: &Report, earlier: Vec<Report>) -> Vec<Report> {
    let id = |report: &Report| report.run.host.as_ref().and_then(|host| host.machine_id_hash.clone());
    // Home folders may be shared by machines: without an ID on one side it may be another one.
    let of_this = |check: &Report| check.health.is_some() && id(report) == id(check) && machine_difference(report, check).is_none();
    let mut checks: Vec<Report> = earlier.into_iter().filter(of_this).collect();
    checks.sort_by(|a, b| a.started.utc.cmp(&b.started.utc));
    let in_state = |check: &Report| differences(check, report, &STATE).is_empty();
    if checks.iter().any(in_state) {
        checks.retain(in_state);
    }
    checks
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
    fn slower_by(&self, own: Bounds) -> Option<f64> {
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
