//! The kernel's weights for weighted interleave (Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave): reading, setting with
//! a journal that is on disk before the first write, and putting back.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use memgauge_model::interleave::Weights;

use crate::container::outlives_container;
use crate::journal::{self, Lock, LockError, Unreadable};

/// The folder of the weights, below the root.
pub(crate) const WEIGHTS_DIR: &str = "sys/kernel/mm/mempolicy/weighted_interleave";
/// The file that says whether the kernel derives weights from what firmware claims (Linux 6.16), under its name and that of earlier patches.
const AUTO: [&str; 2] = ["auto", "__auto_type"];
const TITLE: &str = "memgauge interleave journal 1";
/// A journal without this line is incomplete.
const END: &str = "end";

/// The kernel's weights, and the journal of what they were.
#[derive(Debug)]
pub struct KernelWeights {
    root: PathBuf,
    journals: PathBuf,
}

/// The weights of all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsState {
    /// By node.
    pub weights: BTreeMap<u32, u32>,
    /// Whether the kernel derives them itself; `None` before Linux 6.16.
    pub auto: Option<bool>,
}

/// Why weights were not set or put back.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The kernel has no weights.
    #[error("this kernel has no weighted interleave ({0} does not exist); it needs Linux 6.9 or later with NUMA")]
    Unsupported(PathBuf),
    /// Nodes without a weight.
    #[error("the kernel has no weight for node {0}; its nodes are {1}")]
    NoSuchNode(u32, String),
    /// A file could not be read or written.
    #[error("{0}: {1}{adv}", adv = if .1.kind() == io::ErrorKind::PermissionDenied { "; only root may change the kernel's weights" } else { "" })]
    Io(PathBuf, io::Error),
    /// The kernel shows something else than was written.
    #[error("{0} was set to {1} and reads {2}")]
    NotKept(PathBuf, String, String),
    /// The journal cannot be used.
    #[error("{0} is not used: {1}; look at it, and remove it if it is not needed")]
    Journal(PathBuf, String),
    /// Another process changes them.
    #[error("another memgauge is changing the weights (it holds {0}); try again when it has ended")]
    Busy(PathBuf),
    /// The journal would go with the container that memgauge runs in, and the weights are the machine's.
    #[error(
        "{0} belongs to this container: after it, nothing would know the machine's former weights; run it outside of the container, or pass \
         the host's folder in (docker run -v {0}:{0})"
    )]
    Container(PathBuf),
}

/// The weights that were put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredWeights {
    /// The weights before the first change.
    pub before: WeightsState,
    /// The kernel computes the weights again.
    pub automatic: bool,
}

impl KernelWeights {
    /// Those below `root`, with the journal in the folder `journals`.
    pub fn new(root: &Path, journals: &Path) -> Self {
        Self { root: root.to_owned(), journals: journals.to_owned() }
    }

    /// The weights now; `None` where the kernel has none.
    pub fn read(&self) -> Option<WeightsState> {
        let names = fs::read_dir(self.folder()).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let weight = |name: String| Some((name.strip_prefix("node")?.parse().ok()?, read(&self.folder().join(&name)).ok()?.parse().ok()?));
        let weights: BTreeMap<u32, u32> = names.filter_map(weight).collect();
        let auto = self.auto_file().and_then(|path| read(&path).ok()).map(|text| is_true(&text));
        (!weights.is_empty()).then_some(WeightsState { weights, auto })
    }

    /// Sets the weights of these nodes, and leaves those of others. The journal holds the earlier weights before the first write. If an earlier
    /// change has left a journal, that one is kept, so that [`restore`](Self::restore) puts back the weights from before both changes. Returns
    /// the weights before this change.
    ///
    /// # Errors
    /// When the kernel has no weights, a node has none, a file cannot be written (only root may), or the kernel does not keep a weight. Then
    /// the weights that were written are put back.
    pub fn apply(&self, weights: &Weights) -> Result<WeightsState, WeightsError> {
        let before = self.read().ok_or_else(|| WeightsError::Unsupported(self.folder()))?;
        if let Some((node, _)) = weights.iter().find(|(node, _)| !before.weights.contains_key(node)) {
            let all: Vec<String> = before.weights.keys().map(u32::to_string).collect();
            return Err(WeightsError::NoSuchNode(node, all.join(", ")));
        }
        if !outlives_container(&self.root, &self.journals) {
            return Err(WeightsError::Container(self.journals.clone()));
        }
        let _lock = self.lock()?;
        let earlier = self.journal()?;
        if earlier.is_none() {
            self.write_journal(&before)?;
        }
        if let Err(error) = self.set(weights.iter()) {
            // If the weights cannot be put back either, they stay in the journal.
            if self.put_back(&before).is_ok() && earlier.is_none() {
                self.remove_journal()?;
            }
            return Err(error);
        }
        Ok(before)
    }

