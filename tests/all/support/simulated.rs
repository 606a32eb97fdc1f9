//! The program on a simulated machine of two packages and three nodes: `examples/simulated.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use memgauge_model::result::Report;

use super::text;

/// The example. `cargo test` builds it unless its options name other targets.
pub(crate) fn path() -> PathBuf {
    let example = Path::new(env!("CARGO_BIN_EXE_memgauge")).parent().unwrap().join("examples/simulated");
    let advice = "build it with: cargo build --workspace --examples";
    let built = example.metadata().and_then(|found| found.modified()).unwrap_or_else(|e| panic!("{}: {e}; {advice}", example.display()));
    let made_from = fs::read_to_string(example.with_extension("d")).unwrap();
    for source in made_from.split_whitespace().skip(1).filter(|path| !path.contains("/.git/")) {
        let changed = fs::metadata(source).and_then(|found| found.modified());
        assert!(changed.map_or(true, |changed| changed <= built), "{source} was changed after {} was built; {advice}", example.display());
    }
    example
}

/// Puts `memgauge` and `mlc` for the simulated machine into a folder.
pub(crate) fn programs_in(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for program in ["memgauge", "mlc"] {
        symlink(path(), folder.join(program)).unwrap();
    }
}

/// `memgauge` or `mlc` on the simulated machine.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(path());
    command.arg0(name).stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("SIMULATED_MACHINE").env("MEMGAUGE_STATE", "");
    command
}

/// What a command line does on the simulated machine.
pub(crate) fn run(line: &str) -> Output {
    let mut words = line.split_whitespace();
    program(words.next().unwrap()).args(words).output().unwrap()
}

/// The result of a command that measures.
pub(crate) fn report(line: &str) -> Report {
    let output = run(&format!("memgauge {line} --format json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
