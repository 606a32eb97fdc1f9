//! Buffers from files of a directory: on persistent memory with and without DAX, in memory, and on a disc.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::directory::FileBacking;
use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::result::{PageKind, PlacementMethod, PlacementStatus, Report};

use super::pmem_faults::{a_file_system_that_fills, bad_blocks_under_dax, no_permission};
use super::pmem_files::{DAX, TMPFS, devices, free, names_in, nothing_left};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "pmem",
    about: "buffers from files: DAX with MAP_SYNC, a namespace without DAX, tmpfs, a disc",
    optional: false,
    machine: Machine {
        qemu: QEMU,
        kernel: &["memmap=256M!512M"],
        modules: &["nd_e820", "nfit", "nd_pmem", "virtio_blk", "crc32c_generic", "ext4"],
        tools: &["mke2fs"],
        ..PLAIN
    },
    tests: tests![
        file_systems,
        dax_with_map_sync,
        namespace_without_dax,
        tmpfs,
        disc,
        suite_on_stand_ins,
        kernel_agrees_and_nothing_is_left_after_a_kill,
        full_directory,
        no_file_can_be_made,
        no_directory,
        no_permission,
        a_file_system_that_fills,
        bad_blocks_under_dax,
    ],
};

/// A module whose namespace is raw, and a disc that forgets everything when the guest ends.
const QEMU: &[&str] = &[
    "-machine q35,nvdimm=on,nvdimm-persistence=cpu",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 1G,slots=2,maxmem=4G",
    "-object memory-backend-ram,id=n1,size=128M",
    "-device nvdimm,memdev=n1,id=nv1",
    "-drive if=none,id=disc,format=raw,snapshot=on,file.driver=null-co,file.size=134217728,file.read-zeroes=on",
    "-device virtio-blk-pci,bus=pcie.0,drive=disc",
];

const RAW: &str = "/tmp/raw";
const DISC: &str = "/tmp/disc";
const DISC_DEVICE: &str = "/dev/vda";

/// Not a test of memgauge, but the ground of all others.
fn file_systems() -> Result<()> {
    let (with, without) = devices()?;
    for device in [&with, &without, DISC_DEVICE] {
        guest::format(device)?;
    }
    guest::mount(&with, DAX, "ext4", "dax")?;
    ensure!(guest::mount(&without, RAW, "ext4", "dax").is_err(), "a raw namespace can do DAX");
    guest::mount(&without, RAW, "ext4", "")?;
    guest::mount(DISC_DEVICE, DISC, "ext4", "")?;
    guest::mount("tmpfs", TMPFS, "tmpfs", "size=96m")
}

/// The statements of the three commands that take a directory about it.
struct Expected {
    directory: &'static str,
    filesystem: &'static str,
    device: Option<String>,
    backing: FileBacking,
    map_sync: bool,
    pages: PageKind,
}

impl Expected {
    fn check(&self, line: &str) -> Result<Report> {
        let before = free(self.directory)?;
        let report = memgauge(&format!("{line} --memory-dir {}", self.directory)).measure()?;
        for m in measured(&report)? {
            let file = m.evidence.file.as_ref().with_context(|| format!("{line}: no file in the evidence of {:?}", m.at))?;
            ensure!(m.at.memory_dir.as_deref() == Some(self.directory) && file.path == self.directory, "{line}: {:?} {file:?}", m.at);
            ensure!((&*file.filesystem, &file.device) == (self.filesystem, &self.device), "{line}: {file:?}");
            ensure!((file.backing, file.map_sync) == (self.backing, self.map_sync), "{line}: {file:?}");
            // If a file has less than DAX with MAP_SYNC, a reason is given, except on tmpfs, where nobody could expect more.
            ensure!(file.reason.is_some() != self.map_sync || self.backing == FileBacking::Tmpfs, "{line}: {file:?}");
            ensure!(m.evidence.pages.obtained == Some(self.pages), "{line}: {:?}", m.evidence.pages);
            // Pages of a device are in no list; those of files in memory are all of that kind.
            ensure!(self.pages == PageKind::Dax || m.evidence.pages.share == Some(1.0), "{line}: {:?}", m.evidence.pages);
            ensure!(m.evidence.placement.status != PlacementStatus::Wrong, "{line}: {:?}", m.evidence.placement);
        }
        nothing_left(self.directory, before)?;
        Ok(report)
    }

    fn check_all(&self) -> Result<Vec<Report>> {
        // Whole pages of 2 MiB: with MAP_SYNC the first store to each page, whatever its size, waits for the journal.
        let lines = ["latency --size 4M --time 30ms", "bandwidth --size 4M --time 30ms", "loaded --size 4M --delay 5000 --time 100ms"];
        lines.iter().map(|line| self.check(line)).collect()
    }
}

