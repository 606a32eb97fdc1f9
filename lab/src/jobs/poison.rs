//! Errors of memory that the hardware cannot correct, in buffers while they are measured. The kernel takes the word of an administrator
//! for the error (`hard_offline_page`) and does from there on what it does for a real one: it takes the page away from memgauge and sends
//! SIGBUS with `BUS_MCEERR_AR` to the thread that uses it, or announces it with `BUS_MCEERR_AO`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_analysis::conclusions::scan;
use memgauge_model::note::NoteCode;
use memgauge_model::result::{FindingCode, HealthStatus, Measurement};
use memgauge_model::wording::reasons;

use crate::guest::{self, pool, pool_state};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::memory::{PAGE, Poisoned, corrupted, poison};
use crate::program::{PATIENCE, Ran, memgauge};

pub(crate) const JOB: Job = Job {
    name: "poison",
    about: "pages with hardware errors in measured memory: base pages, huge ones, pools, tmpfs, DAX; announced early and not",
    optional: false,
    machine: Machine {
        qemu: QEMU,
        kernel: &["memmap=128M!512M"],
        modules: &["nd_e820", "nd_pmem", "crc32c_generic", "ext4"],
        tools: &["mke2fs"],
        ..PLAIN
    },
    tests: tests![
        a_chase_of_base_pages,
        stores_to_huge_pages,
        a_page_of_a_pool,
        a_region_of_a_scan,
        checked_contents,
        loops_keep_earlier_sizes,
        every_other_command,
        a_health_check,
        a_file_in_memory,
        announced_early,
        a_file_on_a_device,
        without_privileges,
    ],
};

const QEMU: &[&str] = &["-machine q35", "-cpu max,vendor=GenuineIntel", "-smp 2", "-m 1536M"];

const EARLY: &str = "/proc/sys/vm/memory_failure_early_kill";
/// A page in the middle of a buffer of 4 MiB, and in the middle of a huge page.
const OFFSET: u64 = (2 << 20) + 37 * PAGE;
const HUGE: u64 = 2 << 20;

/// Runs memgauge with an error at `offset` in its first buffer of `bytes`.
fn with_error(line: &str, bytes: u64, offset: u64) -> Result<(Ran, Poisoned)> {
    let running = memgauge(line).start()?;
    let poisoned = poison(&running, bytes, offset);
    let ran = running.within(PATIENCE).with_context(|| line.to_owned())?;
    let poisoned = poisoned.with_context(|| format!("{line}: exit status {:?}: {}", ran.status, ran.stderr))?;
    Ok((ran, poisoned))
}

/// It says on standard error and in a note that the hardware reported an error, and where, and ends as for an incident.
fn names_it(ran: &Ran, words: &[String]) -> Result<()> {
    ensure!(ran.status == Some(3), "exit status {:?} instead of 3: {}", ran.status, ran.stderr);
    let report = ran.report()?;
    ensure!(!report.complete && report.incomplete.is_some(), "complete, reason {:?}", report.incomplete);
    let note = report.notes.iter().find(|note| note.code == NoteCode::MemoryCorrupted).with_context(|| format!("{:?}", report.notes))?;
    ensure!(note.advice.is_some(), "{note:?}");
    for word in words.iter().map(String::as_str).chain(["has a hardware memory error"]) {
        ensure!(note.message.to_string().contains(word), "'{word}' is missing in {note:?}");
        ensure!(ran.stderr.contains(word), "'{word}' is missing in: {}", ran.stderr);
    }
    Ok(())
}

/// The byte, and the physical address of it.
fn place(found: &Poisoned) -> Vec<String> {
    vec![format!("at byte {},", found.offset), format!("physical address {:#x} ", found.physical)]
}

/// One cell has no value, because of the error; all others have one, and nothing was compared that differed.
fn costs_one(ran: &Ran) -> Result<&Measurement> {
    let mut lost = None;
    for m in ran.report()?.measurements() {
        match &m.estimate.not_measured {
            None => {
                ensure!(m.estimate.value.is_some_and(|value| value > 0.0), "{:?}: {:?}", m.at, m.estimate);
                ensure!(!scan::corrupted(m), "{:?}: {:?}", m.at, m.evidence);
            }
            Some(why) => {
                let why = reasons::not_measured(why);
                ensure!(why.contains("hardware memory error"), "{:?}: {why}", m.at);
                ensure!(lost.replace(m).is_none(), "more than one cell is lost: {}", ran.stderr);
            }
        }
    }
    let measured = ran.report()?.results.iter().filter(|m| m.estimate.value.is_some()).count();
    ensure!(measured > 0, "no cell was measured: {}", ran.stderr);
    lost.with_context(|| format!("no cell is lost: {}", ran.stderr))
}

