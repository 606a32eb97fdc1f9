//! The security module of the kernel that confines this process. It may deny an access that file modes and capabilities allow.

use std::fmt;
use std::io;
use std::path::Path;

use crate::tree::{Tree, field};

/// Numbers of capabilities (`include/uapi/linux/capability.h`).
pub(crate) const CAP_DAC_OVERRIDE: u32 = 1;
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
pub(crate) const CAP_PERFMON: u32 = 38;

/// Types of SELinux whose programs are confined by nothing but the permissions that everybody has.
const UNCONFINED: &str = "unconfined";

/// The security module that confines this process, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Confinement {
    /// The context of its domain.
    SeLinux(String),
    /// The name of its profile.
    AppArmor(String),
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeLinux(context) => write!(f, "SELinux confines this program to {context}, and 'ausearch -m AVC' shows what it denied"),
            Self::AppArmor(profile) => {
                write!(f, "AppArmor confines this program to the profile {profile}, and dmesg or the audit log shows what it denied")
            }
        }
    }
}

impl Confinement {
    /// Reads it below a root; `None` where nothing confines the process, or it may not see that.
    fn read(tree: Tree<'_>) -> Option<Self> {
        // Modules may be stacked, and only the first of them has the file without a folder. A policy may hide the main thread's from others.
        let own = ["apparmor/current", "current"].into_iter().find_map(|file| tree.text(&format!("proc/thread-self/attr/{file}")))?;
        if let Some((profile, mode)) = own.rsplit_once(" (") {
            return (mode != "complain)").then(|| Self::AppArmor(profile.to_owned()));
        }
        // USER:ROLE:TYPE, and a range of levels where the policy has levels. Without a policy it is one word.
        let kind = own.split(':').nth(2)?;
        let enforcing = tree.text("sys/fs/selinux/enforce").as_deref() != Some("0");
        (enforcing && !kind.starts_with(UNCONFINED)).then(|| Self::SeLinux(own.clone()))
    }
}

/// The kernel's error. If it is a refusal, the security module that confines this process follows, because that may be the reason.
pub fn explained(error: &io::Error) -> String {
    explain(error, Tree::new(Path::new("/")))
}

/// The same for a thread that was not started. C libraries make every error of that the one of a limit, `EAGAIN`.
pub fn explained_start(error: &io::Error) -> String {
    explain_start(error, Tree::new(Path::new("/")))
}

fn explain_start(error: &io::Error, tree: Tree<'_>) -> String {
    match Confinement::read(tree) {
        Some(confinement) => format!("{error}, or it is denied; {confinement}"),
        None => error.to_string(),
    }
}

fn explain(error: &io::Error, tree: Tree<'_>) -> String {
    // By its kind: a library may have added a path to the error, and has then lost its number.
    let refused = error.kind() == io::ErrorKind::PermissionDenied;
    match Confinement::read(tree).filter(|_| refused) {
        Some(confinement) => format!("{error}; {confinement}"),
        None => error.to_string(),
    }
}

/// The security module that denied this process something that only such a module denies.
pub(crate) fn culprit() -> String {
    culprit_in(Tree::new(Path::new("/")))
}

fn culprit_in(tree: Tree<'_>) -> String {
    let unknown = || "a security module (AppArmor, SELinux) or a sandbox denies it".to_owned();
    Confinement::read(tree).map_or_else(unknown, |confinement| confinement.to_string())
}

/// Whether this process has a capability on the machine and not only in a container, as far as the kernel shows: a security module may
/// withhold it.
pub(crate) fn has_capability(tree: Tree<'_>, number: u32) -> bool {
    let status = tree.text("proc/self/status").unwrap_or_default();
    // In the first name space of users every user is itself: FIRST SAME COUNT. A kernel without such name spaces has no file.
    let map = tree.text("proc/self/uid_map");
    let first = map.is_none_or(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]));
    first && held_capabilities(&status) >> number & 1 == 1
}

