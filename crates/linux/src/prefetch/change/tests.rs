use std::fs::{self, File};
use std::path::PathBuf;

use super::*;
use crate::prefetch::JournalError;
use memgauge_model::prefetchers::{INTEL_REGISTER, Processor, control};
use memgauge_model::units::IdSet;

/// Two CPUs whose registers are plain files, and a folder for journals.
struct Fake {
    folder: PathBuf,
    registers: PrefetchRegisters,
    controls: BTreeMap<u32, Control>,
}

impl Fake {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("memgauge-prefetch-{name}-{}", std::process::id()));
        for cpu in 0..2 {
            fs::create_dir_all(folder.join(format!("cpu/{cpu}"))).unwrap();
            File::create(folder.join(format!("cpu/{cpu}/msr"))).unwrap().set_len(0x1000).unwrap();
        }
        let boot = folder.join("proc/sys/kernel/random");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("boot_id"), "first\n").unwrap();
        let registers = PrefetchRegisters::new(folder.join("cpu"), folder.join("run"), &folder);
        let skylake = Processor { arch: "x86_64", vendor: "GenuineIntel", family: Some(6), model: Some(0x55), ..Processor::default() };
        let controls = (0..2).map(|cpu| (cpu, control(&skylake).unwrap())).collect();
        let fake = Self { folder, registers, controls };
        fake.write(0, 0x800);
        fake.write(1, 0x4);
        fake
    }

    fn begin(&self, kind: ChangeKind) -> Result<PrefetchChange, PrefetchError> {
        PrefetchChange::begin(self.registers.clone(), &self.controls, kind)
    }

    fn read(&self, cpu: u32) -> u64 {
        self.registers.msr.read(cpu, INTEL_REGISTER).unwrap()
    }

    fn write(&self, cpu: u32, value: u64) {
        self.registers.msr.write(cpu, INTEL_REGISTER, value).unwrap();
    }

    fn both(&self) -> (u64, u64) {
        (self.read(0), self.read(1))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_change_sets_masked_bits_only_and_restores_them() {
    let fake = Fake::new("change");
    let mut change = fake.begin(ChangeKind::Run).unwrap();
    assert_eq!(fake.both(), (0x800, 0x4), "nothing is written before set()");
    change.set(true).unwrap();
    assert_eq!(fake.both(), (0x80F, 0xF));
    change.set(false).unwrap();
    assert_eq!(fake.both(), (0x800, 0));
    change.set(true).unwrap();
    assert_eq!(change.verify().unwrap(), BTreeMap::from([(0, 0x80F), (1, 0xF)]));
    // A bit that another program changed meanwhile is left alone.
    fake.write(0, 0x8F);
    change.restore().unwrap();
    assert_eq!(fake.both(), (0x80, 0x4));
    assert_eq!(fake.registers.waiting(), []);
}

#[test]
fn dropping_and_panicking_restore() {
    let fake = Fake::new("drop");
    let place = std::panic::AssertUnwindSafe(&fake);
    let ended = std::panic::catch_unwind(|| {
        let mut change = place.begin(ChangeKind::Run).unwrap();
        change.set(true).unwrap();
        assert_eq!(place.both(), (0x80F, 0xF));
        std::panic::panic_any(0);
    });
    assert!(ended.is_err());
    assert_eq!(fake.both(), (0x800, 0x4));
}

#[test]
fn two_changes_do_not_overlap() {
    let fake = Fake::new("overlap");
    let first = fake.begin(ChangeKind::Run).unwrap();
    let busy = fake.begin(ChangeKind::Run).unwrap_err();
    assert!(matches!(&busy, PrefetchError::Busy(who) if *who == format!("process {}", std::process::id())), "{busy}");
    assert!(matches!(fake.registers.restore(), Err(PrefetchError::Busy(_))));
    drop(first);
    fake.begin(ChangeKind::Run).unwrap();
}

/// Leaves everything as a power cut or SIGKILL of both processes does.
fn killed(fake: &Fake) {
    let mut change = fake.begin(ChangeKind::Run).unwrap();
    change.set(true).unwrap();
    change.keep();
}

#[test]
fn a_journal_is_replayed_once_and_dropped_after_a_boot() {
    let fake = Fake::new("replay");
    killed(&fake);
    assert_eq!(fake.registers.waiting(), [ChangeKind::Run]);
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::Restored(2), Leftover::Nothing]);
    assert_eq!(fake.both(), (0x800, 0x4));
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::Nothing, Leftover::Nothing]);
    killed(&fake);
    fs::write(fake.folder.join("proc/sys/kernel/random/boot_id"), "second\n").unwrap();
    assert_eq!(fake.registers.waiting(), []);
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::EarlierBoot, Leftover::Nothing]);
    assert_eq!(fake.both(), (0x80F, 0xF), "a journal of another boot is not applied");
}

#[test]
fn a_journal_is_kept_and_replayed_when_the_boot_is_unknown() {
    let fake = Fake::new("unknown-boot");
    let id = fake.folder.join("proc/sys/kernel/random/boot_id");
    for hidden_when_killed in [false, true] {
        if hidden_when_killed {
            fs::remove_file(&id).unwrap();
        }
        killed(&fake);
        if hidden_when_killed {
            fs::write(&id, "first\n").unwrap();
        } else {
            fs::write(&id, "").unwrap();
        }
        assert_eq!(fake.registers.waiting(), [ChangeKind::Run]);
        assert_eq!(fake.registers.restore().unwrap(), [Leftover::Restored(2), Leftover::Nothing]);
        assert_eq!(fake.both(), (0x800, 0x4));
    }
}

