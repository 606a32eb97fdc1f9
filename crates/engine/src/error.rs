//! Why something was not measured, as data.

use memgauge_model::estimate::{NotMeasured, ThreadFailure};
use memgauge_model::pattern::LayoutError;
use memgauge_model::units::Bytes;
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

/// The result of most functions that measure.
pub(crate) type Result<T = (), E = NotMeasured> = std::result::Result<T, E>;

impl From<WorkerError> for NotMeasured {
    fn from(error: WorkerError) -> Self {
        Self::NoThread { cpu: error.cpu(), failure: Some(error.failure()), detail: error.to_string() }
    }
}

impl From<ChainError> for NotMeasured {
    fn from(error: ChainError) -> Self {
        if let ChainError::Interrupted = error { Self::Interrupted } else { Self::Internal { detail: error.to_string() } }
    }
}

/// A pointer of a chase is not what was written.
pub(crate) fn wrong_pointer(cpu: u32) -> NotMeasured {
    NotMeasured::Corrupted { cpu: Some(cpu), detail: format!("CPU {cpu}: a pointer of the chase is not what was written") }
}

/// A burst ended without what its chase did.
pub(crate) fn chase_lost(cpu: u32) -> NotMeasured {
    NotMeasured::Internal { detail: format!("the chase on CPU {cpu} left no trace") }
}

/// A kernel has no room in its buffer.
pub(crate) fn no_room(cpu: u32, why: &LoadError) -> NotMeasured {
    NotMeasured::Internal { detail: format!("CPU {cpu}: {why}") }
}

/// Nothing was allocated for a CPU.
pub(crate) fn no_buffer(cpu: u32) -> NotMeasured {
    NotMeasured::Internal { detail: format!("CPU {cpu} has no buffer") }
}

#[cfg(test)]
mod tests {
    use memgauge_model::estimate::{MemoryFault, MemoryFaultKind};
    use memgauge_model::result::Incomplete;
    use memgauge_os::memory::{MemoryError, MemoryErrorKind};

    use super::*;

    fn lacks_room() -> MemoryError {
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
                NotMeasured::from(lacks_room()),
                NotMeasured::NoMemory {
                    failure: Some(MemoryErrorKind::Space),
                    node: Some(1),
                    bytes: Some(Bytes::mib(840)),
                    detail: detail("cannot allocate 840 MiB on node 1: node 1 has 12 MiB free; free memory").into(),
                },
            ),
            (
                NotMeasured::from(WorkerError::Lost { cpu: 3 }),
                NotMeasured::NoThread {
                    cpu: 3,
                    failure: Some(ThreadFailure::Ended),
                    detail: detail("the thread on CPU 3 ended unexpectedly"),
                },
            ),
            (
                wrong_pointer(2),
                NotMeasured::Corrupted { cpu: Some(2), detail: detail("CPU 2: a pointer of the chase is not what was written") },
            ),
            (NotMeasured::MemoryFailed { cpu: 0, fault: fault.clone() }, NotMeasured::MemoryFailed { cpu: 0, fault }),
        ] {
            assert_eq!(error, expected);
        }
        let interrupted = MemoryError { kind: MemoryErrorKind::Interrupted, ..lacks_room() };
        assert_eq!(NotMeasured::from(interrupted), NotMeasured::Interrupted);
    }

    #[test]
    fn what_the_time_did_not_allow_is_told_from_what_failed() {
        assert_eq!(Incomplete::from(&NotMeasured::OutOfTime), Incomplete::OutOfTime);
        assert_eq!(Incomplete::from(&wrong_pointer(0)), Incomplete::CellsMissing);
    }
}