    /// Puts back what the journal of this boot says; `None` if nothing was changed since the boot.
    ///
    /// # Errors
    /// When the journal cannot be used or a file cannot be written.
    pub fn restore(&self) -> Result<Option<RestoredWeights>, WeightsError> {
        // A user who may not look into the folder gets that error, and not the answer that nothing is to be restored.
        match fs::symlink_metadata(self.journal_file()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(WeightsError::Io(self.journal_file(), e)),
            Ok(_) => {}
        }
        let _lock = self.lock()?;
        let Some(saved) = self.journal()? else { return Ok(None) };
        let automatic = self.put_back(&saved)?;
        self.remove_journal()?;
        Ok(Some(RestoredWeights { automatic, before: saved }))
    }

    /// Puts the weights back. Returns whether the kernel computes them again.
    fn put_back(&self, saved: &WeightsState) -> Result<bool, WeightsError> {
        // The kernel computes automatic weights itself; writing one would end them. If firmware states no bandwidths, the kernel begins with
        // automatic weights (all are 1), and refuses to go back to them before the next boot (ENODEV).
        if saved.auto == Some(true)
            && let Some(file) = self.auto_file()
            && write(&file, "1").is_ok()
        {
            return Ok(true);
        }
        self.set(saved.weights.iter().map(|(node, weight)| (*node, *weight))).map(|()| false)
    }

    fn set(&self, weights: impl Iterator<Item = (u32, u32)>) -> Result<(), WeightsError> {
        for (node, weight) in weights {
            let (path, weight) = (self.folder().join(format!("node{node}")), weight.to_string());
            write(&path, &weight)?;
            let kept = read(&path).map_err(|e| WeightsError::Io(path.clone(), e))?;
            if kept != weight {
                return Err(WeightsError::NotKept(path, weight, kept));
            }
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.root.join(WEIGHTS_DIR)
    }

    fn auto_file(&self) -> Option<PathBuf> {
        AUTO.iter().map(|name| self.folder().join(name)).find(|path| path.exists())
    }

    fn journal_file(&self) -> PathBuf {
        self.journals.join("interleave.journal")
    }

    /// Held until it is dropped, or the process ends.
    fn lock(&self) -> Result<Lock, WeightsError> {
        let path = self.journals.join("interleave.lock");
        Lock::acquire(&path, false).map_err(|error| match error {
            LockError::Io(path, e) => WeightsError::Io(path, e),
            LockError::NotTrusted(why) => WeightsError::Journal(path, why),
            LockError::Busy(_) => WeightsError::Busy(path),
        })
    }

    /// The journal of this boot. One of an earlier boot is removed: the boot has reset the weights.
    fn journal(&self) -> Result<Option<WeightsState>, WeightsError> {
        let path = self.journal_file();
        let text = match journal::read(&path) {
            Ok(None) => return Ok(None),
            Ok(Some(text)) => text,
            Err(Unreadable::Io(e)) => return Err(WeightsError::Io(path, e)),
            Err(Unreadable::NotTrusted(why)) => return Err(WeightsError::Journal(path, why)),
        };
        let (boot, state) = parse(&text).ok_or_else(|| WeightsError::Journal(path, "it is damaged".into()))?;
        if journal::is_of_this_boot(&boot, &self.root) {
            return Ok(Some(state));
        }
        self.remove_journal().map(|()| None)
    }

    fn write_journal(&self, state: &WeightsState) -> Result<(), WeightsError> {
        let path = self.journal_file();
        let auto = state.auto.map(|auto| format!("auto {auto}\n")).unwrap_or_default();
        let nodes: String = state.weights.iter().map(|(node, weight)| format!("node {node} weight {weight}\n")).collect();
        let text = format!("{TITLE}\nboot {}\n{auto}{nodes}{END}\n", journal::boot_id(&self.root));
        journal::write(&path, &text).map_err(|e| WeightsError::Io(path, e))
    }

    fn remove_journal(&self) -> Result<(), WeightsError> {
        journal::remove(&self.journal_file()).map_err(|e| WeightsError::Io(self.journal_file(), e))
    }
}

fn parse(text: &str) -> Option<(String, WeightsState)> {
    let mut lines = text.strip_prefix(TITLE)?.trim_start().lines();
    let boot = lines.next()?.strip_prefix("boot")?.trim().to_owned();
    let mut state = WeightsState { weights: BTreeMap::new(), auto: None };
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [END] => return Some((boot, state)),
            ["auto", auto] => state.auto = Some(auto.parse().ok()?),
            ["node", node, "weight", weight] => {
                // Nothing else is a weight, so nothing else is written.
                let weight = weight.parse().ok().filter(|weight| (1..=255).contains(weight))?;
                state.weights.insert(node.parse().ok()?, weight);
            }
            _ => return None,
        }
    }
    None
}

/// How the kernel writes a truth, and how older versions did.
fn is_true(text: &str) -> bool {
    matches!(text, "true" | "y" | "Y" | "1" | "on")
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), WeightsError> {
    let file = OpenOptions::new().write(true).truncate(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| WeightsError::Io(path.to_owned(), e))
}

#[cfg(test)]
mod tests;
