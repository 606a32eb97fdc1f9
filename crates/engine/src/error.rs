//! Why something was not measured, as data.

use memgauge_core::estimate::{NotMeasured, ThreadFailure};
use memgauge_core::pattern::LayoutError;
use memgauge_core::result::Incomplete;
use memgauge_core::traffic::Mix;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_core::wording::reasons;
use memgauge_os::memory::{MemoryError, MemoryErrorKind, MemoryFault};
use memgauge_os::process::MORE_THREADS;

/// Why a worker thread did not do its job.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WorkerError {
    #[error("cannot run on CPU {cpu}: {why}")]
    Pin { cpu: u32, why: String },
    #[error("cannot start a thread for CPU {cpu}: {why}; {MORE_THREADS}, or name fewer CPUs")]
    Start { cpu: u32, why: String },
    #[error("the thread on CPU {cpu} did not finish in time; work of higher priority may starve the CPU")]
    TimedOut { cpu: u32 },
    #[error("the thread on CPU {cpu} ended unexpectedly")]
    Lost { cpu: u32 },
}

impl WorkerError {
    const fn cpu(&self) -> u32 {
        match self {
            Self::Pin { cpu, .. } | Self::Start { cpu, .. } | Self::TimedOut { cpu } | Self::Lost { cpu } => *cpu,
        }
    }

    const fn failure(&self) -> ThreadFailure {
        match self {
            Self::Pin { .. } => ThreadFailure::NotBound,
            Self::Start { .. } => ThreadFailure::NotStarted,
            Self::TimedOut { .. } => ThreadFailure::TimedOut,
            Self::Lost { .. } => ThreadFailure::Ended,
        }
    }
}

/// Why a chain of pointers cannot be written.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ChainError {
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("a pointer at byte {offset} does not fit in a line of {line}")]
    PointerOutsideLine { offset: usize, line: Bytes },
    #[error("a chase of {bytes} does not fit in its buffer of {buffer} bytes")]
    DoesNotFit { bytes: Bytes, buffer: usize },
    #[error("a chain of {bytes} is longer than the chain in memory")]
    LongerThanWritten { bytes: Bytes },
    #[error("interrupted while the chain was written")]
    Interrupted,
}

/// Why a kernel has no room in its buffer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("a random window of {window} bytes has less than {min_lines} lines")]
    WindowTooSmall { window: usize, min_lines: usize },
    #[error("{bytes} bytes are less than the {step} that one step of {kernel} takes")]
    BufferTooSmall { bytes: usize, kernel: &'static str, step: usize },
}

/// What most of measuring returns.
pub(crate) type Result<T = (), E = CellError> = std::result::Result<T, E>;

/// Why a cell has no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CellError {
    #[error("interrupted before it was measured")]
    Interrupted,
    #[error("the time given was not enough to measure it")]
    OutOfTime,
    #[error(transparent)]
    Memory(MemoryError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("CPU {cpus} went offline, or was taken from this process, during the run")]
    CpusLost { cpus: IdSet },
    #[error("memory node {nodes} went offline, or was taken from this process, during the run")]
    NodesLost { nodes: IdSet },
    #[error("{why}")]
    StartSignal { why: String },
    #[error("CPU {cpu} got no time in {bursts} bursts; the machine is overloaded")]
    ChaseStarved { cpu: u32, bursts: u32 },
    #[error("CPU {cpu}: a pointer of the chase is not what was written")]
    WrongPointer { cpu: u32 },
    #[error("CPU {cpu}: {}", reasons::memory_fault(.fault))]
    MemoryFailed { cpu: u32, fault: MemoryFault },
    #[error("the chase on CPU {cpu} left no trace")]
    ChaseLost { cpu: u32 },
    #[error("CPUs {cpus} never ran at the same time")]
    NeverTogether { cpus: IdSet },
    #[error("this CPU runs none of the kernels planned for the mix {mix}")]
    NoKernel { mix: Mix },
    #[error(transparent)]
    Chain(ChainError),
    #[error("CPU {cpu}: {why}")]
    Load { cpu: u32, why: LoadError },
    #[error("CPU {cpu} has no buffer")]
    NoBuffer { cpu: u32 },
    #[error("no region of {bytes} could be taken on node {node}: {why}")]
    NoRegion { bytes: Bytes, node: u32, why: String },
}

impl From<MemoryError> for CellError {
    fn from(error: MemoryError) -> Self {
        if error.kind == MemoryErrorKind::Interrupted { Self::Interrupted } else { Self::Memory(error) }
    }
}

impl CellError {
    /// Whether no later cell may use the memory of this one: what it holds is not what was written, or a thread that was given up may still
    /// write there.
    pub(crate) const fn damaged(&self) -> bool {
        self.is_of_memory() || matches!(self, Self::Worker(WorkerError::TimedOut { .. } | WorkerError::Lost { .. }))
    }

