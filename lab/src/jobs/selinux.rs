//! memgauge under SELinux, in the domain that is recommended, and in that domain with less.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use memgauge_model::result::PageKind;
use memgauge_model::wording::reasons;

use super::confined::{nothing_is_denied, refuses};
use super::limits::{CELLS, COMMANDS, has_ended_well};
use crate::guest::{self, pool};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{PATIENCE, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "selinux",
    about: "SELinux: every command in a domain with only what measuring needs, and without counters, threads, /sys, folders",
    optional: false,
    machine: Machine {
        qemu: super::confined::QEMU,
        kernel: &["security=selinux", "selinux=1", "enforcing=1"],
        modules: &["msr"],
        tools: &["secilc"],
        ..PLAIN
    },
    tests: tests![
        the_domain_is_in_force,
        every_command_with_what_measuring_needs,
        pages_of_a_pool,
        folders_that_may_not_be_written,
        counters_that_may_not_be_opened,
        addresses_and_registers,
        threads_that_may_not_be_bound_or_started,
        without_sysfs_or_proc,
    ],
};

/// The page with the module that is recommended.
const PAGE: &str = include_str!("../../../docs/security.md");
/// A small policy in place of a distribution's.
const BASE: &str = include_str!("selinux.cil");
/// Where the tests let it write.
const FOLDER: &str = "/var/lib/memgauge";
const FILES: &str = "/sys/fs/selinux";
/// The lab's shared folder, its file of threads, and its folder for results, which is a file system of its own.
const LAB: &str = "(allow memgauge_t nfs_t (dir (getattr open read search write add_name remove_name)))
(allow memgauge_t nfs_t (file (getattr setattr open read write append create unlink rename map)))
(allow memgauge_t tmpfs_t (file (getattr open read)))
(allow memgauge_t memgauge_var_lib_t (filesystem (getattr)))
";

/// Commands that ask the kernel for nothing that the default run does not ask for: the job `confined` has them.
const LIKE_THE_DEFAULT: [&str; 4] = ["latency", "bandwidth", "sweep", "interleave"];

/// The module in the documentation.
fn documented() -> Result<String> {
    let module = PAGE.split_once("```cil\n").and_then(|(_, rest)| rest.split_once("```")).context("no module in the documentation")?.0;
    Ok(module.to_owned())
}

/// The documented module without the rules that contain all of these words. There must be at least one such rule.
fn documented_without(words: &[&str]) -> Result<String> {
    let module = documented()?;
    let kept: Vec<&str> = module.lines().filter(|line| !words.iter().all(|word| line.contains(word))).collect();
    ensure!(kept.len() < module.lines().count(), "no rule has {words:?}");
    Ok(kept.join("\n"))
}

/// Runs of memgauge that begin from now on may do this and nothing else.
fn confine(module: &str) -> Result<()> {
    fs::write("/tmp/base.cil", BASE)?;
    fs::write("/tmp/memgauge.cil", module)?;
    fs::write("/tmp/lab.cil", LAB)?;
    let files = ["/tmp/base.cil", "/tmp/memgauge.cil", "/tmp/lab.cil"];
    guest::call(&[&["/tools/secilc", "-o", "/tmp/policy", "-f", "/tmp/contexts"], &files[..]].concat())?;
    // One write: the kernel takes a policy as a whole.
    fs::write(format!("{FILES}/load"), fs::read("/tmp/policy")?).context("the kernel does not load the policy")
}

/// Gives a file the label that a distribution's own would have.
fn label(path: &str, kind: &str) -> Result<()> {
    let (path, name) = (CString::new(path)?, CString::new("security.selinux")?);
    let context = CString::new(format!("system_u:object_r:{kind}:s0"))?;
    let bytes = context.as_bytes_with_nul();
    // SAFETY: two strings that end in zero, and a value of the size that is given.
    let done = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), bytes.as_ptr().cast(), bytes.len(), 0) };
    ensure!(done == 0, "label of {path:?}: {}", std::io::Error::last_os_error());
    Ok(())
}

