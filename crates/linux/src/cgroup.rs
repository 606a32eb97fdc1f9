//! The control groups of this process, of versions 1 and 2, each with all its ancestors.
//!
//! `/proc/self/cgroup` has the path in each hierarchy. `/proc/self/mountinfo` has the mount point of a hierarchy, and which part of it is
//! mounted (`root`). In a container the two may not match: with a control group namespace the path is `/` or starts with `/..`, and without
//! one the mount shows only the container's own group, while the path is the full one.

use memgauge_model::units::IdSet;

use crate::mount::{self, Mount};
use crate::tree::Tree;

/// A hierarchy of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hierarchy<'c> {
    /// Version 1, the hierarchy of this controller.
    V1(&'c str),
    /// Version 2.
    V2,
}

/// A control group: that of this process or an ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its folder, relative to the root folder.
    pub(crate) folder: String,
    /// Its path in the hierarchy, as far as it is visible, for messages.
    pub(crate) name: String,
}

/// The group of this process in `hierarchy` and all its visible ancestors, nearest first; empty without such a hierarchy.
pub(crate) fn groups(tree: Tree<'_>, hierarchy: Hierarchy<'_>) -> Vec<Group> {
    let Some(path) = tree.text("proc/self/cgroup").and_then(|text| path_in(&text, hierarchy)) else { return Vec::new() };
    let mounts = mount::read(tree);
    let belongs = |m: &&Mount| match hierarchy {
        Hierarchy::V1(controller) => m.kind == "cgroup" && m.options.split(',').any(|o| o == controller),
        Hierarchy::V2 => m.kind == "cgroup2",
    };
    let candidates: Vec<&Mount> = mounts.iter().filter(belongs).collect();
    let inside = candidates.iter().find_map(|m| Some((*m, relative_to(&m.root, &path)?)));
    // The mount does not show the path. Its top is the nearest group that is visible.
    let Some((mount, relative)) = inside.or_else(|| Some((*candidates.first()?, String::new()))) else { return Vec::new() };
    ancestors(tree, mount, &relative)
}

/// The set `what` (`cpus` or `mems`) of the cpuset of this process, from the files of its control groups; `None` when they have none.
pub(crate) fn cpuset(tree: Tree<'_>, what: &str) -> Option<IdSet> {
    // The files of a cpuset without control groups have no prefix. It existed before Linux 2.6.24, and can still be mounted.
    let path = tree.text("proc/self/cpuset").unwrap_or_default();
    let old: Vec<Group> =
        mount::read(tree).iter().filter(|m| m.kind == "cpuset").flat_map(|m| ancestors(tree, m, path.trim_start_matches('/'))).collect();
    let all = [groups(tree, Hierarchy::V2), groups(tree, Hierarchy::V1("cpuset")), old];
    let names = [format!("cpuset.{what}.effective"), format!("cpuset.effective_{what}"), format!("cpuset.{what}"), what.to_owned()];
    // A group with an empty set uses that of its parent.
    all.iter()
        .flatten()
        .find_map(|group| names.iter().find_map(|name| tree.ids(&format!("{}/{name}", group.folder)).filter(|ids| !ids.is_empty())))
}

/// The path in lines `5:cpu,cpuacct:/path`; version 2 is `0::/path`.
fn path_in(text: &str, hierarchy: Hierarchy<'_>) -> Option<String> {
    text.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let matches = match hierarchy {
            Hierarchy::V1(controller) => controllers.split(',').any(|c| c == controller),
            Hierarchy::V2 => number == "0" && controllers.is_empty(),
        };
        matches.then(|| path.to_owned())
    })
}

/// `path` relative to the `root` of a mount, when the mount shows it.
fn relative_to(root: &str, path: &str) -> Option<String> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    if !rest.is_empty() && !rest.starts_with('/') || rest.split('/').any(|part| part == "..") {
        return None;
    }
    Some(rest.trim_matches('/').to_owned())
}

/// The groups from `relative` up to the mount point whose folders exist.
fn ancestors(tree: Tree<'_>, mount: &Mount, relative: &str) -> Vec<Group> {
    let parts: Vec<&str> = relative.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
    let point = mount.point.trim_end_matches('/');
    (0..=parts.len())
        .rev()
        .map(|depth| {
            let path: String = parts[..depth].iter().flat_map(|part| ["/", part]).collect();
            let name = format!("{}{path}", mount.root.trim_end_matches('/'));
            Group { folder: format!("{point}{path}"), name: if name.is_empty() { "/".to_owned() } else { name } }
        })
        .filter(|group| tree.exists(&group.folder))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let text = "5:cpu,cpuacct:/a\n4:memory:/m:with colon\n1:name=systemd:/s\n0::/two";
        assert_eq!(path_in(text, Hierarchy::V1("cpuacct")).as_deref(), Some("/a"));
        assert_eq!(path_in(text, Hierarchy::V1("memory")).as_deref(), Some("/m:with colon"));
        assert_eq!(path_in(text, Hierarchy::V2).as_deref(), Some("/two"));
        assert_eq!(path_in(text, Hierarchy::V1("pids")), None);
    }

    #[test]
    fn paths_below_mounts() {
        assert_eq!(relative_to("/", "/a/b").as_deref(), Some("a/b"));
        assert_eq!(relative_to("/", "/").as_deref(), Some(""));
        assert_eq!(relative_to("/docker/x", "/docker/x").as_deref(), Some(""));
        assert_eq!(relative_to("/docker/x", "/docker/x/y").as_deref(), Some("y"));
        assert_eq!(relative_to("/docker/x", "/docker/xy"), None);
        assert_eq!(relative_to("/", "/../.."), None);
        assert_eq!(relative_to("/..", "/a"), None);
    }
}
