//! Model-specific registers of single CPUs, through `/dev/cpu/N/msr`: a register is the eight bytes at the offset of its number.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Verb, Way, Ways};

use super::journal::Saved;
use crate::security::explained;
use crate::tree::Tree;
use crate::{container, setting};

/// The kernel's module, where it is loaded or built in.
const MODULE: &str = "sys/module/msr";
/// Whether the module lets registers be written (Linux 5.9).
const ALLOW_WRITES: &str = "sys/module/msr/parameters/allow_writes";

/// The folder of the kernel's module, which has a folder for each CPU.
pub const MSR_DEVICES: &str = "/dev/cpu";

/// The model-specific registers of all CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Msr {
    devices: PathBuf,
    root: PathBuf,
}

/// Why a register could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsrError {
    /// The CPU.
    pub cpu: u32,
    /// The register.
    pub register: u32,
    /// What went wrong.
    pub fault: MsrFault,
}

/// What went wrong with a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MsrFault {
    /// No CPU has a device.
    NoModule(NoDevices),
    /// The CPU has no device, or there is no CPU behind it.
    Offline,
    /// This device may not be opened, and the system's error: not root, or without the capability.
    NotPermitted(PathBuf, String),
    /// Kernel lockdown of this mode refuses writes.
    Lockdown(String),
    /// The module's parameter refuses writes; how to change it.
    WritesOff(Option<String>),
    /// To `read` or to `write` it was refused, and the kernel does not say why.
    Refused(&'static str),
    /// The CPU (or its hypervisor) raised a fault at the instruction that reads.
    NoRegister,
    /// The CPU (or its hypervisor) raised a fault at the instruction that writes this value.
    Reserved(u64),
    /// It was written, and reads back with another value.
    Forgotten {
        /// What was written.
        wrote: u64,
        /// What was read back.
        read: u64,
    },
    /// It kept the value at first, and had another one later.
    Changed {
        /// What was written.
        wrote: u64,
        /// What was read later.
        read: u64,
    },
    /// Anything else: the device and the system's error.
    Other(PathBuf, String),
}

/// No CPU has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoDevices {
    /// The device that was looked for.
    device: PathBuf,
    /// The kernel's module is there.
    loaded: bool,
    /// This process is in a container, which has a `/dev` of its own.
    in_container: bool,
}

impl fmt::Display for NoDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match (self.loaded, self.in_container) {
            (false, _) => "the kernel's msr module is not loaded",
            (true, true) => "this container does not have it (the kernel's msr module is loaded)",
            (true, false) => "/dev lacks it, though the kernel's msr module is loaded",
        };
        write!(f, "there is no {}: {why}", self.device.display())
    }
}

impl NoDevices {
    fn advice(&self) -> &'static str {
        match (self.loaded, self.in_container) {
            (false, false) => "as root: modprobe msr (a kernel without CONFIG_X86_MSR has none)",
            (false, true) => "outside of this container, as root: modprobe msr; and run there, because containers do not have its devices",
            (true, true) => "run outside of this container, as root, or pass its devices in (docker run --privileged)",
            (true, false) => "see that /dev is the kernel's (devtmpfs)",
        }
    }
}

impl std::error::Error for MsrError {}

impl fmt::Display for MsrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, register, fault } = self;
        match fault {
            MsrFault::NoModule(none) => none.fmt(f),
            MsrFault::Offline => write!(f, "CPU {cpu} is offline"),
            MsrFault::NotPermitted(device, why) => {
                write!(f, "{} may not be opened: {why}; it takes root with CAP_SYS_RAWIO", device.display())
            }
            MsrFault::Lockdown(mode) => {
                write!(f, "the kernel refuses to write registers: it is locked down ({mode}), as it is after Secure Boot")
            }
            MsrFault::WritesOff(_) => f.write_str("the kernel's msr module refuses to write registers (allow_writes=off)"),
            MsrFault::Refused(access) => write!(f, "the kernel refuses to {access} register {register:#x} of CPU {cpu}"),
            MsrFault::NoRegister => write!(f, "CPU {cpu} refuses to read register {register:#x}: it has none here"),
            MsrFault::Reserved(value) => write!(
                f,
                "CPU {cpu} refuses to write {value:#x} to register {register:#x}: a bit is reserved here, or a hypervisor keeps the register"
            ),
            MsrFault::Forgotten { wrote, read } => {
                write!(f, "register {register:#x} of CPU {cpu} was written with {wrote:#x} and reads back {read:#x}")
            }
            MsrFault::Changed { wrote, read } => {
                write!(f, "register {register:#x} of CPU {cpu} was changed during the run, from {wrote:#x} to {read:#x}")
            }
            MsrFault::Other(device, error) => write!(f, "{}: {error}", device.display()),
        }
    }
}

impl MsrError {
    /// That the CPU of a register in a journal is offline.
    pub(super) const fn offline(saved: &Saved) -> Self {
        Self { cpu: saved.cpu, register: saved.register, fault: MsrFault::Offline }
    }

