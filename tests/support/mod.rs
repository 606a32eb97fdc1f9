//! Running the program as a black box.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report of its test")]
#![allow(dead_code, reason = "no test program needs all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use memgauge_core::result::Report;

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgauge"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Measuring tests run one after the other, because they would disturb each other.
pub(crate) static MEASURING: Mutex<()> = Mutex::new(());

pub(crate) fn run(line: &str) -> Output {
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    program().args(line.split_whitespace()).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a measuring command and reads its JSON.
pub(crate) fn report(line: &str) -> Report {
    let output = run(&format!("{line} --format json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Standard error of a run that ends with this status and prints nothing else.
pub(crate) fn refused(line: &str, code: i32) -> String {
    let output = run(line);
    assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{line} prints nothing on standard output");
    text(&output.stderr).to_owned()
}

/// A directory for one test.
pub(crate) fn temporary(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