    /// Whether memory is not what it was.
    pub(crate) const fn is_of_memory(&self) -> bool {
        matches!(self, Self::WrongPointer { .. } | Self::MemoryFailed { .. })
    }
}

impl From<ChainError> for CellError {
    fn from(error: ChainError) -> Self {
        if let ChainError::Interrupted = error { Self::Interrupted } else { Self::Chain(error) }
    }
}

impl From<&CellError> for Incomplete {
    fn from(error: &CellError) -> Self {
        // What a signal interrupted, its caller knows.
        if matches!(error, CellError::Interrupted | CellError::OutOfTime) { Self::OutOfTime } else { Self::CellsMissing }
    }
}

impl From<&CellError> for NotMeasured {
    fn from(error: &CellError) -> Self {
        let detail = error.to_string();
        match error {
            CellError::Interrupted => Self::Interrupted,
            CellError::OutOfTime => Self::OutOfTime,
            CellError::Memory(MemoryError { kind, node, bytes, advice, .. }) => {
                Self::NoMemory { failure: Some(*kind), node: Some(*node), bytes: *bytes, detail: format!("{detail}; {advice}") }
            }
            CellError::WrongPointer { cpu } => Self::Corrupted { cpu: Some(*cpu), detail },
            CellError::MemoryFailed { cpu, fault } => Self::MemoryFailed { cpu: *cpu, fault: fault.clone() },
            CellError::Worker(worker) => Self::NoThread { cpu: worker.cpu(), failure: Some(worker.failure()), detail },
            CellError::CpusLost { cpus } => Self::CpusLost { cpus: cpus.clone() },
            CellError::NodesLost { nodes } => Self::NodesLost { nodes: nodes.clone() },
            CellError::StartSignal { .. } => Self::NoStartSignal { detail },
            CellError::ChaseStarved { cpu, .. } => Self::NoCpuTime { cpu: *cpu },
            CellError::NeverTogether { cpus } => Self::NeverTogether { cpus: cpus.clone() },
            CellError::NoKernel { mix } => Self::NoKernel { mix: *mix },
            CellError::NoRegion { node, why, .. } => Self::NoRegion { node: *node, detail: why.clone() },
            CellError::ChaseLost { .. } | CellError::Chain(_) | CellError::Load { .. } | CellError::NoBuffer { .. } => {
                Self::Internal { detail }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_core::estimate::MemoryFaultKind;

    use super::*;

    fn no_room() -> MemoryError {
        MemoryError {
            kind: MemoryErrorKind::Space,
            node: 1,
            bytes: Some(Bytes::mib(840)),
            what: "cannot allocate 840 MiB on node 1".into(),
            why: "node 1 has 12 MiB free".into(),
            advice: "free memory".into(),
        }
    }

    #[test]
    fn why_a_cell_has_no_value_is_data() {
        let fault = MemoryFault { kind: MemoryFaultKind::Poisoned, offset: 0, physical: None, directory: None };
        let detail = |text: &str| text.to_owned();
        for (error, expected) in [
            (
                CellError::Memory(no_room()),
                NotMeasured::NoMemory {
                    failure: Some(MemoryErrorKind::Space),
                    node: Some(1),
                    bytes: Some(Bytes::mib(840)),
                    detail: detail("cannot allocate 840 MiB on node 1: node 1 has 12 MiB free; free memory"),
                },
            ),
            (
                CellError::Worker(WorkerError::Lost { cpu: 3 }),
                NotMeasured::NoThread {
                    cpu: 3,
                    failure: Some(ThreadFailure::Ended),
                    detail: detail("the thread on CPU 3 ended unexpectedly"),
                },
            ),
            (
                CellError::WrongPointer { cpu: 2 },
                NotMeasured::Corrupted { cpu: Some(2), detail: detail("CPU 2: a pointer of the chase is not what was written") },
            ),
            (CellError::MemoryFailed { cpu: 0, fault: fault.clone() }, NotMeasured::MemoryFailed { cpu: 0, fault }),
        ] {
            assert_eq!(NotMeasured::from(&error), expected);
        }
        let interrupted = MemoryError { kind: MemoryErrorKind::Interrupted, ..no_room() };
        assert_eq!(NotMeasured::from(&CellError::from(interrupted)), NotMeasured::Interrupted);
    }

    #[test]
    fn what_the_time_did_not_allow_is_told_from_what_failed() {
        assert_eq!(Incomplete::from(&CellError::OutOfTime), Incomplete::OutOfTime);
        assert_eq!(Incomplete::from(&CellError::WrongPointer { cpu: 0 }), Incomplete::CellsMissing);
    }
}
