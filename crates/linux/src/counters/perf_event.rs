//! `perf_event_open(2)`, its ioctls and its errors.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::security::{CAP_PERFMON, CAP_SYS_ADMIN, culprit, has_capability};
use crate::tree::Tree;

/// `PERF_ATTR_SIZE_VER1`: the attributes up to `config2`. Every kernel since 2.6.33 accepts this size.
const ATTR_BYTES: u32 = 72;

/// `struct perf_event_attr` of `linux/perf_event.h`, as far as its second version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

const _: () = assert!(size_of::<Attributes>() == ATTR_BYTES as usize);

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 0b11;
/// Bits of `flags`, in the order of the bit fields in `linux/perf_event.h`.
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
/// `PERF_IOC_FLAG_GROUP`: a leader and its group.
const GROUP: libc::c_ulong = 1;

/// What to count: the kernel's unit (`perf_event_attr.type`), and the words that select an event of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Config {
    /// `perf_event_attr.type`.
    pub(crate) kind: u32,
    /// `config`, `config1`, `config2`.
    pub(crate) words: [u64; 3],
}

impl Config {
    /// Whether the kernel counts this event only while its own code runs: a counter of user code opens, and stays 0.
    pub(crate) fn in_kernel_only(self) -> bool {
        /// `PERF_COUNT_SW_CONTEXT_SWITCHES` and `PERF_COUNT_SW_CPU_MIGRATIONS` (linux/perf_event.h).
        const SWITCHES: u64 = 3;
        const MIGRATIONS: u64 = 4;
        self.is_software() && [SWITCHES, MIGRATIONS].contains(&self.words[0])
    }

    /// Whether the kernel counts it without a unit of the hardware.
    pub(crate) fn is_software(self) -> bool {
        /// `PERF_TYPE_SOFTWARE`.
        const SOFTWARE: u32 = 1;
        self.kind == SOFTWARE
    }
}

/// Which code is counted, and from when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The calling thread, on any CPU, while the counter is enabled.
    ThisThread,
    /// The programs that the calling thread will start, and their children, from their `execve` on.
    Program,
    /// All code on one CPU, or the unit of the chip that this CPU stands for.
    Cpu(u32),
}

/// A counter: the kernel's, or a simulated one in tests.
pub(crate) trait Count: Sized {
    /// Opens a counter that is switched off. With a leader, it is switched together with that.
    fn open(config: Config, target: Target, user_only: bool, leader: Option<&Self>) -> Result<Self, CounterError>;
    /// Switches the counter and its group on or off. A counter that cannot be switched reads as one that was never enabled.
    fn switch(&self, on: bool);
    /// Reads the counter; `None` when the kernel returns too few bytes, as it does for a counter in an error state.
    fn read(&self) -> Option<Reading>;
}

/// A counter of the kernel.
#[derive(Debug)]
pub(crate) struct Counter(File);

/// What was read from a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Events.
    pub value: u64,
    /// Nanoseconds during which it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds during which it counted, because a hardware counter was free for it.
    pub running_ns: u64,
}

impl Reading {
    /// The difference from an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.saturating_sub(earlier.value),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }
}

/// Why an event cannot be counted here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The kernel shows no unit that counts CPU events.
    #[error("{0}")]
    NoPmu(String),
    /// `EACCES`: the value of the sysctl in words, and what to do about it.
    #[error("is refused (EACCES; kernel.perf_event_paranoid is {0}); {1}")]
    Refused(String, &'static str),
    /// `EACCES`, and neither the sysctl nor capabilities are the reason: who denied it.
    #[error("is refused (EACCES) though this process may count it by kernel.perf_event_paranoid or CAP_PERFMON: {0}")]
    Withheld(String),
    /// `EPERM`, as filters of system calls say.
    #[error("is refused (EPERM): a container's filter of system calls, a security module or lockdown forbids perf_event_open")]
    Forbidden,
    /// `ENOSYS`.
    #[error("needs perf_event_open, which this kernel or the container's filter of system calls does not have")]
    NoSystemCall,
    /// `ENOENT`, `ENODEV`, `EOPNOTSUPP`.
    #[error("is not among the events that this machine's PMU or its hypervisor offers ({0})")]
    NotHere(&'static str),
    /// It happens in kernel code, and only user code may be counted.
    #[error(
        "happens in the kernel, which may not be counted here; set kernel.perf_event_paranoid=1 or lower, or run with CAP_PERFMON or as root"
    )]
    InKernelOnly,
    /// `EINVAL`.
    #[error("is refused as invalid (EINVAL): this kernel or PMU does not know its code")]
    Invalid,
    /// `EMFILE`, `ENFILE`.
    #[error("needs more open files than this process may have (ulimit -n)")]
    TooManyFiles,
    /// Anything else.
    #[error("cannot be opened: {0}")]
    Other(String),
    /// The name or code of the event is wrong.
    #[error("{0}")]
    Unknown(String),
}

