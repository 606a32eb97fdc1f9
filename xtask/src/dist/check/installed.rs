//! Packages in roots of their own: installed, run, and removed without leaving anything.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::booted;
use super::subject::Outcome::{NotChecked, Passed};
use super::subject::{Checked, Outcome, missing, scratch};
use crate::programs::{find_program, run};

/// Folders with package managers' own records, and `run`, which is empty after a boot.
const RECORDS: &[&str] = &["run", "var/lib/dpkg", "var/log", "var/lib/rpm", "var/cache", "var/lib/apt"];

pub(super) fn deb_in_bare_root(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["dpkg", "unshare", "chroot"]).or_else(not_root) {
        return Ok(outcome);
    }
    let root = match bare_root("deb")? {
        Ok(root) => root,
        Err(why) => return Ok(NotChecked(why)),
    };
    fs::create_dir_all(root.join("var/lib/dpkg/info"))?;
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let before = files(&root)?;
    let dpkg = |words: &[&str], files: &[PathBuf]| {
        // Images of containers leave manual pages out.
        run(Command::new("dpkg").arg(format!("--root={}", root.display())).arg("--path-include=*").args(words).args(files))
    };
    let packages = checked.with_ending(&format!("_{}.deb", checked.own()?.deb));
    dpkg(&["--install"], &packages)?;
    use_installed(checked, &root)?;
    // The second time, as an update of the same version.
    dpkg(&["--install"], &packages)?;
    leave_results(&root)?;
    dpkg(&["--remove", "memgauge", "memgauge-mlc"], &[])?;
    ensure!(root.join("var/lib/memgauge/latest.json").exists(), "results are removed before the package is purged");
    dpkg(&["--purge", "memgauge", "memgauge-mlc"], &[])?;
    nothing_left(&before, &root)
}

pub(super) fn rpm_in_bare_root(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["rpm", "unshare", "chroot"]).or_else(not_root) {
        return Ok(outcome);
    }
    let root = match bare_root("rpm")? {
        Ok(root) => root,
        Err(why) => return Ok(NotChecked(why)),
    };
    let before = files(&root)?;
    // The root is not a distribution: nothing in it provides /bin/sh as a package. Debian's rpm refuses to install by default.
    const OPTIONS: &[&str] = &["--dbpath", "/var/lib/rpm", "--nodeps", "--nosignature", "--force-debian"];
    let rpm = |words: &[&str], files: &[PathBuf]| run(Command::new("rpm").arg("--root").arg(&root).args(OPTIONS).args(words).args(files));
    let packages = checked.with_ending(&format!(".{}.rpm", checked.own()?.rpm));
    rpm(&["--install"], &packages)?;
    rpm(&["--verify", "memgauge", "memgauge-mlc"], &[])?;
    use_installed(checked, &root)?;
    rpm(&["--erase", "memgauge", "memgauge-mlc"], &[])?;
    nothing_left(&before, &root)
}

/// Debian's smallest installation, with systemd and man.
pub(super) fn deb_in_debian(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["debootstrap", "unshare", "chroot"]).or_else(not_root) {
        return Ok(outcome);
    }
    let root = scratch("debian")?;
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).unwrap_or("stable");
    let mut bootstrap = Command::new("debootstrap");
    bootstrap.args(["--variant=minbase", "--include=systemd,systemd-sysv,dbus,man-db", name]).arg(&root);
    if let Ok(mirror) = std::env::var("MEMGAUGE_LAB_MIRROR") {
        bootstrap.arg(mirror);
    }
    if let Err(error) = run(&mut bootstrap) {
        return Ok(NotChecked(format!("debootstrap could not install Debian: {error:#}")));
    }
    let before = files(&root)?;
    let packages = checked.with_ending(&format!("_{}.deb", checked.own()?.deb));
    for package in &packages {
        fs::copy(package, root.join("root").join(package.file_name().context("a package without a name")?))?;
    }
    let mut transcript = format!("Debian {name}, minbase with systemd, D-Bus and man-db\n");
    let mut done = |command: &str, said: &str| {
        transcript += &format!("\n# {command}\n{said}");
        println!("    # {command}");
        said.lines().for_each(|line| println!("    {line}"));
    };
    let install = "dpkg --path-include='*' -i /root/memgauge*.deb";
    done(install, &in_root(&root, &["sh", "-c", install])?);
    done("memgauge info", &use_installed(checked, &root)?);
    done("ls -l /usr/bin/memgauge /usr/bin/mlc", &in_root(&root, &["ls", "-l", "/usr/bin/memgauge", "/usr/bin/mlc"])?);
    let page = in_root(&root, &["sh", "-c", "MANPAGER=cat man memgauge-quick"])?;
    ensure!(page.contains("--state"), "man memgauge-quick: {page}");
    in_root(&root, &["systemd-analyze", "verify", "memgauge.service", "memgauge.timer", "memgauge-watch.service"])?;
    in_root(&root, &["systemctl", "enable", "memgauge.timer"])?;
    let link = root.join("etc/systemd/system/timers.target.wants/memgauge.timer");
    ensure!(link.is_symlink(), "the timer was not enabled");
    let outcome = booted::services(&root, |said| done("systemctl start memgauge.timer", said))?;
    leave_results(&root)?;
    done("dpkg --purge memgauge memgauge-mlc", &in_root(&root, &["dpkg", "--purge", "memgauge", "memgauge-mlc"])?);
    for package in &packages {
        fs::remove_file(root.join("root").join(package.file_name().unwrap_or_default()))?;
    }
    nothing_left(&before, &root)?;
    fs::remove_dir_all(&root)?;
    let kept = scratch("fresh-debian")?.join("transcript.txt");
    fs::write(&kept, transcript + "\nNothing was left.\n")?;
    println!("    kept in {}", kept.display());
    Ok(outcome)
}

