//! Files below a root folder, which is `/` for the running machine or the folder of a recorded one.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use memgauge_model::units::{IdSet, MAX_ID};

use crate::files::{append, open_regular};

/// The folder of CPUs, below the root.
pub(crate) const CPU_DIR: &str = "sys/devices/system/cpu";
/// The folder of memory nodes, below the root.
pub(crate) const NODE_DIR: &str = "sys/devices/system/node";
/// The folder of the whole machine's huge-page pools, below the root.
pub(crate) const POOLS_DIR: &str = "sys/kernel/mm/hugepages";
/// The most that is read of a file. Only `/proc/cpuinfo` may be larger, but a recorded folder may contain anything.
const MAX_BYTES: u64 = 1 << 20;

/// A root folder. Its functions return `None` when the file is missing, unreadable or not in the expected form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree<'a> {
    root: &'a Path,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    /// Whether this is the running machine, so that system calls describe it too.
    pub(crate) fn is_live(&self) -> bool {
        self.root == Path::new("/") || self.root.canonicalize().is_ok_and(|p| p == Path::new("/"))
    }

    /// The path of a file or folder. `relative` may start with `/` as mount points do.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).exists()
    }

    /// The file's text without white space and NULs at its ends.
    pub(crate) fn text(&self, relative: &str) -> Option<String> {
        self.text_up_to(relative, MAX_BYTES)
    }

    /// The first `max_bytes` bytes of the file's text. The text ends where a read fails.
    pub(crate) fn text_up_to(&self, relative: &str, max_bytes: u64) -> Option<String> {
        let mut bytes = Vec::new();
        // A recorded folder may have a pipe or a device there.
        let read = append(&mut open_regular(&self.path(relative)).ok()?, max_bytes, &mut bytes);
        if read.is_err() && bytes.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    pub(crate) fn parsed<T: FromStr>(&self, relative: &str) -> Option<T> {
        self.text(relative)?.parse().ok()
    }

    /// The bracketed word of `always [madvise] never`.
    pub(crate) fn chosen(&self, relative: &str) -> Option<String> {
        let text = self.text(relative)?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// An id that sysfs shows as a signed number, where -1 means unknown.
    pub(crate) fn id(&self, relative: &str) -> Option<u32> {
        self.parsed::<i64>(relative).and_then(|n| u32::try_from(n).ok())
    }

    /// A set of numbers in the form of a list.
    pub(crate) fn ids(&self, relative: &str) -> Option<IdSet> {
        self.parsed(relative)
    }

    /// The set in the mask file, or else in the list file. Older kernels have only one of them. If the two disagree in a recording, the mask is
    /// right: hwloc and lscpu, for which recordings are made, read masks, so people who edit recordings keep those correct.
    pub(crate) fn mask_or_ids(&self, mask: &str, list: &str) -> Option<IdSet> {
        self.text(mask).and_then(|text| parse_mask(&text)).or_else(|| self.ids(list))
    }

    /// The numbers n for which `folder` has an entry `prefix`n.
    pub(crate) fn numbered(&self, folder: &str, prefix: &str) -> IdSet {
        self.names(folder)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix))
            .filter(|rest| rest.len() <= 7 && rest.bytes().all(|b| b.is_ascii_digit()))
            .filter_map(|rest| rest.parse().ok())
            .filter(|&number| number < MAX_ID)
            .collect()
    }

    /// The names in the root folder that are `prefix`, this number, a dot and another number, ascending by that.
    pub(crate) fn numbered_twice(&self, prefix: &str, number: u32) -> Vec<String> {
        self.numbered("", &format!("{prefix}{number}.")).iter().map(|second| format!("{prefix}{number}.{second}")).collect()
    }

    /// The names in a folder, ascending; empty when there is none.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = self.path(folder).read_dir() else { return Vec::new() };
        let mut names: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

/// Reads a mask such as `0000ffff,00000001`: groups of 32 bits in hexadecimal, the highest first.
pub(crate) fn parse_mask(text: &str) -> Option<IdSet> {
    let mut ids = Vec::new();
    for (group, hex) in text.trim().rsplit(',').enumerate() {
        if group >= (MAX_ID / 32) as usize || hex.is_empty() || hex.len() > 8 || hex.starts_with('+') {
            return None;
        }
        let bits = u32::from_str_radix(hex, 16).ok()?;
        ids.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| group as u32 * 32 + bit));
    }
    Some(ids.into_iter().collect())
}

/// The value of `name` in a text of lines `name: value`, as in `/proc/self/status`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The value in bytes of `name` in a text of lines `name: 123 kB`, as in `/proc/meminfo`. A node's `meminfo` starts each line with
/// `Node 0 `.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let line = line.trim_start();
        let line = match line.strip_prefix("Node ") {
            Some(rest) => rest.split_once(' ')?.1.trim_start(),
            None => line,
        };
        let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
        let number: u64 = value.strip_suffix("kB").unwrap_or(value).trim().parse().ok()?;
        Some(number.saturating_mul(1024))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(parse_mask("00000003"), Some("0-1".parse().unwrap()));
        assert_eq!(parse_mask("000f,c0000000"), Some("30-35".parse().unwrap()));
        assert_eq!(parse_mask("0"), Some(IdSet::new()));
        for bad in ["", "x", "+1", "123456789", "1,,2"] {
            assert_eq!(parse_mask(bad), None, "{bad}");
        }
        assert_eq!(parse_mask(&"0,".repeat(1 << 16)), None);
    }

    #[test]
    fn fields() {
        let text = "Node 0 MemTotal:       8386704 kB\nNode 0 MemFree:        12 kB\nHugePages_Total: 3\nMemFreeX: 4 kB";
        assert_eq!(kib_field(text, "MemTotal"), Some(8_386_704 * 1024));
        assert_eq!(kib_field(text, "MemFree"), Some(12 * 1024));
        assert_eq!(kib_field(text, "Mem"), None);
        assert_eq!(kib_field("MemTotal: 18446744073709551615 kB", "MemTotal"), Some(u64::MAX));
        assert_eq!(field("Uid:\t0\t1\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n", "Cpus_allowed_list"), Some("0-3"));
    }
}
