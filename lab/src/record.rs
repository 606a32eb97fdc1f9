//! Recording the machine that this runs on: the parts of `/sys` and `/proc` that say what it is, as an archive that `--machine` and `lscpu -s`
//! can read once it is unpacked.
//!
//! Only what is consulted is recorded. Serial numbers, names of mounted disks and control groups of others stay where they are, so that a
//! recording can be published.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::contract::SHARE;

/// Files, and folders with all that is below them, where they exist.
const PARTS: &[&str] = &[
    "proc/cpuinfo",
    "proc/device-tree/compatible",
    "proc/device-tree/firmware/psci/method",
    "proc/device-tree/hypervisor/compatible",
    "proc/device-tree/psci/method",
    "proc/meminfo",
    "proc/self/cgroup",
    "proc/self/cpuset",
    "proc/self/limits",
    "proc/self/status",
    "proc/sysinfo",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/sys/vm/overcommit_memory",
    "proc/version",
    "sys/bus/event_source/devices/cpu_atom/cpus",
    "sys/bus/event_source/devices/cpu_core/cpus",
    "sys/bus/event_source/devices/cpu_lowpower/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_lowpower/cpus",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu",
    "sys/devices/system/cpu/cpu0/microcode/version",
    "sys/devices/system/node",
    "sys/devices/virtual/memory_tiering",
    "sys/firmware/acpi/tables/FACP",
    "sys/hypervisor/type",
    "sys/kernel/mm/hugepages",
    "sys/kernel/mm/mempolicy/weighted_interleave",
    "sys/kernel/mm/transparent_hugepage",
];

/// Names below those folders that say nothing about CPUs, caches and memory, are many, or lead out of what is recorded.
const LEFT_OUT: &[&str] = &[
    "compact",
    "cpuidle",
    "crash_hotplug",
    "driver",
    "firmware_node",
    "hotplug",
    "microcode",
    "numastat",
    "power",
    "stats",
    "subsystem",
    "thermal_throttle",
    "uevent",
    "vmstat",
    "vulnerabilities",
];

/// Where firmware's identification is: a link, and the folder that it leads to.
const DMI: [&str; 2] = ["sys/class/dmi/id", "sys/devices/virtual/dmi/id"];

/// What is recorded of it: no serial number.
const DMI_FIELDS: [&str; 11] = [
    "bios_date",
    "bios_vendor",
    "bios_version",
    "board_name",
    "board_vendor",
    "chassis_type",
    "chassis_vendor",
    "product_family",
    "product_name",
    "product_version",
    "sys_vendor",
];

/// What is recorded of a DAX or CXL device.
const DEVICE_FILES: [&str; 7] = ["driver", "numa_node", "qos_class", "ram/qos_class", "ram/size", "resource", "target_node"];

/// What is recorded of persistent memory: of a bus, a region, a namespace or what formats one, a module. No serial number.
const PERSISTENT_FILES: [&str; 15] = [
    "available_size",
    "badblocks",
    "mode",
    "namespace",
    "nfit/device",
    "nfit/dirty_shutdown",
    "nfit/flags",
    "nfit/scrub",
    "nfit/vendor",
    "numa_node",
    "persistence_domain",
    "provider",
    "read_only",
    "security",
    "set_cookie",
];

/// Lists of mounts, of which the lines of control groups are recorded.
const MOUNTS: [&str; 3] = ["proc/mounts", "proc/self/mountinfo", "proc/self/mounts"];

/// What is recorded of a control group: both versions' limits, and the files of cpusets under each name that they have had.
const GROUP_FILES: [&str; 17] = [
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.max",
    "cpus",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
    "cpuset.mems",
    "cpuset.mems.effective",
    "memory.current",
    "memory.high",
    "memory.limit_in_bytes",
    "memory.max",
    "memory.stat",
    "memory.usage_in_bytes",
    "mems",
];

/// Writes the archive `NAME.tar.gz` into the folder shared with the host.
///
/// # Errors
/// When it cannot be written.
pub fn to_share(name: &str) -> Result<()> {
    let path = Path::new(SHARE).join(format!("{name}.tar.gz"));
    let files = record(Path::new("/"), name, File::create(&path).with_context(|| format!("cannot create {}", path.display()))?)?;
    ensure!(files > 100, "only {files} files were recorded");
    Ok(())
}

/// Records the machine below `root` as a packed archive with the one folder `name`; the number of files in it.
///
/// The recording does not say when or by whom it was made. Recording starts no process and takes well under a second on small machines.
///
/// # Errors
/// When the archive cannot be written. What cannot be read is left out.
pub fn record(root: &Path, name: &str, out: impl Write) -> Result<usize> {
    let mut archive = Archive { builder: Builder::new(GzEncoder::new(out, Compression::best())), root, top: PathBuf::from(name), files: 0 };
    for part in PARTS {
        archive.add(Path::new(part))?;
    }
    for folder in DMI {
        archive.add_of(folder, &DMI_FIELDS)?;
    }
    for bus in ["sys/bus/cxl/devices", "sys/bus/dax/devices"] {
        archive.add_devices(Path::new(bus), &DEVICE_FILES)?;
    }
    // The modules that a region is spread over, at most 32 of them.
    let mappings: Vec<String> = (0..32).map(|n| format!("mapping{n}")).collect();
    let persistent: Vec<&str> = PERSISTENT_FILES.into_iter().chain(["size"]).chain(mappings.iter().map(String::as_str)).collect();
    archive.add_devices(Path::new("sys/bus/nd/devices"), &persistent)?;
    let mut groups = BTreeSet::new();
    for list in MOUNTS {
        let text = fs::read_to_string(root.join(list)).unwrap_or_default();
        let lines: String = text.lines().filter(|line| is_of_groups(line)).flat_map(|line| [line, "\n"]).collect();
        if !lines.is_empty() {
            archive.file(Path::new(list), lines.as_bytes())?;
        }
        groups.extend(group_folders(root, &lines));
    }
    for folder in groups {
        archive.add_of(&folder, &GROUP_FILES)?;
    }
    archive.builder.into_inner()?.finish()?.flush()?;
    Ok(archive.files)
}

