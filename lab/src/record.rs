//! Recording the machine that this runs on: the parts of `/sys` and `/proc` that say what it is, as an archive that `--machine` and `lscpu -s`
//! can read once it is unpacked.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::contract::SHARE;

/// Files and folders that are recorded whole, where they exist.
const PARTS: &[&str] = &[
    "proc/cpuinfo",
    "proc/device-tree/hypervisor/compatible",
    "proc/meminfo",
    "proc/mounts",
    "proc/self/cgroup",
    "proc/self/limits",
    "proc/self/mountinfo",
    "proc/self/mounts",
    "proc/self/status",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/osrelease",
    "proc/sys/vm/overcommit_memory",
    "proc/version",
    "sys/bus/event_source/devices/cpu_atom/cpus",
    "sys/bus/event_source/devices/cpu_core/cpus",
    "sys/class/dmi/id",
    "sys/devices/cpu_atom",
    "sys/devices/cpu_core",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu",
    "sys/devices/system/node",
    "sys/firmware/acpi/tables/FACP",
    "sys/fs/cgroup",
    "sys/hypervisor/type",
    "sys/kernel/mm/transparent_hugepage",
];

/// Folders below those that say nothing about memory or CPUs as memgauge and lscpu see them, and are many.
const LEFT_OUT: &[&str] = &[
    "power",
    "microcode",
    "cpuidle",
    "crash_hotplug",
    "vulnerabilities",
    "thermal_throttle",
    "hotplug",
    "compact",
    "uevent",
    "vmstat",
    "numastat",
];

/// Writes the archive `NAME.tar.gz` into the folder shared with the host.
///
/// # Errors
/// When it cannot be written.
pub fn to_share(name: &str) -> Result<()> {
    let path = Path::new(SHARE).join(format!("{name}.tar.gz"));
    let files = record(Path::new("/"), name, File::create(&path).with_context(|| format!("cannot create {}", path.display()))?)?;
    anyhow::ensure!(files > 100, "only {files} files were recorded");
    Ok(())
}

/// Records the machine below `root` as a packed archive with the one folder `name`; the number of files in it.
///
/// Nothing in it tells when or by whom it was recorded.
///
/// # Errors
/// When the archive cannot be written. What cannot be read is left out.
pub fn record(root: &Path, name: &str, out: impl Write) -> Result<usize> {
    let mut archive = Archive { builder: Builder::new(GzEncoder::new(out, Compression::best())), root, top: PathBuf::from(name), files: 0 };
    for part in PARTS {
        archive.add(Path::new(part))?;
    }
    archive.builder.into_inner()?.finish()?;
    Ok(archive.files)
}

struct Archive<'a, W: Write> {
    builder: Builder<GzEncoder<W>>,
    root: &'a Path,
    top: PathBuf,
    files: usize,
}

impl<W: Write> Archive<'_, W> {
    fn add(&mut self, path: &Path) -> Result<()> {
        let whole = self.root.join(path);
        let Ok(found) = fs::symlink_metadata(&whole) else { return Ok(()) };
        let mut header = Header::new_gnu();
        header.set_mode(if found.is_dir() { 0o755 } else { 0o644 });
        header.set_size(0);
        let to = self.top.join(path);
        if found.is_dir() {
            header.set_entry_type(EntryType::Directory);
            self.builder.append_data(&mut header, &to, &[][..])?;
            let mut names: Vec<_> = fs::read_dir(&whole).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name())).collect();
            names.sort();
            for name in names.iter().filter(|n| !LEFT_OUT.iter().any(|left_out| n == left_out) && !is_memory_block(n)) {
                self.add(&path.join(name))?;
            }
        } else if found.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            self.builder.append_link(&mut header, &to, fs::read_link(&whole)?)?;
        } else if let Ok(content) = fs::read(&whole) {
            // Files of sysfs say that they have 4096 bytes, whatever they hold.
            header.set_size(content.len() as u64);
            self.builder.append_data(&mut header, &to, &content[..])?;
            self.files += 1;
        }
        Ok(())
    }
}

/// Links from a node to its blocks of memory, by the thousand on large machines.
fn is_memory_block(name: &std::ffi::OsStr) -> bool {
    name.to_str().and_then(|n| n.strip_prefix("memory")).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use memgauge_core::topology::Node;
    use memgauge_linux::sysfs::read_machine;

    #[test]
    fn a_recording_says_what_the_machine_says() {
        let mut packed = Vec::new();
        assert!(record(Path::new("/"), "here", &mut packed).unwrap() > 20);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join(format!("recording-{}", std::process::id()));
        tar::Archive::new(GzDecoder::new(&packed[..])).unpack(&folder).unwrap();
        let (here, there) = (read_machine(Path::new("/")).unwrap(), read_machine(&folder.join("here")).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(here.identity, there.identity);
        assert_eq!((here.topology.cpus, here.topology.caches), (there.topology.cpus, there.topology.caches));
        // Free memory differs from one moment to the next.
        let nodes = |nodes: Vec<Node>| nodes.into_iter().map(|n| (n.id, n.cpus, n.distances, n.memory)).collect::<Vec<_>>();
        assert_eq!(nodes(here.topology.nodes), nodes(there.topology.nodes));
    }

    #[test]
    fn two_recordings_of_the_same_are_the_same() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join(format!("recorded-{}", std::process::id()));
        let node = root.join("sys/devices/system/node/node0");
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("distance"), "10\n").unwrap();
        fs::write(root.join("sys/devices/system/node/uevent"), "x").unwrap();
        std::os::unix::fs::symlink("../../memory/memory12", node.join("memory12")).unwrap();
        std::os::unix::fs::symlink("../../cpu/cpu0", node.join("cpu0")).unwrap();
        let packed = |name| {
            let mut packed = Vec::new();
            (record(&root, name, &mut packed).unwrap(), packed)
        };
        let ((files, first), (_, second)) = (packed("a"), packed("a"));
        let names: Vec<String> = tar::Archive::new(GzDecoder::new(&first[..]))
            .entries()
            .unwrap()
            .map(|e| e.unwrap().path().unwrap().to_string_lossy().into_owned())
            .collect();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((files, first == second), (1, true));
        assert!(
            names.iter().any(|n| n.ends_with("node0/cpu0")) && !names.iter().any(|n| n.contains("memory12") || n.contains("uevent")),
            "{names:?}"
        );
    }
}