/// Its one cell is lost.
fn a_chase_of_base_pages() -> Result<()> {
    let before = corrupted()?;
    let (ran, found) = with_error("latency --cpu 0 --order full-random --pages 4k --size 4M --time 12s", 4 << 20, OFFSET)?;
    ensure!(corrupted()? > before, "the kernel does not count a page with an error");
    names_it(&ran, &place(&found))?;
    let report = ran.report()?;
    let lost = report.measurements().all(|m| m.estimate.value.is_none() && scan::corrupted(m));
    ensure!(lost && !report.results.is_empty(), "{:?}", report.results);
    Ok(())
}

/// The kernel splits the huge page, and only a small part of it is lost.
fn stores_to_huge_pages() -> Result<()> {
    let (ran, found) = with_error("bandwidth --cpu 0-1 --mix 1:1,all-reads --pages thp --size 4M --time 1s", 4 << 20, OFFSET)?;
    names_it(&ran, &place(&found))?;
    costs_one(&ran).map(drop)
}

/// A page of a pool is lost as a whole, and the pool has one fewer afterwards. The kernel does not say where the page was.
fn a_page_of_a_pool() -> Result<()> {
    guest::write(pool(0, HUGE >> 10).join("nr_hugepages"), "8")?;
    let outcome = (|| {
        let (ran, _) = with_error("bandwidth --cpu 0 --mix all-reads,1:1 --pages 2m --size 4M --time 1s", 4 << 20, HUGE)?;
        names_it(&ran, &[format!("at byte {HUGE} ")])?;
        costs_one(&ran)?;
        let (all, free) = pool_state(0, HUGE >> 10)?;
        ensure!(all == free && all < 8, "the pool afterwards: {all} pages, {free} free");
        Ok(())
    })();
    guest::write(pool(0, HUGE >> 10).join("nr_hugepages"), "0")?;
    outcome
}

/// The region is lost; all others are read and compared, and no word is said to differ.
fn a_region_of_a_scan() -> Result<()> {
    let line = "scan --node 0 --size 32M --region 4M --passes 16 --integrity --patterns random,checkerboard";
    let (ran, found) = with_error(line, 4 << 20, OFFSET)?;
    names_it(&ran, &place(&found))?;
    let lost = costs_one(&ran)?;
    let region = lost.at.region.context("a cell without region")?;
    ensure!(ran.stderr.contains(&format!("1 region of node 0 has a hardware memory error: region {region}")), "{}", ran.stderr);
    for m in &ran.report()?.results {
        let integrity = m.evidence.integrity.as_ref().context("nothing was compared")?;
        ensure!(integrity.mismatches == 0, "{:?}: {integrity:?}", m.at);
        ensure!(m.at.region == lost.at.region || integrity.patterns == integrity.patterns_planned, "{:?}: {integrity:?}", m.at);
        let known = m.evidence.physical.as_ref().is_some_and(|physical| physical.first.is_some());
        ensure!(known || m.at.region == lost.at.region, "{:?}: {:?}", m.at, m.evidence.physical);
    }
    ensure!(
        ran.report()?.notes.iter().all(|note| note.code != memgauge_model::note::NoteCode::ScanNoAddresses),
        "{:?}",
        ran.report()?.notes
    );
    Ok(())
}

/// Contents are compared before, during and after a measurement. The zeros in place of the lost page do not count as words that differ.
fn checked_contents() -> Result<()> {
    let line = "bandwidth --ramp --cpu 0,1 --line check --mix all-reads --pages 4k --size 4M --time 1s";
    let (ran, found) = with_error(line, 4 << 20, OFFSET)?;
    names_it(&ran, &place(&found))?;
    let words = ran.report()?.measurements().filter_map(|m| m.evidence.integrity.as_ref()).map(|i| i.mismatches).sum::<u64>();
    ensure!(words == 0, "{words} words differ");
    costs_one(&ran).map(drop)
}

/// `chase` and `stream` keep the sizes before, and the passes before. As many passes as take seconds without the error, which ends them: it must
/// come while they run, on fast machines as well.
fn loops_keep_earlier_sizes() -> Result<()> {
    for line in ["chase 256K,4M --pages 4k --passes 400", "stream 256K,4M --pages thp --passes 400"] {
        let (ran, found) = with_error(line, 4 << 20, OFFSET)?;
        names_it(&ran, &place(&found)).context(line)?;
        let [before, hit] = &ran.report()?.results[..] else { anyhow::bail!("{line}: {} results", ran.report()?.results.len()) };
        let proof = before.evidence.proof.as_ref().context("no proof")?;
        ensure!(before.estimate.value.is_some_and(|value| value > 0.0) && proof.mismatches == 0, "{line}: {before:?}");
        // If a pass was complete before the error, its value is the result.
        let clean = hit.evidence.proof.as_ref().is_none_or(|proof| proof.mismatches == 0 && proof.passes > 0);
        let known = hit.estimate.value.is_some() == hit.evidence.proof.is_some();
        ensure!(clean && known && hit.estimate.value.is_some() != hit.estimate.not_measured.is_some(), "{line}: {hit:?}");
    }
    Ok(())
}

