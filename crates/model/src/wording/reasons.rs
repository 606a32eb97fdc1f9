//! Why something is as it is, in words.

use std::fmt;

use crate::estimate::{MemoryFault, MemoryFaultKind, NotMeasured};
use crate::result::{Incomplete, LimitShare, LimitSource, PlacementProblem, QualityReason, RfoReason, ShareMissed};
use crate::wording::native::{FrontEnd, Native};
use crate::wording::spelled;

/// Why a number was not measured, in memgauge's words.
pub fn not_measured(why: &NotMeasured) -> String {
    not_measured_as(&Native, why)
}

/// Why a number was not measured, in the words of a front end.
pub fn not_measured_as(front_end: &impl FrontEnd, why: &NotMeasured) -> String {
    match why {
        NotMeasured::Interrupted => "interrupted before it was measured".into(),
        NotMeasured::OutOfTime => "the time given was not enough to measure it".into(),
        NotMeasured::NoSamples => "no samples: the threads got no time on their CPUs".into(),
        NotMeasured::NoCpuTime { cpu } => format!("CPU {cpu} got no time in many bursts: the machine is overloaded"),
        NotMeasured::CpuTakenAway { percent } => {
            format!("CPU taken away: its threads were off their CPUs for up to {percent} % of the time")
        }
        NotMeasured::NeverTogether { cpus } => format!("CPUs {cpus} never ran at the same time"),
        NotMeasured::CpusLost { cpus } => format!("CPU {cpus} went offline, or was taken from this process, during the run"),
        NotMeasured::NodesLost { nodes } => format!("memory node {nodes} went offline, or was taken from this process, during the run"),
        NotMeasured::NoKernel { mix } => format!("this CPU runs none of the kernels planned for the mix {mix}"),
        NotMeasured::NoRegion { node, detail } => format!("this memory of node {node} was not read: {detail}"),
        NotMeasured::PrefetchersNotSet { state, detail } => format!("prefetchers could not be set to {}: {detail}", state.name()),
        NotMeasured::MemoryFailed { cpu, fault } => format!("CPU {cpu}: {}", memory_fault(fault)),
        NotMeasured::NoMemory { detail, .. } => front_end.problem(detail),
        NotMeasured::NoThread { detail, .. }
        | NotMeasured::NoStartSignal { detail }
        | NotMeasured::NotCounted { detail }
        | NotMeasured::Corrupted { detail, .. }
        | NotMeasured::Internal { detail } => detail.clone(),
    }
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&not_measured(self))
    }
}

impl std::error::Error for NotMeasured {}

/// A failure of memory in words, with its file and offset.
pub fn memory_fault(fault: &MemoryFault) -> String {
    let at = fault.offset;
    let file = fault.directory.as_ref().map_or_else(|| "its buffer".to_owned(), |directory| format!("its file in {directory}"));
    match fault.kind {
        MemoryFaultKind::Poisoned => {
            let physical = fault.physical.map(|physical| format!(", physical address {physical:#x}")).unwrap_or_default();
            format!("{file} has a hardware memory error at byte {at}{physical} (poisoned page)")
        }
        MemoryFaultKind::Truncated => format!("another process truncated {file}: it ends before byte {at}, which is measured"),
        MemoryFaultKind::Device => format!("the file system or device failed to provide byte {at} of {file}, though the file is that long"),
        MemoryFaultKind::Gone => format!("byte {at} of {file} cannot be accessed any more"),
    }
}

/// Why not everything was measured.
pub fn incomplete(why: &Incomplete) -> String {
    match why {
        Incomplete::Signal { name } => format!("interrupted by {name}"),
        Incomplete::OutOfTime => "the time given was not enough to measure everything".into(),
        Incomplete::CellsMissing => "some cells could not be measured".into(),
        Incomplete::ProgramNotRestarted => "the program could not be started again".into(),
        Incomplete::ProgramKilled => "a signal ended the program before its last run".into(),
    }
}

