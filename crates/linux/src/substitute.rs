//! Files of `/proc` and `/sys` that are not the kernel's own: lxcfs and others mount files over them that describe a container.

use std::path::Path;

use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

use crate::files::{append, open_regular};
use crate::mount::{self, Mount};
use crate::tree::Tree;

/// The file system of lxcfs, which LXD and Incus mount over files of `/proc` and `/sys`.
const LXCFS: &str = "fuse.lxcfs";
/// The file systems that show what the kernel itself says.
const KERNELS: [&str; 2] = ["proc", "sysfs"];

/// The most that is read of a file: a recorded machine may have anything there.
const MAX_BYTES: u64 = 1 << 20;

/// The mounts over files of `/proc` and `/sys`.
#[derive(Debug, Default)]
pub(crate) struct Substitutes(Vec<Mount>);

impl Substitutes {
    pub(crate) fn read(tree: Tree<'_>) -> Self {
        let below = |m: &Mount| m.point.starts_with("/proc/") || m.point.starts_with("/sys/");
        Self(mount::read(tree).into_iter().filter(below).collect())
    }

    /// Whether something else than the kernel says what is in the file.
    pub(crate) fn cover(&self, file: &str) -> bool {
        self.over(file).is_some()
    }

    /// Whether that is lxcfs.
    pub(crate) fn by_lxcfs(&self, file: &str) -> bool {
        self.over(file).is_some_and(|m| m.kind == LXCFS)
    }

    /// Whether lxcfs is mounted over any file.
    pub(crate) fn have_lxcfs(&self) -> bool {
        self.0.iter().any(|m| m.kind == LXCFS)
    }

    /// The mount over the file, if the last one there is not the kernel's.
    fn over(&self, file: &str) -> Option<&Mount> {
        let is_over = |m: &&Mount| {
            let point = m.point.trim_start_matches('/');
            file.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.0.iter().rfind(is_over).filter(|m| !KERNELS.contains(&m.kind.as_str()))
    }
}

/// The kernel's own text of a file of `/proc`; `None` where it cannot be read, or where something else is mounted over it on the running machine.
pub(crate) fn kernels_text(root: &Path, file: &str) -> Option<String> {
    let mut opened = open_regular(&root.join(file)).ok()?;
    if root == Path::new("/") && fstatfs(&opened).ok()?.f_type != PROC_SUPER_MAGIC {
        return None;
    }
    let mut bytes = Vec::new();
    append(&mut opened, MAX_BYTES, &mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Fixture;

    #[test]
    fn a_pipe_in_a_recorded_machine_is_not_waited_for() {
        let tree = Fixture::new().file("proc/uptime", "1 1\n");
        let pipe = tree.root().join("proc/stat");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(kernels_text(tree.root(), "proc/uptime").as_deref(), Some("1 1\n"));
        assert_eq!(kernels_text(tree.root(), "proc/stat"), None);
    }

    #[test]
    fn what_is_mounted_over_a_file_is_known() {
        let tree = Fixture::new().file(
            "proc/self/mountinfo",
            "20 1 0:5 / /proc rw - proc proc rw\n\
             21 1 0:6 / /sys rw - sysfs sysfs rw\n\
             30 20 0:40 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n\
             31 21 0:40 /sys/devices/system/cpu /sys/devices/system/cpu rw - fuse.lxcfs lxcfs rw\n\
             32 20 0:41 / /proc/stat rw - tmpfs x rw\n\
             33 20 0:5 /sys /proc/sys ro - proc proc rw\n",
        );
        let found = Substitutes::read(Tree::new(tree.root()));
        assert!(found.by_lxcfs("proc/meminfo") && found.by_lxcfs("sys/devices/system/cpu/online") && found.have_lxcfs());
        assert!(found.cover("proc/stat") && !found.by_lxcfs("proc/stat"));
        assert!(
            !found.cover("proc/sys/kernel/osrelease") && !found.cover("proc/meminfo2") && !found.cover("sys/devices/system/node/online")
        );
    }

    #[test]
    fn the_kernels_own_file_is_told_from_another() {
        assert!(kernels_text(Path::new("/"), "proc/self/stat").is_some());
        assert_eq!(kernels_text(Path::new("/"), "etc/passwd"), None, "not of /proc");
        let tree = Fixture::new().file("proc/stat", "cpu 1\n");
        assert_eq!(kernels_text(tree.root(), "proc/stat").as_deref(), Some("cpu 1\n"));
    }
}