fn not_root() -> Option<Outcome> {
    let root = run(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    (!root).then(|| NotChecked("only root can change to another root".to_owned()))
}

/// A root with nothing but a shell, or why there is none.
fn bare_root(name: &str) -> Result<Result<PathBuf, String>> {
    let root = scratch(name)?;
    for folder in ["bin", "usr", "etc", "proc", "sys", "tmp", "var/lib", "dev"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let busybox = match find_program("busybox") {
        Some(busybox) => busybox,
        None => {
            let folder = scratch("busybox")?;
            let fetched = run(Command::new("apt-get").args(["-qq", "download", "busybox-static"]).current_dir(&folder))
                .and_then(|_| run(Command::new("sh").args(["-c", "dpkg-deb -x busybox-static_*.deb ."]).current_dir(&folder)));
            if let Err(error) = fetched {
                return Ok(Err(format!("busybox-static is not installed and cannot be had: {error:#}")));
            }
            folder.join("bin/busybox")
        }
    };
    fs::copy(&busybox, root.join("bin/busybox")).with_context(|| format!("cannot copy {}", busybox.display()))?;
    // Scripts write there; a file in its place would be left.
    run(Command::new("cp").args(["-a", "/dev/null"]).arg(root.join("dev")))?;
    for command in ["sh", "rm", "true"] {
        symlink("busybox", root.join("bin").join(command))?;
    }
    Ok(Ok(root))
}

/// Runs a command in a root, with the kernel's file systems for as long as it runs.
fn in_root(root: &Path, words: &[&str]) -> Result<String> {
    const MOUNTED: &str = "mount -t proc proc \"$0/proc\" && mount --rbind /sys \"$0/sys\" && exec chroot \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", MOUNTED]).arg(root).args(words).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
    run(&mut command)
}

/// Uses the installed programs and returns the output of `memgauge info`.
fn use_installed(checked: &Checked<'_>, root: &Path) -> Result<String> {
    let version = in_root(root, &["/usr/bin/memgauge", "--version"])?;
    ensure!(version.starts_with(&format!("memgauge {} (", checked.release.version)), "{version}");
    let info = in_root(root, &["/usr/bin/memgauge", "info"])?;
    ensure!(info.contains("core"), "{info}");
    let plan = in_root(root, &["/usr/bin/memgauge", "quick", "--plan"])?;
    ensure!(plan.starts_with("Plan"), "{plan}");
    ensure!(in_root(root, &["/usr/bin/mlc", "--help"])?.contains("--loaded_latency"), "mlc --help");
    for page in ["memgauge", "memgauge-quick", "mlc"] {
        let path = root.join(format!("usr/share/man/man1/{page}.1.gz"));
        run(Command::new("gzip").arg("--test").arg(&path)).with_context(|| format!("manual page {page}"))?;
    }
    Ok(info)
}

/// Writes files as a scheduled check leaves them.
fn leave_results(root: &Path) -> Result<()> {
    let folder = root.join("var/lib/memgauge");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("latest.json"), "{}")?;
    Ok(())
}

/// All files and links in a root except package managers' records. Empty folders do no harm, and package managers remove them as they like.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let path = entry.path().strip_prefix(root)?.to_owned();
            if RECORDS.iter().any(|record| path.starts_with(record)) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

fn nothing_left(before: &BTreeSet<PathBuf>, root: &Path) -> Result<Outcome> {
    let after = files(root)?;
    let listed = |paths: std::collections::btree_set::Difference<'_, PathBuf>| {
        paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let (left, gone) = (listed(after.difference(before)), listed(before.difference(&after)));
    ensure!(left.is_empty() && gone.is_empty(), "after removal, left: {left}; gone: {gone}");
    Ok(Passed)
}