/// The source of a limit, with the share of it, as in `smbios, 1 of 4 nodes`.
pub fn limit_source(source: LimitSource, share: Option<LimitShare>) -> String {
    let part = share.map_or_else(String::new, |s| format!(", {} of {} nodes", s.nodes, s.total));
    format!("{}{part}", spelled(&source))
}

/// Why it is known whether plain stores read first, or why not.
pub const fn rfo(reason: RfoReason) -> &'static str {
    match reason {
        RfoReason::NoKernels => "this CPU has no other kinds of stores, with the same loads and in the same order, to compare with",
        RfoReason::TooLittleTime => "the CPUs got too little time",
        RfoReason::RoundsDisagree => "its rounds disagree, as on a busy machine",
        RfoReason::NotMemoryBound => {
            "non-temporal stores are hardly faster than stores of parts of lines, so something other than memory limits them"
        }
        RfoReason::AsSlowAsParts => "stores of whole lines are as slow as those of parts, which must read",
        RfoReason::AsFastAsNonTemporal => "stores of whole lines are as fast as non-temporal ones, which do not read",
        RfoReason::Between => "stores of whole lines are neither as slow as those of parts nor as fast as non-temporal ones",
        RfoReason::Delayed => "at full speed these stores do not read first; with a delay they might",
        RfoReason::DifferentTraffic => "loaders do different things, which cannot be compared",
        RfoReason::Files => "the memory is that of a file",
        RfoReason::Caches => "the buffers may stay in caches",
        RfoReason::PartOfLine => "only a part of each line is stored",
        RfoReason::StringInstruction => "a string instruction chooses its stores itself",
    }
}

/// Why no point of a curve is close to a share of its peak.
pub const fn share_missed(why: ShareMissed) -> &'static str {
    match why {
        ShareMissed::NothingMeasured => "no point of the curve was measured",
        ShareMissed::NothingReliable => "no point of the curve is reliable",
        ShareMissed::NoLessBandwidth => "no delay gave less bandwidth: the chase alone uses as much, or bandwidth jumps past that share",
        ShareMissed::NotCloser => "no delay came closer: bandwidth jumps past that share, or was not steady",
    }
}

/// Why it is not proven that pages were where they should be.
pub fn placement_problems(problems: &[PlacementProblem]) -> String {
    let one = |problem: &PlacementProblem| match problem {
        PlacementProblem::Elsewhere { pages, of, node } => format!("{pages} of {of} pages are not on node {node}"),
        PlacementProblem::OutOfTurn { pages, of } => format!("{pages} of {of} pages are not on the node whose turn it is"),
        PlacementProblem::NotReadBack { detail } | PlacementProblem::PolicyRefused { detail } => detail.clone(),
        PlacementProblem::DeviceElsewhere { device, planned } => format!("the device is at node {device}, and node {planned} was planned"),
        PlacementProblem::DeviceNodeUnknown => "the kernel does not state the node of the device".into(),
    };
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Why a number may be distorted, in a few words.
pub const fn quality(reason: QualityReason) -> &'static str {
    use QualityReason as R;
    match reason {
        R::Steal => "time stolen by the hypervisor",
        R::BusyMachine => "other processes ran",
        R::InvoluntarySwitches => "threads were taken off their CPUs",
        R::Migrated => "threads ran on other CPUs",
        R::FrequencyDrift => "core frequency changed",
        R::Coverage => "threads ran together for too short a time",
        R::NotConverged => "interval wider than asked for",
        R::SeveralModes => "several modes",
        R::PlacementWrong => "pages on another node",
        R::PlacementUnverified => "placement not verified",
        R::PlateauNotReached => "buffer partly in a cache",
        R::Drift => "differs when measured again",
        R::MemoryErrors => "memory errors",
        R::PagesMigrated => "pages were migrated",
        R::BurstsDisturbed => "bursts were disturbed",
        R::AboveCore => "more bytes per cycle than a core can move",
        R::KernelChosenBusy => "the loop was chosen while others used the CPUs",
        R::BusyNeighbours => "others used CPUs that share memory or caches",
        R::TimeLeftOut => "threads were off their CPUs for much of the time",
        R::Stalled => "memory did not answer for moments",
        R::StateChanged => "the machine's state changed during the run",
    }
}
