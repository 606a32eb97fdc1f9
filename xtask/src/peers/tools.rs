//! All tools, and where their programs are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::tool::Tool;
use super::{core_to_core, likwid, lmbench, mbw, multichase, stream, sysbench, tinymembench, xmem};

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

/// A folder given is searched this deep: sources are built in `tool/`, `tool/src/` or `tool/target/release/`.
const MAX_DEPTH: usize = 4;

/// Looks for all tools' programs in `folder`, nearest first, and then on `path` (in the form of `PATH`).
pub(super) fn find(folder: Option<&Path>, path: &str) -> BTreeMap<&'static str, PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    let mut level: Vec<PathBuf> = folder.map(Path::to_owned).into_iter().collect();
    for _ in 0..=MAX_DEPTH {
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
    fn names_are_told_apart() {
        let mut names: Vec<&str> = TOOLS.iter().map(|t| t.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
    }
}
