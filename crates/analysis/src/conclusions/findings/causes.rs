//! Likely causes of numbers that are worse than they should be, ranked, with the evidence for and against each.
//!
//! Each cause has a function that collects its evidence from what was measured ([`Symptoms`]), what the system said, and what differs from an
//! earlier result. Evidence has points, by the same scale for all causes; they were set by hand, and simulated machines of each kind of fault show
//! how well they rank (`docs/method/causes.md`).

mod case;
mod modules;
mod parts;
mod processor;
mod symptoms;
mod system;

use memgauge_model::note::Code;
use memgauge_model::result::{Finding, FindingCode, HealthStatus, LikelyCause, Report};

use crate::conclusions::findings::rules::Baselines;
use case::Case;
use symptoms::Symptoms;

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

/// The likely causes of numbers that are worse than they should be, the likeliest first; none unless a finding says that one is worse.
pub(super) fn causes(report: &Report, references: Baselines<'_>, findings: &[Finding]) -> Vec<LikelyCause> {
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
    let mut causes: Vec<LikelyCause> = cases.into_iter().flatten().filter_map(Case::weigh).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.points));
    causes
}