fn the_domain_is_in_force() -> Result<()> {
    fs::write("/tmp/cells", CELLS)?;
    guest::mount("selinuxfs", FILES, "selinuxfs", "")?;
    confine(&documented()?)?;
    label("/bin/memgauge", "memgauge_exec_t")?;
    label("/bin/busybox", "bin_t")?;
    label("/dev/null", "null_device_t")?;
    label("/dev/zero", "zero_device_t")?;
    guest::mount("tmpfs", FOLDER, "tmpfs", "context=system_u:object_r:memgauge_var_lib_t:s0")?;
    label("/var", "var_t")?;
    label("/var/lib", "var_lib_t")?;
    guest::mount("tmpfs", "/tmp/denied", "tmpfs", "context=system_u:object_r:tmp_t:s0")?;
    ensure!(guest::read(format!("{FILES}/enforce"))? == "1", "it is permissive");
    let running = memgauge("bandwidth --size 1M --time 300ms").start()?;
    running.until("it measures", |_| !running.workers().is_empty())?;
    let domain = guest::read(format!("/proc/{}/attr/current", running.id()));
    let ran = running.within(PATIENCE)?;
    ensure!(domain.as_ref().is_ok_and(|domain| domain.contains(":memgauge_t:")), "it is not confined: {domain:?}");
    ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
    measured(ran.report()?).map(drop)
}

/// Time is short here, and is the only reason for missing values.
fn every_command_with_what_measuring_needs() -> Result<()> {
    let lines: Vec<&str> =
        COMMANDS.iter().copied().filter(|line| !LIKE_THE_DEFAULT.iter().any(|command| line.starts_with(command))).collect();
    nothing_is_denied(&lines, 5, FOLDER)?;
    // A start signal is a file of its own kind.
    let running = memgauge("bandwidth --size 1M --time 50ms --start-signal lab").start()?;
    running.until("it waits", |_| {
        let word = fs::OpenOptions::new().write(true).open("/dev/shm/lab");
        word.and_then(|word| word.write_all_at(&1u32.to_ne_bytes(), 0)).is_ok()
    })?;
    let ran = running.within(PATIENCE)?;
    ensure!(ran.status == Some(0), "start signal: exit status {:?}: {}", ran.status, ran.stderr);
    Ok(())
}

/// For huge pages, the kernel maps files that the program does not know of, and the policy must allow that.
fn pages_of_a_pool() -> Result<()> {
    let line = "bandwidth --cpu 0 --node 0 --mix all-reads --size 2M --time 50ms --pages 2m";
    guest::write(pool(0, 2048).join("nr_hugepages"), "2")?;
    let report = memgauge(line).measure()?;
    ensure!(report.results.iter().all(|m| m.evidence.pages.obtained == Some(PageKind::Pool)), "{:?}", report.results);
    confine(&documented_without(&["hugetlbfs_t"])?)?;
    memgauge(line).run()?.refused(4, &["Permission denied", "SELinux", "memgauge_t"])?;
    confine(&documented()?)?;
    guest::write(pool(0, 2048).join("nr_hugepages"), "0")
}

/// Results, states of checks and files as memory outside of the folders that may be written.
fn folders_that_may_not_be_written() -> Result<()> {
    let words = ["/tmp/denied", "Permission denied", "SELinux confines this program to system_u:system_r:memgauge_t:s0"];
    refuses(memgauge("latency --cpu 0 --size 1M --time 50ms").writing_to("/tmp/denied/result.json".as_ref()), &words)?;
    refuses(memgauge("bandwidth --size 1M --time 50ms --memory-dir /tmp/denied"), &words)?;
    refuses(memgauge("quick --within 2s --state /tmp/denied"), &words)?;
    ensure!(fs::read_dir("/tmp/denied")?.next().is_none(), "something was written to /tmp/denied");
    memgauge("count -- /bin/busybox true").start()?.within(PATIENCE)?.refused(126, &["/bin/busybox", "Permission denied", "SELinux"])
}

