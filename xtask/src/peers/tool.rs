//! What is known of a tool: its files, how it is asked for a row, how its answer is read. Each has a file of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::command::Call;
use super::row::Row;
use super::{core_to_core, likwid, lmbench, mbw, multichase, stream, sysbench, tinymembench, xmem};

/// A peer.
pub(super) struct Tool {
    /// Its name in the table, and for `--only`.
    pub(super) name: &'static str,
    /// Names of its programs; each may be there or not.
    pub(super) files: &'static [&'static str],
    /// Why it takes part only when it is named; none for the others.
    pub(super) slow: Option<&'static str>,
    /// A command whose output names its version, and the words before it; none when it has none.
    pub(super) version: Option<(&'static [&'static str], &'static str)>,
    /// Its ways to do what a row says, none when it cannot. The fastest in a trial takes part.
    pub(super) ways: fn(&Row, &Found) -> Vec<Way>,
}

/// Every peer.
pub(super) const TOOLS: [Tool; 10] = [
    likwid::TOOL,
    multichase::CHASE,
    multichase::LOAD,
    stream::TOOL,
    xmem::TOOL,
    tinymembench::TOOL,
    mbw::TOOL,
    sysbench::TOOL,
    lmbench::TOOL,
    core_to_core::TOOL,
];

/// A way to do a row.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Which of the tool's, such as the kernel's name.
    pub(super) name: String,
    /// The command.
    pub(super) call: Call,
    /// The figure in what it says: nanoseconds, or 10⁹ application bytes a second.
    pub(super) read: fn(&str, &Row) -> Result<f64>,
}

impl Way {
    pub(super) fn new(name: impl Into<String>, call: Call, read: fn(&str, &Row) -> Result<f64>) -> Self {
        Self { name: name.into(), call, read }
    }
}

/// Programs that were found, and what was learnt of them before the comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Where each is, by name.
    pub(super) files: BTreeMap<&'static str, PathBuf>,
    /// likwid-bench's kernels.
    pub(super) likwid_kernels: Vec<String>,
    /// STREAM's three arrays together.
    pub(super) stream_bytes: Option<u64>,
    /// Whether programs that do not ask get huge pages (`enabled` is `always`).
    pub(super) thp_always: bool,
}

impl Found {
    pub(super) fn get(&self, file: &str) -> Option<&Path> {
        self.files.get(file).map(PathBuf::as_path)
    }
}

/// A folder given is searched this deep: sources are built in `tool/`, `tool/src/` or `tool/target/release/`.
const DEEPEST: usize = 4;

/// Looks for all tools' programs in `folder`, nearest first, and then on `path` (in the form of `PATH`).
pub(super) fn find(folder: Option<&Path>, path: &str) -> BTreeMap<&'static str, PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    let mut level: Vec<PathBuf> = folder.map(Path::to_owned).into_iter().collect();
    for _ in 0..=DEEPEST {
        let mut next = Vec::new();
        for folder in &level {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            let mut entries: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
            entries.sort();
            let (folders, files): (Vec<_>, Vec<_>) = entries.into_iter().partition(|p| p.is_dir());
            next.extend(folders);
            all.extend(files);
        }
        level = next;
    }
    let on_path = |name: &str| path.split(':').filter(|f| !f.is_empty()).map(|f| Path::new(f).join(name)).find(|p| is_program(p));
    let in_folder = |name: &str| all.iter().find(|p| p.file_name().is_some_and(|n| n == name) && is_program(p)).cloned();
    let names = TOOLS.iter().flat_map(|tool| tool.files);
    names.filter_map(|name| Some((*name, in_folder(name).or_else(|| on_path(name))?))).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The first number after `label`, which may be followed by blanks, a colon or an equals sign.
pub(super) fn number_after(text: &str, label: &str) -> Result<f64> {
    let rest = text.split_once(label).with_context(|| format!("no '{label}' in: {}", short(text)))?.1;
    let rest = rest.trim_start_matches([' ', '\t', ':', '=', '(']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | 'e' | '+' | '-')).unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no number after '{label}' in: {}", short(text)))
}

/// The end of an output, for messages.
pub(super) fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words[words.len().saturating_sub(40)..].join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_found_in_folders_first() {
        let base = std::env::temp_dir().join(format!("memgauge-peers-{}", std::process::id()));
        let put = |path: &str, mode: u32| {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let near = put("given/mbw/mbw", 0o755);
        put("given/mbw/old/a/mbw", 0o755);
        put("given/sysbench", 0o644);
        let on_path = put("usr/sysbench", 0o755);
        put("usr/mbw", 0o755);
        let found = find(Some(&base.join("given")), &format!("/none:{}", base.join("usr").display()));
        let alone = find(None, "");
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(found.get("mbw"), Some(&near), "the nearest, in the folder before the path");
        assert_eq!(found.get("sysbench"), Some(&on_path), "a file that cannot be run is none");
        assert!(alone.is_empty());
    }

    #[test]
    fn numbers_after_labels() {
        assert_eq!(number_after("a\nMByte/s:\t\t60200.87\n", "MByte/s").unwrap(), 60200.87);
        assert_eq!(number_after("x = 1.5e+03 MB", "x").unwrap(), 1500.0);
        assert!(number_after("nothing", "x").unwrap_err().to_string().contains("no 'x'"));
        assert!(number_after("x: none", "x").is_err());
    }

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<&str> = TOOLS.iter().map(|t| t.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
    }
}
