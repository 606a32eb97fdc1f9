//! Whether a folder of journals outlives a container that memgauge runs in.
//!
//! When the first process of a PID namespace is killed, the kernel kills all others in it: the run and its guardian together. Only the journal
//! is left then, and it must not go with the container.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::mount;
use crate::substitute::Substitutes;
use crate::tree::Tree;

/// The PID namespace of the machine's first process: `PROC_PID_INIT_INO` in Linux `include/linux/proc_ns.h`.
const INITIAL_PIDS: &str = "pid:[4026531836]";

/// Whether this process is in a container, as far as it can tell: it has processes numbered anew, or what container engines leave there.
pub(crate) fn is_inside(tree: Tree<'_>) -> bool {
    is_in_own_processes(tree)
        || [".dockerenv", "run/.containerenv", "run/systemd/container"].iter().any(|file| tree.exists(file))
        || Substitutes::read(tree).have_lxcfs()
}

/// Whether this process is in a namespace of processes, as in most containers: those outside of it are hidden from it.
pub(crate) fn is_in_own_processes(tree: Tree<'_>) -> bool {
    // Kernels without PID namespaces have no such link, and no containers.
    fs::read_link(tree.path("proc/self/ns/pid")).is_ok_and(|pids| pids != Path::new(INITIAL_PIDS))
}

/// Whether what is written to `folder` is still there after this process's container has ended. A process that is in none says yes.
pub(crate) fn outlives_container(root: &Path, folder: &Path) -> bool {
    let tree = Tree::new(root);
    let mounts = mount::read(tree);
    let holds = |m: &&mount::Mount| folder.starts_with(&m.point);
    let mount = mounts.iter().filter(holds).max_by_key(|m| m.point.len());
    // A folder of the host's /run that was passed in is a part of another tmpfs. A tmpfs of the container's own is mounted whole.
    let name = folder.file_name().map(|name| format!("/{}", name.to_string_lossy()));
    if mount.is_some_and(|m| Path::new(&m.point) == folder && m.kind == "tmpfs" && Some(&m.root) == name.as_ref()) {
        return true;
    }
    if is_in_own_processes(tree) {
        return false;
    }
    // A container may share the host's processes and still have files of its own.
    let Some(existing) = folder.ancestors().find(|f| f.exists()) else { return true };
    let identity = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino()));
    let first = tree.path("proc/1/root");
    let hosts = first.join(existing.strip_prefix("/").unwrap_or(existing));
    match (identity(existing), identity(&hosts)) {
        (Ok(here), Ok(there)) => here == there,
        _ if first.exists() => false,
        // The first process may not be looked at. The files of most containers are on an overlay.
        _ => mount.is_none_or(|m| m.kind != "overlay"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::prefetch::JOURNALS;
    use crate::tests::fixture::Fixture;

    const HOST_RUN: &str = "25 27 0:23 / /run rw,nosuid - tmpfs tmpfs rw\n";
    const OVERLAY: &str = "500 400 0:50 / / rw,relatime - overlay overlay rw\n";
    const OWN_RUN: &str = "501 500 0:60 / /run rw,nosuid - tmpfs tmpfs rw\n";
    const PASSED_IN: &str = "502 500 0:23 /memgauge /run/memgauge rw,nosuid - tmpfs tmpfs rw\n";
    const VOLUME: &str = "503 500 8:1 /var/lib/docker/volumes/x/_data /run/memgauge rw - ext4 /dev/sda1 rw\n";

    /// A process with this PID namespace, these mounts and, where it may be seen, this root folder of the first process.
    fn survives(namespace: u64, mounts: &[&str], first: Option<&str>) -> bool {
        let tree = Fixture::new().file("proc/self/mountinfo", mounts.concat()).file("proc/1/comm", "init").file("proc/self/ns/uts", "");
        symlink(format!("pid:[{namespace}]"), tree.root().join("proc/self/ns/pid")).unwrap();
        if let Some(first) = first {
            symlink(first, tree.root().join("proc/1/root")).unwrap();
        }
        outlives_container(tree.root(), Path::new(JOURNALS))
    }

    #[test]
    fn a_journal_that_ends_with_the_container_is_noticed() {
        let (host, container) = (4_026_531_836, 4_026_532_281);
        assert!(survives(host, &[HOST_RUN], Some("/")), "no container");
        assert!(!survives(container, &[OVERLAY], None), "docker run --privileged");
        assert!(!survives(container, &[OVERLAY, OWN_RUN], None), "--tmpfs /run, systemd in a container");
        assert!(!survives(container, &[OVERLAY, VOLUME], None), "a volume of the container");
        assert!(survives(container, &[OVERLAY, PASSED_IN], None), "-v /run/memgauge:/run/memgauge");
        assert!(!survives(host, &[OVERLAY], None), "--pid=host");
        assert!(!survives(host, &[OVERLAY, OWN_RUN], Some("/proc")), "--pid=host, its own /run, which the first process does not see");
        assert!(survives(host, &[OVERLAY, PASSED_IN], Some("/proc")), "--pid=host, passed in");
        assert!(survives(host, &[HOST_RUN], None), "a service that may not look at the first process");
    }
}
