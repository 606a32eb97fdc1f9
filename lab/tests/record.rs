//! Recordings say what the machine says, and nothing that is nobody's business.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::read::GzDecoder;
use memgauge_lab::record::record;
use memgauge_model::topology::Machine;
use memgauge_os::topology::read_machine;

/// A folder that goes away with its value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("record-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn packed(root: &Path) -> (usize, Vec<u8>) {
    let mut bytes = Vec::new();
    (record(root, "machine", &mut bytes).unwrap(), bytes)
}

/// Entries by name: a file's text, a link's target after an arrow, nothing for a folder.
fn entries(packed: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed));
    let entry = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
        let name = entry.path().unwrap().strip_prefix("machine").unwrap().display().to_string();
        let link = entry.link_name().unwrap().map(|target| format!("-> {}", target.display()));
        // Tables of firmware are not text.
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (name, link.unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned()))
    };
    archive.entries().unwrap().map(entry).collect()
}

/// Without what changes from one moment to the next.
fn lasting(mut machine: Machine) -> Machine {
    machine.topology.nodes.iter_mut().for_each(|node| node.free = None);
    machine.allowed.memory = Default::default();
    // A recording does not say that it was made in a container, and the recorder's memory policy is nobody's business.
    machine.allowed.settings = Default::default();
    (machine.allowed.memory_policy, machine.allowed.memory_policy_unknown) = Default::default();
    machine.allowed.memory_limited_by.clear();
    machine.allowed.node_memory.clear();
    machine.allowed.node_limited_by.clear();
    machine
}

#[test]
fn a_recording_says_what_the_machine_says() {
    let folder = Folder::new();
    let (files, bytes) = packed(Path::new("/"));
    assert!(files > 20, "{files} files");
    tar::Archive::new(GzDecoder::new(&bytes[..])).unpack(&folder.0).unwrap();
    let (here, there) = (read_machine(Path::new("/")).unwrap(), read_machine(&folder.0.join("machine")).unwrap());
    assert_eq!(lasting(there), lasting(here));
    // What was recorded can be recorded again.
    let (again, bytes_again) = packed(&folder.0.join("machine"));
    assert_eq!((again, entries(&bytes_again)), (files, entries(&bytes)));
}

#[test]
fn only_what_is_consulted_is_recorded() {
    let folder = Folder::new();
    let node = "sys/devices/system/node/node0";
    let initiators = format!("{node}/access0/initiators");
    for (path, text) in [
        ("proc/self/cgroup", "0::/job/step\n"),
        ("proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/secret rw\n2 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/memory.stat", "anon 1\n"),
        ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/job/cgroup.procs", "17\n"),
        ("sys/fs/cgroup/job/step/memory.max", "4096\n"),
        ("sys/fs/cgroup/neighbour/memory.max", "8192\n"),
        ("sys/devices/virtual/dmi/id/product_name", "X\n"),
        ("sys/devices/virtual/dmi/id/product_serial", "secret\n"),
        ("sys/devices/system/cpu/cpu0/microcode/version", "0x1\n"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state0/time", "9\n"),
        (&format!("{node}/distance"), "10\n"),
        (&format!("{node}/vmstat"), "secret 1\n"),
        (&format!("{initiators}/read_latency"), "90\n"),
    ] {
        folder.file(path, text);
    }
    symlink("../../memory/memory12", folder.0.join(node).join("memory12")).unwrap();
    symlink("../../../node0", folder.0.join(&initiators).join("node0")).unwrap();
    fs::create_dir_all(folder.0.join("sys/class/dmi")).unwrap();
    symlink("../../devices/virtual/dmi/id", folder.0.join("sys/class/dmi/id")).unwrap();

    let (files, bytes) = packed(&folder.0);
    let mut found = entries(&bytes);
    found.retain(|_, text| !text.is_empty());
    let expected = [
        ("proc/self/cgroup", "0::/job/step\n"),
        ("proc/self/mountinfo", "2 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/class/dmi/id", "-> ../../devices/virtual/dmi/id"),
        ("sys/devices/system/cpu/cpu0/microcode/version", "0x1\n"),
        ("sys/devices/system/node/node0/access0/initiators/node0", "-> ../../../node0"),
        ("sys/devices/system/node/node0/access0/initiators/read_latency", "90\n"),
        ("sys/devices/system/node/node0/distance", "10\n"),
        ("sys/devices/virtual/dmi/id/product_name", "X\n"),
        ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/job/step/memory.max", "4096\n"),
        ("sys/fs/cgroup/memory.stat", "anon 1\n"),
    ];
    assert_eq!(found, expected.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect());
    assert_eq!(files, 9);
    assert_eq!(packed(&folder.0), (files, bytes), "recorded twice, the archives are the same");
}

#[test]
fn a_containers_group_is_found_by_its_full_path() {
    let folder = Folder::new();
    folder.file("proc/self/cgroup", "4:memory:/docker/x/job\n0::/\n");
    folder.file("proc/self/mountinfo", "35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    folder.file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
    folder.file("proc/self/mounts", "none /dev/cpuset cpuset rw 0 0\n/dev/secret / ext4 rw 0 0\n");
    folder.file("proc/self/cpuset", "/set\n");
    folder.file("dev/cpuset/set/mems", "0-1\n");
    let found = entries(&packed(&folder.0).1);
    assert_eq!(found["sys/fs/cgroup/memory/job/memory.limit_in_bytes"], "4096\n");
    assert_eq!(found["dev/cpuset/set/mems"], "0-1\n");
    assert_eq!(found["proc/self/mounts"], "none /dev/cpuset cpuset rw 0 0\n");
}
