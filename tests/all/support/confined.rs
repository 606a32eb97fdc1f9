//! Running a program with less than it is used to: limits on resources, control groups, filters of system calls.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is the failure report of its test, and what a test skips it says")]
#![allow(dead_code, reason = "no program needs all of it")]

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets both limits on a resource, such as `libc::RLIMIT_AS as u32`.
pub(crate) fn limit(command: &mut Command, which: u32, value: u64) {
    limits(command, which, value, value);
}

/// Sets the limit on a resource and the highest value that it can be raised to.
pub(crate) fn limits(command: &mut Command, which: u32, soft: u64, hard: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    let set = move || {
        // SAFETY: reads one `rlimit`. The type of the number differs between C libraries.
        if unsafe { libc::setrlimit(which as _, &raw const limit) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes one system call only.
    unsafe { command.pre_exec(set) };
}

/// Starts it with this memory policy (linux/mempolicy.h) over these of the first nodes, as `numactl` does. Refused: it does not start.
pub(crate) fn policy(command: &mut Command, mode: libc::c_int, nodes: u64) {
    let set = move || {
        // SAFETY: the mask has the 64 bits that the call is given; the call reads one bit fewer.
        let rc = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const nodes, 65) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes one system call only.
    unsafe { command.pre_exec(set) };
}

/// Makes these system calls fail with `errno`, as filters of containers do.
pub(crate) fn deny(command: &mut Command, calls: &[libc::c_long], errno: i32) {
    filter(command, &[(calls, fails(errno))]);
}

/// What a filter does with a call that shall fail with this error.
pub(crate) const fn fails(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// Does with each system call what the first list that has it says, and lets through those that are in none.
pub(crate) fn filter(command: &mut Command, lists: &[(&[libc::c_long], u32)]) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The number of the call is the first word of seccomp_data.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for (calls, action) in lists {
        for &call in *calls {
            program.push(libc::sock_filter { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32) });
            program.push(statement(libc::BPF_RET | libc::BPF_K, *action));
        }
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let install = move || {
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: both calls only restrict this process. The kernel copies the filter during the call, and `program` outlives the call.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes two system calls only.
    unsafe { command.pre_exec(install) };
}

/// What Docker's default profile denies without capabilities (moby/profiles, seccomp/default.json of seccomp/v0.2.3), as far as a program that
/// measures may ask for it.
pub(crate) const CONTAINER: &[libc::c_long] = &[
    libc::SYS_bpf,
    libc::SYS_get_mempolicy,
    libc::SYS_io_uring_setup,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_move_pages,
    libc::SYS_perf_event_open,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// What podman's default profile denies without capabilities with `EPERM` (golang-github-containers-common 0.50.1,
/// /usr/share/containers/seccomp.json). Unlike Docker's it allows memory policies, and not the call that tells where pages are.
pub(crate) const PODMAN: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_lookup_dcookie,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_process_madvise,
    libc::SYS_quotactl,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    libc::SYS_vmsplice,
];

/// And what it does not list: such calls fail with `ENOSYS`, as if the kernel did not have them.
pub(crate) const PODMAN_ABSENT: &[libc::c_long] = &[
    libc::SYS_add_key,
    libc::SYS_futex_waitv,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_quotactl_fd,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy_home_node,
];

/// What systemd's `SystemCallFilter=@system-service` denies (`systemd-analyze syscall-filter`, systemd 252): every call that is not in the
/// group and that all instruction sets have.
pub(crate) const SYSTEM_SERVICE: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_lookup_dcookie,
    libc::SYS_memfd_secret,
    libc::SYS_mincore,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_process_mrelease,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_seccomp,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_vhangup,
];

/// A control group with a limit on memory; removed when dropped.
pub(crate) struct Group(PathBuf);

impl Group {
    /// A group that may use `bytes` of memory, in the hierarchy of version 2 or 1. `None` where none can be made.
    pub(crate) fn new(name: &str, bytes: u64) -> Option<Self> {
        for (hierarchy, file) in [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")] {
            let group = Self(Path::new(hierarchy).join(format!("memgauge-{name}-{}", std::process::id())));
            if fs::create_dir(&group.0).is_ok() && group.0.join(file).exists() && fs::write(group.0.join(file), bytes.to_string()).is_ok() {
                // What is swapped out would not count.
                for (file, most) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", bytes)] {
                    let _ = fs::write(group.0.join(file), most.to_string());
                }
                return Some(group);
            }
        }
        None
    }

    /// Starts `command` in this group.
    pub(crate) fn enter(&self, command: &mut Command) {
        let path = std::ffi::CString::new(self.0.join("cgroup.procs").as_os_str().as_encoded_bytes()).unwrap();
        let enter = move || {
            // SAFETY: three system calls with a path and a buffer that live until they return; 0 is the calling process.
            let written = unsafe {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let written = libc::write(file, c"0".as_ptr().cast(), 1);
                libc::close(file);
                written
            };
            if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec it makes three system calls only.
        unsafe { command.pre_exec(enter) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A test that failed leaves processes in it.
        let processes = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines().filter_map(|line| line.parse().ok()) {
            // SAFETY: the call takes no pointer, and the process is one that the test started in this group.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
        for _ in 0..50 {
            if !fs::remove_dir(&self.0).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
