//! `perf_event_open(2)` and its ioctls.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::error::CounterError;

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

/// A counter of the kernel.
#[derive(Debug)]
pub(crate) struct Counter(File);

/// What was read from a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Events.
    pub value: u64,
    /// Nanoseconds in which it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds in which it counted, because a hardware counter was free for it.
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

impl Counter {
    /// Opens a counter that is switched off. With a leader, it is switched together with that.
    pub(crate) fn open(config: Config, target: Target, user_only: bool, leader: Option<&Self>) -> Result<Self, CounterError> {
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
            return Err(CounterError::from_open(&io::Error::last_os_error(), matches!(target, Target::Cpu(_))));
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }.into()))
    }

    /// Switches the counter and its group on.
    pub(crate) fn enable(&self) {
        self.switch(ENABLE);
    }

    /// Switches the counter and its group off.
    pub(crate) fn disable(&self) {
        self.switch(DISABLE);
    }

    /// Switches the counter and its group. A counter that cannot be switched reads as one that was never enabled.
    fn switch(&self, request: u64) {
        // SAFETY: the descriptor is open while `self` lives, and the request takes a number.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, GROUP) };
    }

    /// Reads the counter; `None` when the kernel returns too few bytes, as it does for a counter in an error state.
    pub(crate) fn read(&self) -> Option<Reading> {
        let mut bytes = [0; 24];
        let n = (&self.0).read(&mut bytes).ok()?;
        if n < bytes.len() {
            return None;
        }
        let word = |i: usize| bytes[8 * i..8 * i + 8].try_into().map_or(0, u64::from_ne_bytes);
        Some(Reading { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}