struct Archive<'a, W: Write> {
    builder: Builder<GzEncoder<W>>,
    root: &'a Path,
    top: PathBuf,
    files: usize,
}

impl<W: Write> Archive<'_, W> {
    /// Adds a file, a link as such, or a folder with what is below it.
    fn add(&mut self, path: &Path) -> Result<()> {
        let whole = self.root.join(path);
        let Ok(found) = fs::symlink_metadata(&whole) else { return Ok(()) };
        if found.is_dir() {
            let mut header = header(EntryType::Directory, 0o755, 0);
            self.builder.append_data(&mut header, self.top.join(path), &[][..])?;
            let mut names: Vec<_> = fs::read_dir(&whole).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name())).collect();
            names.sort();
            for name in names.iter().filter(|name| !LEFT_OUT.iter().any(|left_out| name == left_out) && !is_memory_block(name)) {
                self.add(&path.join(name))?;
            }
        } else if found.is_symlink() {
            let mut header = header(EntryType::Symlink, 0o777, 0);
            self.builder.append_link(&mut header, self.top.join(path), fs::read_link(&whole)?)?;
        } else if found.is_file()
            && let Ok(content) = fs::read(&whole)
        {
            self.file(path, &content)?;
        }
        Ok(())
    }

    /// Adds these files of a folder, or the folder itself when it is a link.
    fn add_of(&mut self, folder: &str, names: &[&str]) -> Result<()> {
        let folder = Path::new(folder);
        if self.root.join(folder).is_symlink() {
            return self.add(folder);
        }
        names.iter().try_for_each(|name| self.add(&folder.join(name)))
    }

    /// Adds the links to the devices of a bus, and of each device what tells whose memory it is.
    fn add_devices(&mut self, bus: &Path, files: &[&str]) -> Result<()> {
        let root = self.root.canonicalize()?;
        let mut names: Vec<_> =
            fs::read_dir(root.join(bus)).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        for name in names {
            let link = bus.join(name);
            self.add(&link)?;
            if let Ok(device) = root.join(&link).canonicalize()
                && let Ok(folder) = device.strip_prefix(&root)
            {
                files.iter().try_for_each(|file| self.add(&folder.join(file)))?;
                // The block device that it is, by its name.
                for block in fs::read_dir(device.join("block")).into_iter().flatten().flatten() {
                    self.add(&folder.join("block").join(block.file_name()).join("size"))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a file with this content: files of sysfs claim a size of 4096 bytes, whatever they hold.
    fn file(&mut self, path: &Path, content: &[u8]) -> Result<()> {
        let mut header = header(EntryType::Regular, 0o644, content.len() as u64);
        self.builder.append_data(&mut header, self.top.join(path), content)?;
        self.files += 1;
        Ok(())
    }
}

/// Without owner and time.
fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_mode(mode);
    header.set_size(size);
    header
}

/// Links from a node to its blocks of memory, by the thousand on large machines.
fn is_memory_block(name: &OsStr) -> bool {
    name.to_str().and_then(|n| n.strip_prefix("memory")).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a line of `mountinfo` or `mounts` is of control groups or of cpusets, which were a file system of their own.
fn is_of_groups(line: &str) -> bool {
    // In `mountinfo` the kind of file system is the first word after the dash, in `mounts` the third.
    let kind = line.split_once(" - ").map_or_else(|| line.split(' ').nth(2), |(_, after)| after.split(' ').next());
    kind.is_some_and(|kind| ["cgroup", "cgroup2", "cpuset"].contains(&kind))
}

/// The folders of this process's control groups and their ancestors, below the root, in the mounts of these lines.
///
/// Each path is looked for in each hierarchy: groups of one name in two hierarchies belong together, and one that is not there is not
/// recorded.
fn group_folders(root: &Path, lines: &str) -> BTreeSet<String> {
    let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let mut paths: BTreeSet<String> =
        text("proc/self/cgroup").lines().filter_map(|line| Some(line.splitn(3, ':').nth(2)?.into())).collect();
    paths.insert(text("proc/self/cpuset").trim_end().to_owned());
    let mut folders = BTreeSet::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [top, point] = match words.as_slice() {
            [_, _, _, top, point, ..] if line.contains(" - ") => [*top, *point],
            [_, point, ..] => ["/", *point],
            _ => continue,
        };
        let point = point.trim_matches('/');
        for path in &paths {
            // A container's mount shows only its own group; the path may name that in full.
            let below = path.strip_prefix(top.trim_end_matches('/')).unwrap_or(path);
            let mut folder = point.to_owned();
            folders.insert(folder.clone());
            for part in below.split('/').filter(|part| !part.is_empty() && *part != "..") {
                folder = format!("{folder}/{part}");
                folders.insert(folder.clone());
            }
        }
    }
    folders.retain(|folder| root.join(folder).is_dir());
    folders
}
