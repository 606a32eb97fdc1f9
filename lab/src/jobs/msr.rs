//! Registers of prefetchers on real kernels: no module, an emulated CPU that forgets what is written, `allow_writes=off`, a CPU offline.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_model::prefetchers::PrefetchStatus;
use memgauge_model::result::Report;
use memgauge_model::units::IdSet;

use crate::guest::{self, set_online};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{Memgauge, memgauge, mlc};

pub(crate) const JOB: Job = Job {
    name: "msr",
    about: "prefetchers' registers: no module, writes forgotten or refused, a CPU offline, no root",
    optional: false,
    machine: Machine { qemu: QEMU, modules: &["msr"], ..PLAIN },
    tests: tests![
        without_the_module_it_is_named,
        registers_are_read,
        what_an_emulated_cpu_forgets_is_not_claimed,
        the_drop_in_chases_at_random_where_writes_are_forgotten,
        a_register_that_keeps_its_value_is_written_and_restored,
        writes_switched_off,
        an_offline_cpu_is_named,
        only_root,
        amd_without_the_announcement,
    ],
};

pub(crate) const LOCKDOWN: Job = Job {
    name: "lockdown",
    about: "prefetchers' registers where the kernel is locked down: read, and not written",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["lockdown=integrity"], modules: &["msr"], ..PLAIN },
    tests: tests![registers_are_read, a_locked_down_kernel_refuses],
};

/// A model whose bits are known. QEMU's software emulation reads its register as 0 and drops what is written.
const QEMU: &[&str] = &["-machine q35", "-cpu max,vendor=GenuineIntel,family=6,model=85", "-smp 2", "-m 512M"];

/// A run that would switch prefetchers off.
const OFF: &str = "latency --prefetch off --size 1M --time 200ms";

fn refused(run: Memgauge, words: &[&str]) -> Result<()> {
    let ran = run.run()?;
    ran.refused(4, words)?;
    ensure!(ran.report.is_none(), "it measured: {:?}", ran.report);
    ensure!(!Path::new("/run/memgauge/prefetch-run.journal").exists(), "a journal stays");
    Ok(())
}

/// The output of `status`, for any exit status.
fn status() -> Result<Report> {
    memgauge("prefetch status").run()?.report.context("status wrote nothing")
}

fn without_the_module_it_is_named() -> Result<()> {
    remove_module()?;
    refused(memgauge(OFF), &["msr module is not loaded", "modprobe msr"])?;
    let state = status()?.environment.prefetch.context("no state")?;
    ensure!(
        state.status == PrefetchStatus::Unknown && state.advice.is_some_and(|a| a.to_string().contains("modprobe msr")),
        "{:?}",
        state.reason
    );
    guest::load_module(Path::new("/modules/msr.ko"))
}

fn registers_are_read() -> Result<()> {
    let report = status()?;
    let state = report.environment.prefetch.context("no state")?;
    ensure!(state.status == PrefetchStatus::On, "{state:?}");
    ensure!(state.register.as_deref().is_some_and(|r| r.starts_with("0x1a4 ")), "{:?}", state.register);
    let group = state.groups.first().context("no CPU")?;
    ensure!(group.cpus == "0-1".parse::<IdSet>()? && group.value.as_deref() == Some("0x0") && group.on.len() == 4, "{group:?}");
    Ok(())
}

fn what_an_emulated_cpu_forgets_is_not_claimed() -> Result<()> {
    let words = ["register 0x1a4 of CPU 0 was written with 0xf and reads back 0x0", "hypervisor", "tainted"];
    refused(memgauge(OFF), &words)?;
    refused(memgauge("prefetch compare --size 1M --time 200ms"), &words)?;
    refused(memgauge("prefetch off"), &words)?;
    // The user was warned beforehand: bit 2 stands for a CPU out of specification.
    let tainted: u64 = guest::read("/proc/sys/kernel/tainted")?.parse()?;
    ensure!(tainted & 4 != 0, "tainted is {tainted}");
    Ok(())
}

fn the_drop_in_chases_at_random_where_writes_are_forgotten() -> Result<()> {
    let matrix = "--latency_matrix -b1m -t0.2";
    for (line, unable, order) in [(matrix.to_owned(), true, "random"), (format!("{matrix} -e"), false, "sequential")] {
        let text = mlc(&line)?;
        ensure!(text.contains("*** Unable to modify prefetchers") == unable, "{line}: {text}");
        ensure!(text.contains(&format!("Measuring idle latencies for {order} access")), "{line}: {text}");
        ensure!(!Path::new("/run/memgauge/prefetch-run.journal").exists(), "a journal stays");
    }
    ensure!(status()?.environment.prefetch.context("no state")?.status == PrefetchStatus::On, "something was switched");
    Ok(())
}