    /// The advice to the user.
    pub fn advice(&self) -> Ways {
        let advice = match &self.fault {
            MsrFault::NoModule(none) => none.advice(),
            MsrFault::Offline => {
                let restore = words!["run '", Verb::PrefetchRestore, "' if a run was changing it"];
                return Way::Say(words!["bring it online (", Verb::Info, " says how)"]).and(restore);
            }
            MsrFault::NotPermitted(..) => "run as root, outside of containers, or with CAP_SYS_RAWIO",
            MsrFault::Lockdown(_) => "switch prefetchers in the BIOS set-up, or boot without Secure Boot and lockdown=",
            MsrFault::WritesOff(Some(how)) => return Way::from(how.clone()).or("boot without msr.allow_writes=off"),
            MsrFault::WritesOff(None) => "boot without msr.allow_writes=off",
            MsrFault::Refused(_) => "run as root with CAP_SYS_RAWIO, outside of containers; see dmesg for lockdown",
            MsrFault::NoRegister | MsrFault::Reserved(_) => "switch prefetchers in the BIOS set-up; in a virtual machine, on the host",
            MsrFault::Forgotten { .. } => {
                "a hypervisor or firmware swallows the write: switch prefetchers on the host, or in the BIOS set-up"
            }
            MsrFault::Changed { .. } => "stop other programs that write this register (wrmsr, tuned, pqos), and run again",
            MsrFault::Other(..) => "see dmesg",
        };
        advice.into()
    }
}

impl Msr {
    /// Registers below `devices` ([`MSR_DEVICES`]) of the machine whose `/sys` is below `root`.
    pub fn new(devices: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        Self { devices: devices.into(), root: root.into() }
    }

    /// Opens the device of a CPU. If a test has put files in place of the devices, it refuses devices, so that nobody reaches a register by
    /// naming another folder.
    fn open(&self, cpu: u32, options: &OpenOptions) -> io::Result<File> {
        let file = options.open(self.device(cpu))?;
        if self.devices != Path::new(MSR_DEVICES) && file.metadata()?.file_type().is_char_device() {
            return Err(io::Error::other("is a device, in a folder that stands in for devices"));
        }
        Ok(file)
    }

    fn device(&self, cpu: u32) -> PathBuf {
        self.devices.join(cpu.to_string()).join("msr")
    }

    /// Reads a register of a CPU.
    ///
    /// # Errors
    /// [`MsrError`], with the reason as far as it is known.
    pub fn read(&self, cpu: u32, register: u32) -> Result<u64, MsrError> {
        let mut bytes = [0; 8];
        let done = self.open(cpu, OpenOptions::new().read(true)).and_then(|file| file.read_exact_at(&mut bytes, u64::from(register)));
        done.map(|()| u64::from_le_bytes(bytes)).map_err(|e| self.error(cpu, register, None, &e))
    }

    /// Writes a register of a CPU and reads it back.
    ///
    /// # Errors
    /// [`MsrError`]; [`MsrFault::Forgotten`] when it reads back otherwise.
    pub fn write(&self, cpu: u32, register: u32, value: u64) -> Result<(), MsrError> {
        let done = self
            .open(cpu, OpenOptions::new().write(true))
            // One call with all eight bytes, because the kernel writes whole registers.
            .and_then(|file| file.write_at(&value.to_le_bytes(), u64::from(register)));
        match done {
            Ok(8) => {}
            Ok(n) => {
                let fault = MsrFault::Other(self.device(cpu), format!("{n} bytes of 8 were written"));
                return Err(MsrError { cpu, register, fault });
            }
            Err(e) => return Err(self.error(cpu, register, Some(value), &e)),
        }
        let read = self.read(cpu, register)?;
        if read == value { Ok(()) } else { Err(MsrError { cpu, register, fault: MsrFault::Forgotten { wrote: value, read } }) }
    }

    /// The CPUs that have a device. Without the module there is none.
    fn present(&self) -> IdSet {
        let folders = std::fs::read_dir(&self.devices).into_iter().flatten().flatten();
        let numbered = folders.filter_map(|f| f.file_name().to_str()?.parse().ok());
        numbered.filter(|&cpu| self.device(cpu).exists()).collect()
    }

    /// Why there is none. Of files in place of devices, the machine's module says nothing.
    fn no_devices(&self, cpu: u32) -> NoDevices {
        let (tree, real) = (Tree::new(&self.root), self.devices == Path::new(MSR_DEVICES));
        NoDevices { device: self.device(cpu), loaded: real && tree.exists(MODULE), in_container: real && container::is_inside(tree) }
    }

