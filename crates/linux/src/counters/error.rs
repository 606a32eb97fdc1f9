//! Why an event cannot be counted.

use std::fs;
use std::io;

/// Why an event cannot be counted here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The kernel shows no unit that counts CPU events.
    #[error("{0}")]
    NoPmu(String),
    /// `EACCES`.
    #[error("is refused (EACCES; kernel.perf_event_paranoid is {paranoid}); {advice}")]
    Refused {
        /// The sysctl's value, in words.
        paranoid: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// `EPERM`, as filters of system calls say.
    #[error("is refused (EPERM): a container's filter of system calls, a security module or lockdown forbids perf_event_open")]
    Forbidden,
    /// `ENOSYS`.
    #[error("needs perf_event_open, which this kernel or the container's filter of system calls does not have")]
    NoSystemCall,
    /// `ENOENT`, `ENODEV`, `EOPNOTSUPP`.
    #[error("is not among the events that this machine's PMU or its hypervisor offers ({0})")]
    NotHere(&'static str),
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
    pub(crate) fn from_open(error: &io::Error, machine_wide: bool) -> Self {
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
        Self::from_errno(error, machine_wide, paranoid.as_deref().map(str::trim))
    }

    /// As [`Self::from_open`], with the value of the sysctl.
    pub(crate) fn from_errno(error: &io::Error, machine_wide: bool, paranoid: Option<&str>) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES) => Self::Refused {
                paranoid: paranoid.unwrap_or("not readable").to_owned(),
                advice: if machine_wide {
                    "whole-machine events need kernel.perf_event_paranoid=0, CAP_PERFMON or root"
                } else {
                    "set kernel.perf_event_paranoid=2 or lower, or run with CAP_PERFMON or as root"
                },
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(errno: i32, machine_wide: bool) -> String {
        CounterError::from_errno(&io::Error::from_raw_os_error(errno), machine_wide, Some("4")).to_string()
    }

    #[test]
    fn a_refusal_names_the_sysctl_and_the_way_out() {
        let own = words(libc::EACCES, false);
        assert!(own.contains("perf_event_paranoid is 4") && own.contains("=2 or lower") && own.contains("CAP_PERFMON"), "{own}");
        let all = words(libc::EACCES, true);
        assert!(all.contains("=0") && all.contains("whole-machine"), "{all}");
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
        let texts: std::collections::BTreeSet<String> = list.iter().map(|&e| words(e, false)).collect();
        assert_eq!(texts.len(), list.len(), "{texts:?}");
    }
}
