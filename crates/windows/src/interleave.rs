//! The system's weights for weighted interleave: Windows has none.

use std::collections::BTreeMap;
use std::path::Path;

use memgauge_model::interleave::Weights;

/// The system's weights: there are none.
#[derive(Debug)]
pub struct KernelWeights(());

/// The weights of all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsState {
    /// By node.
    pub weights: BTreeMap<u32, u32>,
    /// Whether the system derives them itself; `None` where it does not say.
    pub auto: Option<bool>,
}

/// Why weights were not set or put back.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// The system has no weights.
    #[error("Windows has no weighted interleave: the weights can be used only by programs that place their memory themselves")]
    Unsupported,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredWeights {
    /// What was before the first change.
    pub before: WeightsState,
    /// The system computes the weights again.
    pub automatic: bool,
}

impl KernelWeights {
    /// The weights of this machine. Neither folder is looked at.
    pub const fn new(_root: &Path, _journals: &Path) -> Self {
        Self(())
    }

    /// The weights now: none.
    pub const fn read(&self) -> Option<WeightsState> {
        None
    }

    /// Sets weights.
    ///
    /// # Errors
    /// Always.
    pub const fn apply(&self, _weights: &Weights) -> Result<WeightsState, WeightsError> {
        Err(WeightsError::Unsupported)
    }

    /// Puts back what was changed: nothing ever is.
    ///
    /// # Errors
    /// None.
    pub const fn restore(&self) -> Result<Option<RestoredWeights>, WeightsError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_refused_and_there_is_nothing_to_put_back() {
        let kernel = KernelWeights::new(Path::new("/"), Path::new(""));
        assert_eq!(kernel.read(), None);
        assert_eq!(kernel.apply(&"0=3,1=1".parse().unwrap()), Err(WeightsError::Unsupported));
        assert_eq!(kernel.restore(), Ok(None));
        assert!(WeightsError::Unsupported.to_string().contains("Windows has no weighted interleave"));
    }
}
