//! Changes that tests make to the guest they run in: mounts, modules, control groups, CPUs, huge-page pools.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

/// The test that runs, for the names of the files that it leaves.
static TEST: Mutex<String> = Mutex::new(String::new());

/// Begins a test.
///
/// # Errors
/// Never, in a guest where one test runs at a time.
pub fn begin(test: &str) -> Result<()> {
    test.clone_into(&mut *TEST.lock().map_err(|_| anyhow!("a test failed in the middle of another"))?);
    Ok(())
}

/// The name of the test that runs.
pub(crate) fn current() -> String {
    TEST.lock().map(|test| test.clone()).unwrap_or_default()
}

fn c(text: &str) -> Result<CString> {
    CString::new(text).with_context(|| format!("'{text}' has a zero byte"))
}

/// Mounts `source` at `target`, which is created.
///
/// # Errors
/// The kernel's error.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> Result<()> {
    fs::create_dir_all(target).with_context(|| format!("cannot create {target}"))?;
    mount_with(source, target, kind, 0, options)
}

/// Makes a file appear in the place of another.
///
/// # Errors
/// The kernel's error.
pub fn bind(file: &str, target: &str) -> Result<()> {
    mount_with(file, target, "", libc::MS_BIND, "")
}

fn mount_with(source: &str, target: &str, kind: &str, flags: libc::c_ulong, options: &str) -> Result<()> {
    let (from, to, fs, data) = (c(source)?, c(target)?, c(kind)?, c(options)?);
    // SAFETY: four strings that end in zero and live until the call has ended.
    let done = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), fs.as_ptr(), flags, data.as_ptr().cast()) };
    if done == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error()).with_context(|| format!("mount -t '{kind}' -o '{options}' {source} {target}"))
}

/// Unmounts.
///
/// # Errors
/// The kernel's error.
pub fn unmount(target: &str) -> Result<()> {
    let to = c(target)?;
    // SAFETY: a string that ends in zero and lives until the call has ended.
    ensure!(unsafe { libc::umount2(to.as_ptr(), 0) } == 0, "umount {target}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Runs a program.
///
/// # Errors
/// When it fails.
pub fn call(line: &[&str]) -> Result<()> {
    let output = Command::new(line[0]).args(&line[1..]).output().with_context(|| line[0].to_owned())?;
    ensure!(output.status.success(), "{line:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Makes a file system of the kind ext4 on a device.
///
/// # Errors
/// When it cannot be made.
pub fn format(device: &str) -> Result<()> {
    call(&["/tools/mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-E", "nodiscard", device])
}

/// Loads a module of the kernel.
///
/// # Errors
/// The kernel's error; a module that is already loaded is not one.
pub fn load_module(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("module {}", path.display()))?;
    let no_options = c("")?;
    // SAFETY: an open file, a string that ends in zero, no flags.
    let done = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), no_options.as_ptr(), 0) };
    let error = std::io::Error::last_os_error();
    ensure!(done == 0 || error.raw_os_error() == Some(libc::EEXIST), "module {}: {error}", path.display());
    Ok(())
}

/// Ends the machine.
pub fn power_off() -> ! {
    // SAFETY: writes what is cached and ends the machine; nothing of this process is needed afterwards.
    unsafe {
        libc::sync();
        // QEMU runs with an option to exit instead of booting again; this also works where a machine has no power switch.
        libc::reboot(libc::RB_AUTOBOOT);
    }
    std::process::exit(1)
}

/// Reads a file of sysfs or procfs, without the line's end.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?.trim().to_owned())
}

/// Writes to a file of sysfs, procfs or cgroupfs.
///
/// # Errors
/// When the kernel refuses.
pub fn write(path: impl AsRef<Path>, text: &str) -> Result<()> {
    let path = path.as_ref();
    fs::write(path, text).with_context(|| format!("cannot write '{text}' to {}", path.display()))
}

/// Waits for a file that a driver makes when it is ready.
///
/// # Errors
/// When it is not there within ten seconds.
pub fn appears(path: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !path.exists() {
        ensure!(Instant::now() < deadline, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Takes a CPU offline or back online.
///
/// # Errors
/// When the kernel refuses.
pub fn set_online(cpu: u32, online: bool) -> Result<()> {
    write(format!("/sys/devices/system/cpu/cpu{cpu}/online"), if online { "1" } else { "0" })
}

/// Moves a process's pages from one node to another.
///
/// # Errors
/// The kernel's error; pages that could not be moved are not one.
pub fn migrate_pages(process: u32, from: u32, to: u32) -> Result<()> {
    let (from, to) = (1u64 << from, 1u64 << to);
    // SAFETY: two masks of 64 bits that live until the call has ended.
    let left = unsafe { libc::syscall(libc::SYS_migrate_pages, process as libc::pid_t, 64, &raw const from, &raw const to) };
    ensure!(left >= 0, "migrate_pages: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Where a node's pool of huge pages of this many KiB is.
pub fn pool(node: u32, page_kib: u64) -> PathBuf {
    PathBuf::from(format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{page_kib}kB"))
}

/// Pages in and free in a node's pool.
///
/// # Errors
/// When the node has no such pool.
pub fn pool_state(node: u32, page_kib: u64) -> Result<(u64, u64)> {
    let number = |file| Ok::<_, anyhow::Error>(read(pool(node, page_kib).join(file))?.parse()?);
    Ok((number("nr_hugepages")?, number("free_hugepages")?))
}

/// A control group with these limits (file and value), made anew.
///
/// # Errors
/// When the kernel refuses.
pub fn control_group(name: &str, limits: &[(&str, &str)]) -> Result<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    write(root.join("cgroup.subtree_control"), "+cpuset +memory +cpu")?;
    let group = root.join(name);
    fs::create_dir_all(&group).with_context(|| format!("cannot create {}", group.display()))?;
    for (file, value) in limits {
        write(group.join(file), value)?;
    }
    Ok(group)
}