impl CounterError {
    /// `paranoid` is the value of the sysctl, where it can be read; `permitted`: by it, or by a capability, the event may be counted.
    fn from_errno(error: &io::Error, target: Target, paranoid: Option<&str>, permitted: bool) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES) if permitted => Self::Withheld(culprit()),
            Some(libc::EACCES) => {
                let advice = match target {
                    Target::Cpu(_) => "whole-machine events need kernel.perf_event_paranoid=0, CAP_PERFMON or root",
                    Target::ThisThread | Target::Program => "set kernel.perf_event_paranoid=2 or lower, or run with CAP_PERFMON or as root",
                };
                Self::Refused(paranoid.unwrap_or("not readable").to_owned(), advice)
            }
            Some(libc::EPERM) => Self::Forbidden,
            Some(libc::ENOSYS) => Self::NoSystemCall,
            Some(libc::ENOENT) => Self::NotHere("ENOENT"),
            Some(libc::ENODEV | libc::ENXIO) => Self::NotHere("ENODEV"),
            Some(libc::EOPNOTSUPP) => Self::NotHere("EOPNOTSUPP"),
            Some(libc::EINVAL) => Self::Invalid,
            Some(libc::EMFILE | libc::ENFILE) => Self::TooManyFiles,
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Whether this value of the sysctl lets a process without capabilities count (`Documentation/admin-guide/sysctl/kernel.rst`).
fn permits(paranoid: Option<&str>, target: Target, user_only: bool) -> bool {
    let highest = match target {
        Target::Cpu(_) => 0,
        Target::ThisThread | Target::Program => 1 + i32::from(user_only),
    };
    paranoid.and_then(|level| level.parse::<i32>().ok()).is_some_and(|level| level <= highest)
}

impl Count for Counter {
    fn open(config: Config, target: Target, user_only: bool, leader: Option<&Self>) -> Result<Self, CounterError> {
        let mut flags = if leader.is_none() { DISABLED } else { 0 };
        let (pid, cpu) = match target {
            Target::ThisThread => (0, -1),
            Target::Program => {
                flags |= INHERIT | if leader.is_none() { ENABLE_ON_EXEC } else { 0 };
                (0, -1)
            }
            Target::Cpu(cpu) => (-1, i32::try_from(cpu).unwrap_or(i32::MAX)),
        };
        if user_only {
            flags |= EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        }
        let [config0, config1, config2] = config.words;
        let attributes = Attributes {
            kind: config.kind,
            size: ATTR_BYTES,
            config: config0,
            config1,
            config2,
            read_format: TIMES,
            flags,
            ..Default::default()
        };
        let group = leader.map_or(-1, |l| l.0.as_raw_fd());
        // SAFETY: the kernel only reads the attributes, which have the size that they state. The other arguments are numbers.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, pid, cpu, group, CLOSE_ON_EXEC) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            let tree = Tree::new(Path::new("/"));
            let paranoid = tree.text("proc/sys/kernel/perf_event_paranoid");
            let capable = [CAP_SYS_ADMIN, CAP_PERFMON].iter().any(|number| has_capability(tree, *number));
            let permitted = capable || permits(paranoid.as_deref(), target, user_only);
            return Err(CounterError::from_errno(&error, target, paranoid.as_deref(), permitted));
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }.into()))
    }

    fn switch(&self, on: bool) {
        let request = if on { ENABLE } else { DISABLE };
        // SAFETY: the descriptor is open while `self` lives, and the request takes a number.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, GROUP) };
    }

    fn read(&self) -> Option<Reading> {
        let mut bytes = [0; 24];
        let n = (&self.0).read(&mut bytes).ok()?;
        if n < bytes.len() {
            return None;
        }
        let word = |i: usize| bytes[8 * i..8 * i + 8].try_into().map_or(0, u64::from_ne_bytes);
        Some(Reading { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(errno: i32, target: Target) -> String {
        CounterError::from_errno(&io::Error::from_raw_os_error(errno), target, Some("4"), false).to_string()
    }

    #[test]
    fn a_refusal_names_the_sysctl_and_the_way_out() {
        let own = words(libc::EACCES, Target::ThisThread);
        assert!(own.contains("perf_event_paranoid is 4") && own.contains("=2 or lower") && own.contains("CAP_PERFMON"), "{own}");
        let all = words(libc::EACCES, Target::Cpu(0));
        assert!(all.contains("=0") && all.contains("whole-machine"), "{all}");
    }

    #[test]
    fn a_refusal_of_what_is_permitted_is_a_security_module() {
        let (own, all) = (Target::ThisThread, Target::Cpu(0));
        assert!(permits(Some("2"), own, true) && !permits(Some("3"), own, true), "user code");
        assert!(permits(Some("1"), own, false) && !permits(Some("2"), own, false), "the kernel's part too");
        assert!(permits(Some("-1"), all, false) && !permits(Some("1"), all, false) && !permits(None, all, false), "all CPUs");
        let why = CounterError::from_errno(&io::Error::from_raw_os_error(libc::EACCES), own, Some("1"), true).to_string();
        assert!(!why.contains("set kernel.perf") && why.contains("CAP_PERFMON: "), "{why}");
    }

    #[test]
    fn every_errno_of_the_manual_page_has_words_of_its_own() {
        let list = [
            libc::EACCES,
            libc::EPERM,
            libc::ENOSYS,
            libc::ENOENT,
            libc::ENODEV,
            libc::EOPNOTSUPP,
            libc::EINVAL,
            libc::EMFILE,
            libc::E2BIG,
        ];
        let texts: std::collections::BTreeSet<String> = list.iter().map(|&e| words(e, Target::ThisThread)).collect();
        assert_eq!(texts.len(), list.len(), "{texts:?}");
    }
}
