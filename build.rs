//! Tells the program which commit it was built from, as far as the sources know it.

use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg_attr(test, allow(dead_code, reason = "the tests call what it calls"))]
fn main() {
    // Without a line of this kind, Cargo would look at all files of the package.
    println!("cargo::rerun-if-changed=build.rs");
    let folder = Path::new(".");
    for path in watched(folder) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let commit = commit(folder);
    println!("cargo::rustc-env=MEMGAUGE_BUILD={}", commit.as_deref().unwrap_or("commit unknown"));
    if let Some(commit) = commit {
        println!("cargo::rustc-env=MEMGAUGE_COMMIT={commit}");
    }
}

/// Files that exist and change with the commit. One that does not exist would make Cargo build the program again each time.
pub(crate) fn watched(folder: &Path) -> Vec<PathBuf> {
    // In a worktree, `.git` is a file, and what it names is elsewhere.
    let path = |name: &str| git(folder, &["rev-parse", "--git-path", name]).map(|path| folder.join(path)).filter(|path| path.exists());
    let branch = git(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    // A branch that is packed has a file of its own again with its next commit.
    let branch = branch.and_then(|branch| path(&branch)).or_else(|| path("refs/heads"));
    path("HEAD").into_iter().chain(branch).collect()
}

/// The first twelve digits of the commit: of a checkout, or that from which `cargo package` made these sources.
pub(crate) fn commit(folder: &Path) -> Option<String> {
    const DIGITS: usize = 12;
    git(folder, &["rev-parse", "--short=12", "HEAD"]).or_else(|| {
        let packaged = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
        let commit = packaged.split("\"sha1\"").nth(1)?.split('"').nth(1)?.get(..DIGITS)?;
        commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| commit.to_owned())
    })
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    // A package of the sources may lie in another project's checkout.
    if !folder.join(".git").exists() {
        return None;
    }
    let output = Command::new("git").args(arguments).current_dir(folder).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