/// Everybody may count by the kernel's own rules, so its sysctl is not to blame.
fn counters_that_may_not_be_opened() -> Result<()> {
    // Debian's kernel starts with 3, which requires a capability that the domain does not have.
    guest::write("/proc/sys/kernel/perf_event_paranoid", "1")?;
    let run = "(allow memgauge_t bin_t (file (getattr open read map execute execute_no_trans)))\n";
    let line = "count -e context-switches -- /bin/busybox true";
    confine(&(documented()? + run + "(allow memgauge_t self (perf_event (kernel)))\n"))?;
    let counted = |report: &memgauge_model::result::Report| report.program.as_ref().and_then(|p| p.events.first()?.estimate.value);
    ensure!(counted(&memgauge(line).measure()?).is_some(), "nothing is counted");
    // The documented module lets it count its own threads' user code; the kernel's part is denied by it, and all by the other.
    for module in [documented()?, documented_without(&["perf_event"])?] {
        confine(&(module + run))?;
        let ran = memgauge(line).run()?;
        ensure!(ran.status == Some(0) && counted(ran.report()?).is_none(), "exit status {:?}: {}", ran.status, ran.stderr);
        let event = ran.report()?.program.as_ref().and_then(|p| p.events.first()).context("no event")?;
        let why = event.estimate.not_measured.as_ref().map(reasons::not_measured).unwrap_or_default();
        ensure!(why.contains("memgauge_t") && !why.contains("set kernel.perf_event_paranoid"), "{why}");
    }
    confine(&documented()?)
}

/// Root in the domain has no capability: it is not shown where pages are, and may not open the device of registers.
fn addresses_and_registers() -> Result<()> {
    let report = memgauge("scan --size 16M --region 8M --passes 2 --integrity --patterns random").measure()?;
    for m in measured(&report)? {
        let physical = m.evidence.physical.as_ref().context("no evidence of addresses")?;
        let why = physical.reason.as_deref().unwrap_or_default();
        ensure!(physical.first.is_none() && why.contains("CAP_SYS_ADMIN") && why.contains("memgauge_t"), "{physical:?}");
    }
    ensure!(report.notes.iter().any(|note| note.code == memgauge_model::note::NoteCode::ScanNoAddresses), "{:?}", report.notes);
    memgauge("prefetch status").run()?.refused(4, &["/dev/cpu", "SELinux"])
}

/// Binding takes `setsched`, a thread takes `fork`. Without `setsched` the kernel does not tell where pages are, either.
fn threads_that_may_not_be_bound_or_started() -> Result<()> {
    let line = "latency --cpu 0 --node 0 --size 1M --time 50ms";
    confine(&documented()?.replace(" setsched", ""))?;
    memgauge(line).run()?.refused(4, &["cannot run on CPU 0", "binding a thread to it is denied", "memgauge_t"])?;
    let report = memgauge("stream 1M --passes 2").measure()?;
    measured(&report)?;
    confine(&documented()?.replace("(fork ", "("))?;
    memgauge(line).run()?.refused(4, &["cannot start a thread", "or it is denied", "memgauge_t"])?;
    confine(&documented()?)
}

/// Without /sys nothing is known of the machine. Without /proc it measures, and does not know everything that it would say of the conditions.
fn without_sysfs_or_proc() -> Result<()> {
    confine(&documented_without(&["sysfs_t"])?)?;
    for line in ["info", "quick --within 2s", "chase 1M"] {
        memgauge(line).run()?.refused(4, &["/sys/devices/system/cpu cannot be read: Permission denied", "memgauge_t"]).context(line)?;
    }
    let module = documented()?;
    let proc = ["memgauge_t proc_t", "memgauge_t sysctl_type", "memgauge_t domain", "memgauge_t self (file"];
    let kept: Vec<&str> = module.lines().filter(|line| !proc.iter().any(|word| line.contains(word))).collect();
    confine(&kept.join("\n"))?;
    for line in ["bandwidth --size 1M --time 50ms", "chase 1M --passes 2"] {
        let ran = memgauge(line).start()?.within(PATIENCE)?;
        has_ended_well(line, &ran)?;
        ensure!(ran.status == Some(0) || ran.stderr.contains("/proc"), "{line}: exit status {:?}: {}", ran.status, ran.stderr);
    }
    confine(&module)
}