/// TSC_AUX keeps what it is given, on each CPU its own: the same way through the kernel's device as the prefetchers' register.
fn a_register_that_keeps_its_value_is_written_and_restored() -> Result<()> {
    use memgauge_os::prefetch::{MSR_DEVICES, Msr, MsrFault};
    const TSC_AUX: u32 = 0xC000_0103;
    let msr = Msr::new(MSR_DEVICES, "/");
    for cpu in [0, 1] {
        let before = msr.read(cpu, TSC_AUX)?;
        ensure!(before == u64::from(cpu), "Linux puts the CPU's number there: {before:#x}");
        msr.write(cpu, TSC_AUX, before | 0x100)?;
        ensure!(msr.read(cpu, TSC_AUX)? == before | 0x100 && msr.read(1 - cpu, TSC_AUX)? == u64::from(1 - cpu), "CPU {cpu}");
        msr.write(cpu, TSC_AUX, before)?;
    }
    let forgotten = msr.write(0, 0x1A4, 1).err().context("0x1a4 keeps its value here")?;
    ensure!(matches!(forgotten.fault, MsrFault::Forgotten { read: 0, .. }), "{forgotten}");
    Ok(())
}

fn writes_switched_off() -> Result<()> {
    let switch = "/sys/module/msr/parameters/allow_writes";
    guest::write(switch, "off")?;
    let refusal = refused(memgauge(OFF), &["allow_writes=off", "allow_writes, or boot"]);
    guest::write(switch, "default")?;
    refusal
}

/// With CPU 1 offline, CPU 0 can be read, and the report names CPU 1 and claims nothing about it.
fn an_offline_cpu_is_named() -> Result<()> {
    set_online(1, false)?;
    let report = status();
    let back = set_online(1, true);
    let report = report?;
    back?;
    let note = report.notes.iter().find(|n| n.code == memgauge_model::note::NoteCode::PrefetchCpusOffline).context("no note of CPU 1")?;
    ensure!(note.message.to_string().contains("CPU 1 is offline"), "{note:?}");
    let groups = report.environment.prefetch.context("no state")?.groups;
    ensure!(groups.len() == 1 && groups[0].cpus == IdSet::one(0), "{groups:?}");
    // Its device is gone with it. The message differs from that of a missing module.
    set_online(1, false)?;
    let read = memgauge_os::prefetch::Msr::new(memgauge_os::prefetch::MSR_DEVICES, "/").read(1, 0x1A4);
    set_online(1, true)?;
    ensure!(
        read == Err(memgauge_os::prefetch::MsrError { cpu: 1, register: 0x1A4, fault: memgauge_os::prefetch::MsrFault::Offline }),
        "{read:?}"
    );
    Ok(())
}

fn only_root() -> Result<()> {
    memgauge(OFF).without_root().run()?.refused(4, &["root"])
}

/// A different CPU: CPUID says whether it has the register, and no access is tried.
fn amd_without_the_announcement() -> Result<()> {
    use memgauge_model::prefetchers::controls;
    let mut machine = status()?.machine;
    machine.identity.vendor = Some("AuthenticAMD".into());
    machine.identity.model.insert("family".into(), "25".into());
    let announced = memgauge_kernels::has_prefetch_control();
    ensure!(!announced, "a Skylake announces AMD's register");
    let found = controls(&machine, announced);
    let why = "does not announce a prefetch control register (CPUID 8000_0021h EAX bit 13 is clear), as hypervisors rarely pass it on";
    ensure!(found.values().all(|c| c.as_ref().is_err_and(|error| error.ends_with(why))), "{found:?}");
    Ok(())
}

fn a_locked_down_kernel_refuses() -> Result<()> {
    let lockdown = fs::read_to_string("/proc/cmdline")?;
    ensure!(lockdown.contains("lockdown=integrity"), "{lockdown}");
    let words = ["locked down (integrity)", "Secure Boot", "BIOS"];
    refused(memgauge(OFF), &words)?;
    refused(memgauge("prefetch off"), &words)
}

/// Removes the kernel's msr module.
fn remove_module() -> Result<()> {
    // SAFETY: a string that ends in zero.
    let done = unsafe { libc::syscall(libc::SYS_delete_module, c"msr".as_ptr(), libc::O_NONBLOCK) };
    ensure!(done == 0, "delete_module: {}", std::io::Error::last_os_error());
    Ok(())
}