    fn error(&self, cpu: u32, register: u32, writing: Option<u64>, error: &io::Error) -> MsrError {
        let fault = match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV) if self.present().is_empty() => MsrFault::NoModule(self.no_devices(cpu)),
            // ENXIO means that the device file exists and its CPU is gone.
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::ENOTDIR) => MsrFault::Offline,
            Some(libc::EIO) => writing.map_or(MsrFault::NoRegister, MsrFault::Reserved),
            Some(libc::EPERM | libc::EACCES) => self.refusal(cpu, writing.is_some()),
            _ => MsrFault::Other(self.device(cpu), error.to_string()),
        };
        MsrError { cpu, register, fault }
    }

    /// Finds out which refusal it was, because all of them are EPERM (`arch/x86/kernel/msr.c`: `msr_open`, `msr_write`, `filter_write`).
    fn refusal(&self, cpu: u32, writing: bool) -> MsrFault {
        let device = self.device(cpu);
        if let Err(error) = OpenOptions::new().read(true).open(&device) {
            return MsrFault::NotPermitted(device, explained(&error));
        }
        if writing {
            let text = |file: &str| std::fs::read_to_string(self.root.join(file)).unwrap_or_default();
            let lockdown = text("sys/kernel/security/lockdown");
            let mode = lockdown.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode);
            // Without securityfs the kernel's command line shows what was asked for at boot.
            let arguments = text("proc/cmdline");
            let argument = arguments.split_whitespace().find_map(|a| a.strip_prefix("lockdown="));
            if let Some(mode) = mode.or(argument).filter(|mode| *mode != "none") {
                return MsrFault::Lockdown(mode.to_owned());
            }
            if text(ALLOW_WRITES).trim() == "off" {
                let tree = Tree::new(&self.root);
                return MsrFault::WritesOff(setting::change(tree, setting::changed_from(tree), ALLOW_WRITES, "default"));
            }
        }
        MsrFault::Refused(if writing { "write" } else { "read" })
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::tests::fixture::Fixture;

    /// Plain files in place of devices: they keep what is written at an offset.
    fn folder(cpus: u32) -> (TempDir, Msr) {
        let folder = TempDir::new().unwrap();
        for cpu in 0..cpus {
            std::fs::create_dir_all(folder.path().join(cpu.to_string())).unwrap();
            let file = std::fs::File::create(folder.path().join(format!("{cpu}/msr"))).unwrap();
            file.set_len(0x1000).unwrap();
        }
        let msr = Msr::new(folder.path(), folder.path());
        (folder, msr)
    }

    #[test]
    fn registers_are_eight_bytes_at_their_number() {
        let (folder, msr) = folder(2);
        msr.write(1, 0x1A4, 0x0123_4567_89AB_CDEF).unwrap();
        assert_eq!(msr.read(1, 0x1A4), Ok(0x0123_4567_89AB_CDEF));
        assert_eq!(msr.read(0, 0x1A4), Ok(0));
        let raw = std::fs::read(folder.path().join("1/msr")).unwrap();
        assert_eq!(raw[0x1A4..0x1AC], 0x0123_4567_89AB_CDEF_u64.to_le_bytes());
    }

    #[test]
    fn an_offline_cpu_differs_from_a_missing_module() {
        let (folder, msr) = folder(1);
        assert_eq!(msr.read(5, 0x1A4).unwrap_err().fault, MsrFault::Offline);
        std::fs::remove_file(folder.path().join("0/msr")).unwrap();
        let none = msr.read(0, 0x1A4).unwrap_err();
        assert!(matches!(none.fault, MsrFault::NoModule(_)) && none.advice().to_string().contains("modprobe msr"), "{none}");
    }

    #[test]
    fn missing_devices_have_their_cause() {
        let found = |files: &[(&str, &str)]| {
            let tree = Fixture::new().files(files);
            let none = Msr::new(MSR_DEVICES, tree.root()).no_devices(0);
            (none.to_string(), none.advice())
        };
        let (module, container) = (("sys/module/msr/refcnt", "0"), (".dockerenv", ""));
        let (why, advice) = found(&[]);
        assert!(why.ends_with("/dev/cpu/0/msr: the kernel's msr module is not loaded") && advice.starts_with("as root: modprobe"), "{why}");
        let (why, advice) = found(&[module]);
        assert!(why.contains("though the kernel's msr module is loaded") && advice.contains("devtmpfs"), "{why}");
        let (why, advice) = found(&[module, container]);
        assert!(why.contains("this container does not have it") && !advice.contains("modprobe"), "{why}");
        let (why, advice) = found(&[container]);
        assert!(why.contains("is not loaded") && advice.starts_with("outside of this container"), "{why}");
    }

    #[test]
    fn a_refused_write_says_what_refused_it() {
        let (folder, msr) = folder(1);
        let refused = |msr: &Msr| msr.error(0, 0x1A4, Some(1), &io::Error::from_raw_os_error(libc::EPERM)).fault;
        assert_eq!(refused(&msr), MsrFault::Refused("write"));
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(ALLOW_WRITES, "off\n");
        let off = MsrFault::WritesOff(Some("as root: echo default > /sys/module/msr/parameters/allow_writes".to_owned()));
        assert_eq!(refused(&msr), off);
        write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        assert_eq!(refused(&msr), MsrFault::Lockdown("integrity".into()));
        write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        assert_eq!(refused(&msr), off);
        let faulted = msr.error(0, 0x1A4, Some(0x40), &io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(faulted.fault, MsrFault::Reserved(0x40));
        assert!(faulted.to_string().contains("reserved"), "{faulted}");
        assert_eq!(msr.error(3, 0x1A4, None, &io::Error::from_raw_os_error(libc::ENXIO)).fault, MsrFault::Offline);
    }
}