/// None crashes, each names the error, and the results until then are kept.
fn every_other_command() -> Result<()> {
    for line in [
        "loaded --delay 0,5000 --pages 4k --size 4M --time 1s",
        "c2c --cpu 0,1 --state hitm --pages 4k --size 4M --time 3s",
        "sweep --cpu 0 --min 2M --max 4M --points-per-octave 1 --pages 4k --time 500ms",
        "run /tmp/cells --pages 4k --time 1s",
    ] {
        std::fs::write("/tmp/cells", "[[threads]]\ncpus = \"0-1\"\nsize = \"4M\"\n")?;
        let (ran, found) = with_error(line, 4 << 20, OFFSET).with_context(|| line.to_owned())?;
        names_it(&ran, &place(&found)).context(line)?;
    }
    Ok(())
}

/// The verdict is an incident, whatever else was found; the first finding is the error, and every other cell is measured.
fn a_health_check() -> Result<()> {
    let (ran, found) = with_error("quick --within 20s --pages 4k --size 4M --time 200ms", 4 << 20, OFFSET)?;
    names_it(&ran, &place(&found))?;
    let report = ran.report()?;
    let health = report.health.as_ref().context("no verdict")?;
    ensure!(health.status == HealthStatus::Incident, "{health:?}");
    let first = health.findings.first().context("no findings")?;
    ensure!(first.code == FindingCode::MemoryCorrupted && first.severity == HealthStatus::Incident && first.advice.is_some(), "{health:?}");
    let (lost, kept): (Vec<&Measurement>, Vec<&Measurement>) = report.results.iter().partition(|m| m.estimate.value.is_none());
    ensure!(!kept.is_empty(), "nothing is kept: {}", ran.stderr);
    for m in &lost {
        let why = m.estimate.not_measured.as_ref().map(reasons::not_measured).unwrap_or_default();
        ensure!(why.contains("hardware memory error"), "{:?}: {why}", m.at);
    }
    ensure!(!lost.is_empty() && kept.iter().all(|m| !scan::corrupted(m)), "{} lost, {} kept", lost.len(), kept.len());
    Ok(())
}

/// Files of a tmpfs are memory as well.
fn a_file_in_memory() -> Result<()> {
    guest::mount("tmpfs", "/tmp/files", "tmpfs", "size=64m")?;
    let line = "bandwidth --cpu 0 --mix all-reads,1:1 --size 4M --time 1s --memory-dir /tmp/files";
    let (ran, found) = with_error(line, 4 << 20, OFFSET)?;
    names_it(&ran, &place(&found))?;
    names_it(&ran, &["its file in /tmp/files".to_owned()])?;
    costs_one(&ran)?;
    ensure!(std::fs::read_dir("/tmp/files")?.next().is_none(), "a file is left");
    Ok(())
}

/// If an administrator asks for that, the kernel sends the signal at once, to a thread that does not use the page.
fn announced_early() -> Result<()> {
    guest::write(EARLY, "1")?;
    let outcome = (|| {
        let (ran, found) = with_error("bandwidth --cpu 0-1 --mix all-reads,1:1 --pages 4k --size 4M --time 1s", 4 << 20, OFFSET)?;
        names_it(&ran, &place(&found))?;
        costs_one(&ran).map(drop)
    })();
    guest::write(EARLY, "0")?;
    outcome
}

/// DAX: the kernel has no page to take away. It announces the error to those who asked for it, and unmaps the page.
fn a_file_on_a_device() -> Result<()> {
    let (device, directory) = ("/dev/pmem0", "/tmp/dax");
    guest::appears(Path::new(device))?;
    guest::format(device)?;
    guest::mount(device, directory, "ext4", "dax")?;
    guest::write(EARLY, "1")?;
    let outcome = (|| {
        let line = format!("bandwidth --cpu 0 --mix all-reads,1:1 --size 4M --time 1s --memory-dir {directory}");
        let (ran, found) = with_error(&line, 4 << 20, OFFSET)?;
        names_it(&ran, &[format!("its file in {directory} has a hardware memory error at byte {}", found.offset)])?;
        costs_one(&ran).map(drop)
    })();
    guest::write(EARLY, "0")?;
    outcome
}

/// Without the right to see physical addresses, the place in the buffer is named.
fn without_privileges() -> Result<()> {
    let running = memgauge("bandwidth --cpu 0 --mix all-reads,1:1 --pages 4k --size 4M --time 1s").without_root().start()?;
    let found = poison(&running, 4 << 20, OFFSET);
    let ran = running.within(PATIENCE)?;
    names_it(&ran, &[format!("at byte {} (poisoned page)", found?.offset)])?;
    costs_one(&ran).map(drop)
}
