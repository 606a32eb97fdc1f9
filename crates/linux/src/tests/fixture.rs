//! Small made-up trees for tests.

use std::path::Path;

use tempfile::TempDir;

/// A folder that is removed when dropped.
pub(crate) struct Fixture {
    root: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file and the folders above it.
    pub(crate) fn file(self, relative: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.root().join(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn files(self, files: &[(&str, &str)]) -> Self {
        files.iter().fold(self, |tree, (file, text)| tree.file(file, text))
    }

    /// CPUs `0..count`, one core each, all in package 0, listed as online and present.
    pub(crate) fn cpus(mut self, count: u32) -> Self {
        let list = format!("0-{}", count - 1);
        self = self.file("sys/devices/system/cpu/online", &list).file("sys/devices/system/cpu/present", &list);
        for id in 0..count {
            let topology = format!("sys/devices/system/cpu/cpu{id}/topology");
            self = self
                .file(&format!("{topology}/physical_package_id"), "0")
                .file(&format!("{topology}/core_id"), id.to_string())
                .file(&format!("{topology}/core_cpus_list"), id.to_string());
        }
        self
    }

    /// A node with these CPUs and this memory, all of it free.
    pub(crate) fn node(self, id: u32, cpus: &str, mib: u64) -> Self {
        let kib = mib << 10;
        self.file(&format!("sys/devices/system/node/node{id}/cpulist"), cpus).file(
            &format!("sys/devices/system/node/node{id}/meminfo"),
            format!("Node {id} MemTotal: {kib} kB\nNode {id} MemFree: {kib} kB\n"),
        )
    }
}
