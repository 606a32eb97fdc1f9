//! Why numbers are worse than they should be: causes by name, with what speaks for and against each, ranked.
//!
//! Each cause has a function that collects its evidence from what was measured ([`Symptoms`]), what the system said, and what differs from an
//! earlier result. Evidence has points, by the same scale for all causes; they were set by hand, and simulated machines of each kind of fault show
//! how well they rank (`docs/method/quick.md`).

mod modules;
mod parts;
mod processor;
mod symptoms;
mod system;

use memgauge_model::note::Code;
use memgauge_model::result::{Cause, CauseCode, CauseEvidence, Finding, FindingCode, HealthStatus, Report};
use memgauge_model::words::Ways;

use crate::conclusions::findings::rules::Baselines;
use symptoms::Symptoms;

/// Points of what shows the cause itself: the kernel counted it, firmware lists it, a setting says it and said something else before.
const SHOWN: i32 = 4;
/// Points of a pattern of numbers that hardly anything else has.
const TYPICAL: i32 = 2;
/// Points of what fits this cause and others.
const FITS: i32 = 1;
/// Points of what should not be so if this were the cause.
const UNLIKELY: i32 = -2;
/// Points of what excludes the cause.
const EXCLUDED: i32 = -4;

/// What speaks against a cause that concerns the whole machine.
const ONLY_SOME: &str = "other parts of the machine are as they should be";

/// Findings about speed, if they are warnings at least.
const COMPLAINTS: [FindingCode; 16] = [
    FindingCode::BaselineOfAnotherMachine,
    FindingCode::BelowLimit,
    FindingCode::BusyMachine,
    FindingCode::MachineChanged,
    FindingCode::MemoryErrors,
    FindingCode::MemoryStalled,
    FindingCode::PrefetchersOff,
    FindingCode::RuleBroken,
    FindingCode::SlowCores,
    FindingCode::SlowerCores,
    FindingCode::SlowerThanBefore,
    FindingCode::SlowerThanFleet,
    FindingCode::SlowerThanSiblings,
    FindingCode::SmallerPages,
    FindingCode::UnequalPopulation,
    FindingCode::WorseThanBaseline,
];
/// Findings that numbers could not be compared as before, whatever their severity.
const NOT_AS_BEFORE: [FindingCode; 2] = [FindingCode::FewerCpus, FindingCode::TooFewCompared];

/// A cause whose evidence is collected.
struct Case {
    code: CauseCode,
    what: String,
    evidence: Vec<CauseEvidence>,
    check: Option<Ways>,
}

impl Case {
    fn new(code: CauseCode, what: impl Into<String>, check: impl Into<Ways>) -> Self {
        Self { code, what: what.into(), evidence: Vec::new(), check: Some(check.into()) }
    }

    /// Adds evidence.
    fn add(&mut self, points: i32, text: impl Into<String>) {
        self.evidence.push(CauseEvidence { points, text: text.into() });
    }

    /// Adds evidence if this is so.
    fn add_if(&mut self, so: bool, points: i32, text: impl Into<String>) {
        if so {
            self.add(points, text);
        }
    }

    /// The cause; `None` where nothing speaks for it, or more against it.
    fn weigh(mut self) -> Option<Cause> {
        let points = self.evidence.iter().map(|e| e.points).sum();
        self.evidence.sort_by_key(|e| std::cmp::Reverse(e.points.abs()));
        let speaks = points > 0 && self.evidence.iter().any(|e| e.points > 0);
        speaks.then(|| Cause { code: self.code.into(), what: self.what, points, evidence: self.evidence, check: self.check })
    }
}

/// What may have made numbers worse than they should be, the likeliest first; nothing where no finding says that one is.
pub(super) fn causes(report: &Report, references: Baselines<'_>, findings: &[Finding]) -> Vec<Cause> {
    let complains = |finding: &Finding| match finding.code {
        Code::Known(code) => NOT_AS_BEFORE.contains(&code) || (finding.severity >= HealthStatus::Warning && COMPLAINTS.contains(&code)),
        Code::Unknown(_) => false,
    };
    if !findings.iter().any(complains) {
        return Vec::new();
    }
    let symptoms = Symptoms::new(report, references, findings);
    let cases = [
        modules::empty_channel(&symptoms),
        modules::clocked_down(&symptoms),
        modules::unequal(&symptoms),
        modules::errors(&symptoms),
        parts::nodes_per_package(&symptoms),
        parts::memory_of_one_node(&symptoms),
        parts::link(&symptoms),
        parts::cache_path(&symptoms),
        processor::prefetchers(&symptoms),
        processor::frequency(&symptoms),
        processor::heat(&symptoms),
        processor::slow_cores(&symptoms),
        processor::encryption(&symptoms),
        system::pages(&symptoms),
        system::cpu_limits(&symptoms),
        system::numa_balancing(&symptoms),
        system::other_programs(&symptoms),
        system::virtualisation(&symptoms),
        system::changed(&symptoms),
    ];
    let mut causes: Vec<Cause> = cases.into_iter().flatten().filter_map(Case::weigh).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.points));
    causes
}