/// Notes about the directory.
fn notes(report: &Report) -> Vec<&Note> {
    let plan = report.plan.as_ref().map(|p| &p.notes[..]).unwrap_or_default();
    report.notes.iter().chain(plan).filter(|note| note.code.word().starts_with("memory-dir")).collect()
}

fn dax_with_map_sync() -> Result<()> {
    let device = devices()?.0;
    // -1: the kernel does not know.
    let node = guest::read(Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join("device/numa_node"))?.parse::<u32>().ok();
    let expected = Expected {
        directory: DAX,
        filesystem: "ext4",
        device: Some(device),
        backing: FileBacking::Dax,
        map_sync: true,
        pages: PageKind::Dax,
    };
    for report in expected.check_all()? {
        ensure!(notes(&report).iter().all(|note| note.severity == Severity::Info), "{:?}", notes(&report));
        ensure!(notes(&report).iter().any(|note| note.code == NoteCode::MemoryDirNodeUnknown) == node.is_none(), "{:?}", notes(&report));
        for m in &report.results {
            let stated = m.evidence.file.as_ref().and_then(|file| file.device_node);
            ensure!(
                stated == node && m.evidence.placement.method == Some(PlacementMethod::Device),
                "node {stated:?}: {:?}",
                m.evidence.placement
            );
        }
    }
    Ok(())
}

/// Page cache in front of a device, which is DRAM: the note says so, and how to use DAX where that is possible.
fn page_cache(directory: &'static str, device: String, advice: &str) -> Result<()> {
    let expected = Expected {
        directory,
        filesystem: "ext4",
        device: Some(device),
        backing: FileBacking::PageCache,
        map_sync: false,
        pages: PageKind::File,
    };
    for report in expected.check_all()? {
        let notes = notes(&report);
        let note = notes.iter().find(|note| note.code == NoteCode::MemoryDirPageCache).with_context(|| format!("{notes:?}"))?;
        ensure!(note.severity == Severity::Warning && note.message.to_string().contains(directory), "{note:?}");
        ensure!(note.advice.as_ref().is_some_and(|text| text.to_string().contains(advice)), "'{advice}' is missing in {note:?}");
    }
    Ok(())
}

fn namespace_without_dax() -> Result<()> {
    page_cache(RAW, devices()?.1, "fsdax")
}

fn disc() -> Result<()> {
    page_cache(DISC, DISC_DEVICE.into(), "--memory-dir")
}

fn tmpfs() -> Result<()> {
    let expected = Expected {
        directory: TMPFS,
        filesystem: "tmpfs",
        device: None,
        backing: FileBacking::Tmpfs,
        map_sync: false,
        pages: PageKind::File,
    };
    for report in expected.check_all()? {
        ensure!(notes(&report).iter().any(|note| note.code == NoteCode::MemoryDirTmpfs), "{:?}", notes(&report));
        for m in &report.results {
            ensure!(m.evidence.placement.status == PlacementStatus::Verified, "{:?}", m.evidence.placement);
        }
    }
    Ok(())
}

/// The suite calls by their names what only stands in for persistent memory, and says what stands behind it.
fn suite_on_stand_ins() -> Result<()> {
    // As much of it as three seconds let it measure.
    let ran = memgauge(&format!("pmem {RAW} {TMPFS} --size 2M --within 3s")).run()?;
    let report = ran.report()?;
    let directories = &report.plan.as_ref().context("no plan")?.directories;
    let of = |path: &str| directories.iter().find(|d| d.file.path == path).with_context(|| format!("{path} is not in the plan"));
    let (raw, tmpfs) = (of(RAW)?, of(TMPFS)?);
    let behind = raw.persistent.as_ref().with_context(|| format!("{raw:?}"))?;
    ensure!((behind.provider.as_deref(), behind.mode.as_deref()) == (Some("ACPI.NFIT"), Some("raw")), "{behind:?}");
    ensure!(behind.emulated.as_ref().is_some_and(|why| why.contains("QEMU")), "{behind:?}");
    let [module] = &behind.modules[..] else { bail!("{behind:?}") };
    ensure!(module.name.starts_with("nmem") && module.serial.is_some() && module.faults.is_empty(), "{module:?}");
    ensure!(module.bytes.is_some_and(|b| b.0 >= 120 << 20), "{module:?}");
    ensure!(tmpfs.persistent.is_none(), "{tmpfs:?}");
    for (dir, why) in [(raw, "page cache"), (tmpfs, "tmpfs")] {
        ensure!(dir.file.volatile.as_ref().is_some_and(|text| text.contains(why)), "{:?}", dir.file);
        ensure!(
            notes(report).len() >= 2
                && report.notes.iter().any(|n| n.code == NoteCode::VolatileStandIn && n.message.to_string().contains(&dir.file.path)),
            "{:?}",
            report.notes
        );
    }
    let files: Vec<_> = report.measurements().filter(|m| m.estimate.value.is_some()).map(|m| m.evidence.file.as_ref()).collect();
    ensure!(!files.is_empty() && files.iter().all(|file| file.is_some_and(|f| f.volatile.is_some())), "{files:?}");
    Ok(())
}