#[test]
fn the_next_run_undoes_the_change_of_a_killed_run() {
    let fake = Fake::new("next");
    killed(&fake);
    let mut next = fake.begin(ChangeKind::Run).unwrap();
    assert_eq!(*next.leftover(), Leftover::Restored(2));
    assert_eq!(fake.both(), (0x800, 0x4));
    next.set(true).unwrap();
    next.restore().unwrap();
    assert_eq!(fake.both(), (0x800, 0x4), "the values before the killed run, not those that it left");
}

#[test]
fn a_kept_change_survives_runs_and_is_restored_to_the_first_values() {
    let fake = Fake::new("kept");
    for off in [true, false, true] {
        let mut change = fake.begin(ChangeKind::Kept).unwrap();
        change.set(off).unwrap();
        change.keep();
    }
    assert_eq!(fake.both(), (0x80F, 0xF));
    let mut run = fake.begin(ChangeKind::Run).unwrap();
    run.set(false).unwrap();
    assert_eq!(fake.both(), (0x800, 0));
    run.restore().unwrap();
    assert_eq!(fake.both(), (0x80F, 0xF));
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::Nothing, Leftover::Restored(2)]);
    assert_eq!(fake.both(), (0x800, 0x4));
}

#[test]
fn a_register_that_changes_or_goes_offline_is_named_and_its_journal_kept() {
    let fake = Fake::new("gone");
    let mut change = fake.begin(ChangeKind::Run).unwrap();
    change.set(true).unwrap();
    fake.write(1, 0xB);
    let changed = change.verify().unwrap_err().to_string();
    assert!(changed.contains("CPU 1") && changed.contains("0xf to 0xb"), "{changed}");
    let device = fake.folder.join("cpu/1/msr");
    fs::rename(&device, device.with_extension("gone")).unwrap();
    let left = change.restore().unwrap_err();
    assert!(left.to_string().contains("CPU 1 is offline"), "{left}");
    assert_eq!(fake.read(0), 0x800, "the others are restored");
    fs::rename(device.with_extension("gone"), &device).unwrap();
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::Restored(1), Leftover::Nothing]);
    assert_eq!(fake.both(), (0x800, 0x4));
}

/// Takes the CPU's device away, as the kernel does when the CPU goes offline, or puts it back.
fn set_online(fake: &Fake, cpu: u32, online: bool) {
    let device = fake.folder.join(format!("cpu/{cpu}/msr"));
    let (from, to) = if online { (device.with_extension("gone"), device) } else { (device.clone(), device.with_extension("gone")) };
    fs::rename(from, to).unwrap();
}

#[test]
fn a_cpu_that_is_offline_keeps_neither_the_other_journal_nor_the_next_run() {
    let mut fake = Fake::new("offline");
    let mut kept = fake.begin(ChangeKind::Kept).unwrap();
    kept.set(true).unwrap();
    kept.keep();
    let mut run = fake.begin(ChangeKind::Run).unwrap();
    run.set(false).unwrap();
    run.keep();
    set_online(&fake, 1, false);
    let waits = |n| Leftover::Partly(n, IdSet::one(1));
    assert_eq!(fake.registers.restore().unwrap(), [waits(1), waits(1)]);
    assert_eq!((fake.read(0), fake.registers.waiting()), (0x800, vec![ChangeKind::Run, ChangeKind::Kept]));
    // A new run does what it can, and leaves the rest as it was.
    let gone = fake.controls.remove(&1).unwrap();
    let mut next = fake.begin(ChangeKind::Run).unwrap();
    assert_eq!(*next.leftover(), waits(0));
    next.set(true).unwrap();
    assert_eq!(fake.read(0), 0x80F);
    next.restore().unwrap();
    assert_eq!((fake.read(0), fake.registers.restore().unwrap()), (0x800, [waits(0), waits(0)]));
    // Back online, it has what the killed run wrote. First comes what was before that run, then what was before the kept change.
    set_online(&fake, 1, true);
    assert_eq!(fake.read(1), 0);
    fake.controls.insert(1, gone);
    assert_eq!(fake.registers.restore().unwrap(), [Leftover::Restored(1), Leftover::Restored(1)]);
    assert_eq!((fake.both(), fake.registers.waiting()), ((0x800, 0x4), vec![]));
}

#[test]
fn a_register_that_another_thread_of_the_core_has_restored_does_not_wait() {
    // CPU 1 is a thread of CPU 0's core, and of another core.
    for (same, after) in [(true, Leftover::Restored(2)), (false, Leftover::Partly(1, IdSet::one(1)))] {
        let fake = Fake::new("sibling");
        fake.write(1, 0x800);
        for cpu in 0..2 {
            let topology = fake.folder.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("core_cpus_list"), if same { "0-1\n".to_owned() } else { format!("{cpu}\n") }).unwrap();
        }
        killed(&fake);
        set_online(&fake, 1, false);
        assert_eq!(fake.registers.restore().unwrap(), [after, Leftover::Nothing]);
        assert_eq!((fake.read(0), fake.registers.waiting().is_empty()), (0x800, same));
    }
}

#[test]
fn a_damaged_journal_stops_everything() {
    let fake = Fake::new("damaged");
    killed(&fake);
    fs::write(fake.registers.folder.join(ChangeKind::Run.file()), "memgauge prefetch journal 1\nid 1\n").unwrap();
    assert!(matches!(fake.begin(ChangeKind::Run), Err(PrefetchError::Journal(JournalError::Damaged(..)))));
    assert!(matches!(fake.registers.restore(), Err(PrefetchError::Journal(JournalError::Damaged(..)))));
}
