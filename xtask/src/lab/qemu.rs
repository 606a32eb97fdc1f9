//! Booting a guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memgauge_lab::contract::{JOB_ARGUMENT, OUTCOMES, SHARE_TAG, SHELL_ARGUMENT};
use memgauge_lab::{Arch, Job};

/// A guest that reports no result for this long hangs: the slowest test needs half of this on two busy CPUs.
const PATIENCE: Duration = Duration::from_secs(420);

/// For every kernel: quick to boot, quiet, dead rather than stuck after a panic. QEMU translates code once for each address that it is loaded to:
/// with every program at the same address (`norandmaps`) a tenth to a third of the time is saved. Memory is not zeroed twice.
const KERNEL: &str = "quiet panic=-1 norandmaps init_on_alloc=0 cryptomgr.notests rcupdate.rcu_expedited=1 random.trust_cpu=on audit=0 apparmor=0 selinux=0 nowatchdog rodata=off mitigations=off nokaslr";
/// An emulated x86 has no timer worth checking, and its TSC is QEMU's. Tables of pages have four levels and not five, which QEMU walks itself.
/// MONITOR and MWAIT (131) are left out: an offline CPU waits with them, which QEMU emulates as a loop that takes a CPU of the host.
const KERNEL_X86_64: &str = "console=ttyS0 no_timer_check tsc=reliable no5lvl clearcpuid=131";
const KERNEL_AARCH64: &str = "console=ttyAMA0";

/// The things that a guest is booted with.
pub(crate) struct Boot<'a> {
    pub(crate) qemu: &'a Path,
    /// Folders of its firmware, if they are not the installed ones.
    pub(crate) firmware: &'a [PathBuf],
    pub(crate) kernel: &'a Path,
    pub(crate) image: &'a Path,
    /// The folder that it shares.
    pub(crate) share: &'a Path,
    /// Where its console goes.
    pub(crate) console: &'a Path,
}

/// QEMU's name on Debian, and the package that has it.
pub(crate) const fn program(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// Boots a job's machine and waits for its end; `shell`: with a shell on this terminal.
///
/// # Errors
/// When QEMU cannot start, says that an argument is wrong, or does not end.
pub(crate) fn boot(job: &Job, boot: &Boot<'_>, shell: bool) -> Result<()> {
    let mut command = Command::new(boot.qemu);
    for folder in boot.firmware {
        command.arg("-L").arg(folder);
    }
    // Software emulation by name: `/dev/kvm` may exist and not work with the guest's kernel. A machine may name its own.
    if !job.machine.qemu.iter().any(|a| a.starts_with("-accel")) {
        command.args(["-accel", "tcg,thread=multi,tb-size=256"]);
    }
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    for argument in job.machine.qemu {
        command.args(argument.splitn(2, ' '));
    }
    if shell {
        command.args(["-serial", "mon:stdio"]);
    } else {
        command.args(["-chardev", &format!("file,id=console,path={}", boot.console.display()), "-serial", "chardev:console"]);
    }
    command.args(["-fsdev", &format!("local,id=share,path={},security_model=none", boot.share.display())]);
    // The bus by name, as QEMU might choose one of CXL; both kinds of machine call theirs this.
    command.args(["-device", &format!("virtio-9p-pci,bus=pcie.0,fsdev=share,mount_tag={SHARE_TAG}")]);
    let own = match job.machine.arch {
        Arch::X86_64 => KERNEL_X86_64,
        Arch::Aarch64 => KERNEL_AARCH64,
    };
    let ask = if shell { SHELL_ARGUMENT.to_owned() } else { format!("{JOB_ARGUMENT}{}", job.name) };
    let arguments = format!("{own} {KERNEL} {} {ask}", job.machine.kernel.join(" "));
    command.arg("-kernel").arg(boot.kernel).arg("-initrd").arg(boot.image).args(["-append", &arguments]);
    if shell {
        command.status().context("cannot start QEMU")?;
        return Ok(());
    }
    let errors = boot.console.with_extension("qemu");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&errors)?);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", boot.qemu.display()))?;
    let outcomes = boot.share.join(OUTCOMES);
    let (mut reported, mut last_report) = (0, Instant::now());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let length = fs::metadata(&outcomes).map_or(0, |file| file.len());
        if length != reported {
            (reported, last_report) = (length, Instant::now());
        }
        if last_report.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("the guest reported nothing for {} s; its console: {}", PATIENCE.as_secs(), boot.console.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        bail!("QEMU: {status}: {}", fs::read_to_string(&errors).unwrap_or_default().trim());
    }
    Ok(())
}