/// While it measures, the kernel shows the mapping with the flags that the result would claim, and the directory shows no name; when it is
/// killed, the space is free again.
fn kernel_agrees_and_nothing_is_left_after_a_kill() -> Result<()> {
    for (directory, synchronous) in [(DAX, true), (RAW, false), (DISC, false), (TMPFS, false)] {
        let before = free(directory)?;
        let mut running = memgauge(&format!("bandwidth --cpu 0 --size 32M --time 20s --memory-dir {directory}")).start()?;
        let taken = |_| free(directory).is_ok_and(|now| now + (32 << 20) <= before);
        running.until("its file has its size", taken)?;
        running.until("it has mapped the file", |id| flags(id, directory).is_some())?;
        ensure!(names_in(directory)?.is_empty(), "a kill would leave {:?}", names_in(directory)?);
        let flags = flags(running.id(), directory).context("the mapping is gone")?;
        // VmFlags `sf`: synchronous page faults, which MAP_SYNC asks for; `sh`: shared.
        let has = |flag| flags.split_whitespace().any(|f| f == flag);
        ensure!(has("sf") == synchronous && has("sh"), "{directory}: {flags}");
        running.kill()?;
        let ran = running.wait()?;
        ensure!(ran.status.is_none() && ran.report.is_none(), "{directory}: it had ended by itself: {:?}", ran.status);
        nothing_left(directory, before)?;
    }
    Ok(())
}

/// The line `VmFlags` of a process's mapping of a file in `directory` of at least 32 MiB.
fn flags(id: u32, directory: &str) -> Option<String> {
    let smaps = fs::read_to_string(format!("/proc/{id}/smaps")).ok()?;
    let mut lines = smaps.lines().skip_while(|line| !line.contains(&format!(" {directory}/")));
    lines.next()?;
    lines.find_map(|line| line.strip_prefix("VmFlags:")).map(str::to_owned)
}

fn full_directory() -> Result<()> {
    // More than there is.
    for directory in [DAX, TMPFS] {
        let before = free(directory)?;
        let ran = memgauge(&format!("latency --size {} --memory-dir {directory}", before + (1 << 20))).run()?;
        ran.refused(4, &[directory, "--size"])?;
        nothing_left(directory, before)?;
    }
    // Enough once, and then somebody else took it.
    let filler = Path::new(TMPFS).join("filler");
    let rest = free(TMPFS)? - (2 << 20);
    fs::File::create(&filler)?.write_all(&vec![1; usize::try_from(rest)?])?;
    let ran = memgauge(&format!("bandwidth --size 4M --memory-dir {TMPFS}")).run();
    fs::remove_file(filler)?;
    ran?.refused(4, &[TMPFS, "--size"])
}

/// Where there is space and yet no file can be made or mapped.
fn no_file_can_be_made() -> Result<()> {
    for (directory, option, way_out) in [("/tmp/inodes", "nr_inodes=1", "free space"), ("/tmp/readonly", "ro", "mount it for writing")] {
        guest::mount("tmpfs", directory, "tmpfs", option)?;
        memgauge(&format!("latency --size 4M --memory-dir {directory}")).run()?.refused(4, &[directory, way_out])?;
        guest::unmount(directory)?;
    }
    // Not for files at all.
    memgauge("latency --size 4M --memory-dir /proc").run()?.refused(4, &["/proc", "another file system"])
}

fn no_directory() -> Result<()> {
    let file = format!("{TMPFS}/file");
    fs::write(&file, "")?;
    let ran = memgauge(&format!("latency --size 4M --memory-dir {file}")).run();
    fs::remove_file(&file)?;
    ran?.refused(64, &[&file, "directory"])?;
    memgauge("latency --size 4M --memory-dir /tmp/missing").run()?.refused(64, &["/tmp/missing"])
}
