//! The kernel's settings: from where they can be changed, and how advice says that.
//!
//! A change is advised only for a file that exists, and that its owner may write to.

use std::os::unix::fs::MetadataExt;

use memgauge_model::topology::{Machine, SettingsFrom};
use memgauge_model::units::IdSet;
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::container;
use crate::tree::{CPU_DIR, Tree};

/// The mode bit of files that their owner may write to.
const OWNER_WRITES: u32 = 0o200;

/// From where the settings can be changed.
pub(crate) fn changed_from(tree: Tree<'_>) -> SettingsFrom {
    // A recording says nothing of how its folders are mounted there.
    let read_only = || tree.is_live() && statvfs(tree.path(CPU_DIR)).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY));
    match () {
        () if container::is_inside(tree) => SettingsFrom::OutsideContainer,
        () if read_only() => SettingsFrom::ReadOnly,
        () => SettingsFrom::Here,
    }
}

/// How to write `value` to `file`, below the root; `None` where there is no such file, or the kernel lets nobody write to it.
pub(crate) fn change(tree: Tree<'_>, from: SettingsFrom, file: &str, value: &str) -> Option<String> {
    let found = tree.path(file).metadata().ok()?;
    (found.is_file() && found.mode() & OWNER_WRITES != 0).then(|| from.change(&format!("/{file}"), value))
}

/// How to switch on CPUs that are offline.
pub(crate) fn switch_on(tree: Tree<'_>, machine: &Machine) -> String {
    let offline = &machine.topology.offline;
    if machine.allowed.settings == SettingsFrom::OutsideContainer {
        return "they are switched on outside of this container, by the host's administrator".to_owned();
    }
    // While it is off, the kernel switches on no second thread of a core, and it does not show which CPUs are second threads.
    let smt = format!("{CPU_DIR}/smt/control");
    let smt_advice = match tree.text(&smt).as_deref() {
        Some("off") => change(tree, machine.allowed.settings, &smt, "on").map(|how| format!("for second threads of cores, {how}")),
        Some("forceoff") => Some("for second threads of cores, boot without nosmt=force and mitigations=auto,nosmt".to_owned()),
        _ => None,
    };
    let switch = |id: u32| change(tree, machine.allowed.settings, &format!("{CPU_DIR}/cpu{id}/online"), "1");
    let able: IdSet = offline.iter().filter(|id| switch(*id).is_some()).collect();
    let one = able.first().and_then(switch).map(|how| format!("{how}{}", if able.len() == 1 { "" } else { " (and so on)" }));
    let all: Vec<String> = smt_advice.into_iter().chain(one).collect();
    if all.is_empty() {
        return "the kernel shows no file that switches them on: look at what it was booted with (maxcpus=, nr_cpus=), and at the firmware or hypervisor"
            .to_owned();
    }
    all.join("; for others, ")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tests::fixture::Fixture;
    use crate::topology::read_machine;

    #[test]
    fn only_files_that_exist_and_can_be_written_to_are_advised() {
        let file = "proc/sys/kernel/numa_balancing";
        let tree = Fixture::new().file(file, "1");
        let how = || change(Tree::new(tree.root()), SettingsFrom::Here, file, "0");
        assert_eq!(how().as_deref(), Some("as root: echo 0 > /proc/sys/kernel/numa_balancing"));
        std::fs::set_permissions(tree.root().join(file), Permissions::from_mode(0o444)).unwrap();
        assert_eq!(how(), None);
        assert_eq!(change(Tree::new(tree.root()), SettingsFrom::Here, "proc/sys/kernel", "0"), None, "a folder");
        assert_eq!(change(Tree::new(tree.root()), SettingsFrom::Here, "proc/sys/nothing", "0"), None);
    }

    #[test]
    fn cpus_are_switched_on_where_the_kernel_lets_them() {
        let advice = |files: &[(&str, &str)]| {
            let tree = Fixture::new().cpus(4).file("sys/devices/system/cpu/online", "1-2").node(0, "1-2", 4096).files(files);
            switch_on(Tree::new(tree.root()), &read_machine(tree.root()).unwrap())
        };
        let (zero, three) = ("sys/devices/system/cpu/cpu0/online", "sys/devices/system/cpu/cpu3/online");
        assert_eq!(advice(&[(three, "0")]), "as root: echo 1 > /sys/devices/system/cpu/cpu3/online", "CPU 0 has no such file");
        assert!(advice(&[(zero, "0"), (three, "0")]).ends_with("cpu0/online (and so on)"));
        assert!(advice(&[]).contains("shows no file that switches them on"), "{}", advice(&[]));
        let off = advice(&[(three, "0"), ("sys/devices/system/cpu/smt/control", "off")]);
        assert!(
            off.starts_with("for second threads of cores, as root: echo on > /sys/devices/system/cpu/smt/control; for others, "),
            "{off}"
        );
        assert!(advice(&[("sys/devices/system/cpu/smt/control", "forceoff")]).contains("boot without nosmt=force"));
        let inside = advice(&[(three, "0"), ("run/.containerenv", "")]);
        assert!(!inside.contains("echo") && inside.contains("outside of this container"), "{inside}");
    }
}
