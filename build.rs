//! Tells the program which commit it was built from, when the sources are a git checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=.git/HEAD");
    println!("cargo::rerun-if-changed=.git/refs/heads");
    // A package of the sources may lie in another project's checkout.
    if !Path::new(".git").exists() {
        return;
    }
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok().filter(|o| o.status.success());
    if let Some(commit) = commit {
        println!("cargo::rustc-env=MEMGAUGE_COMMIT={}", String::from_utf8_lossy(&commit.stdout).trim());
    }
}