/// The capabilities in force by the text of `/proc/self/status`, a bit each.
pub(crate) fn held_capabilities(status: &str) -> u64 {
    field(status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Fixture;

    fn confined(files: &[(&str, &str)]) -> Option<Confinement> {
        Confinement::read(Tree::new(Fixture::new().files(files).root()))
    }

    #[test]
    fn a_domain_or_profile_in_force_confines() {
        let context = "system_u:system_r:memgauge_t:s0";
        let (own, enforce) = ("proc/thread-self/attr/current", "sys/fs/selinux/enforce");
        assert_eq!(confined(&[(own, &format!("{context}\0")), (enforce, "1")]), Some(Confinement::SeLinux(context.into())));
        assert_eq!(confined(&[(own, context)]), Some(Confinement::SeLinux(context.into())), "/sys may be hidden");
        assert_eq!(confined(&[(own, context), (enforce, "0")]), None, "permissive");
        assert_eq!(confined(&[(own, "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023"), (enforce, "1")]), None);
        assert_eq!(confined(&[(own, "kernel"), (enforce, "1")]), None, "no policy is loaded");
        assert_eq!(confined(&[(own, "docker-default (enforce)\n")]), Some(Confinement::AppArmor("docker-default".into())));
        assert_eq!(confined(&[(own, "a profile (complain)")]), None);
        assert_eq!(confined(&[(own, "unconfined\n")]), None);
        let stacked = confined(&[(own, context), ("proc/thread-self/attr/apparmor/current", "strict (enforce)")]);
        assert_eq!(stacked, Some(Confinement::AppArmor("strict".into())));
        assert_eq!(confined(&[]), None);
    }

    #[test]
    fn a_refusal_names_what_confines_and_other_errors_do_not() {
        let fixture = Fixture::new().file("proc/thread-self/attr/current", "u:r:memgauge_t:s0");
        let says = |errno| explain(&io::Error::from_raw_os_error(errno), Tree::new(fixture.root()));
        for errno in [libc::EACCES, libc::EPERM] {
            assert!(says(errno).contains("SELinux confines this program to u:r:memgauge_t:s0"), "{}", says(errno));
        }
        assert!(!says(libc::ENOSPC).contains("SELinux"), "{}", says(libc::ENOSPC));
        let start = explain_start(&io::Error::from_raw_os_error(libc::EAGAIN), Tree::new(fixture.root()));
        assert!(start.contains("or it is denied; SELinux"), "{start}");
        let wrapped = io::Error::new(io::ErrorKind::PermissionDenied, "at path \"/results\"");
        assert!(explain(&wrapped, Tree::new(fixture.root())).contains("SELinux"), "{wrapped}");
        let plain = explain(&io::Error::from_raw_os_error(libc::EACCES), Tree::new(Fixture::new().root()));
        assert_eq!(plain, io::Error::from_raw_os_error(libc::EACCES).to_string());
        assert!(culprit_in(Tree::new(fixture.root())).contains("memgauge_t"));
        assert!(culprit_in(Tree::new(Fixture::new().root())).contains("a security module"));
    }

    #[test]
    fn capabilities_are_bits_of_the_status() {
        let fixture = Fixture::new().file("proc/self/status", "Name:\tmemgauge\nCapEff:\t0000004000200000\n");
        let has = |number| has_capability(Tree::new(fixture.root()), number);
        assert!(has(21) && has(38) && !has(17));
        assert!(!has_capability(Tree::new(Fixture::new().root()), 0));
        let mapped = |map: &str| {
            let files = [("proc/self/status", "CapEff:\t000001ffffffffff\n"), ("proc/self/uid_map", map)];
            has_capability(Tree::new(Fixture::new().files(&files).root()), 21)
        };
        assert!(mapped("         0          0 4294967295\n"));
        assert!(!mapped("         0       1000          1\n"), "root of a container without root");
    }
}
