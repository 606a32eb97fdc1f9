//! The program on a simulated machine of two packages and three nodes: `examples/simulated.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use memgauge_core::result::Report;

use super::text;

/// Puts `memgauge` and `mlc` for the simulated machine into a folder. `cargo test` builds the example unless its options name other targets.
pub(crate) fn programs_in(folder: &Path) {
    let example = Path::new(env!("CARGO_BIN_EXE_memgauge")).parent().unwrap().join("examples/simulated");
    let advice = "build it with: cargo build --workspace --examples";
    let built = example.metadata().and_then(|found| found.modified()).unwrap_or_else(|e| panic!("{}: {e}; {advice}", example.display()));
    let made_from = fs::read_to_string(example.with_extension("d")).unwrap();
    for source in made_from.split_whitespace().skip(1).filter(|path| !path.contains("/.git/")) {
        let changed = fs::metadata(source).and_then(|found| found.modified());
        assert!(changed.map_or(true, |changed| changed <= built), "{source} was changed after {} was built; {advice}", example.display());
    }
    fs::create_dir_all(folder).unwrap();
    for program in ["memgauge", "mlc"] {
        symlink(&example, folder.join(program)).unwrap();
    }
}

/// What a command line does on the simulated machine.
pub(crate) fn run(line: &str) -> Output {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap();
    let thread = std::thread::current();
    let folder = super::temporary(&format!("simulated-{}", thread.name().unwrap_or_default().replace(':', "-")));
    programs_in(&folder);
    let output = Command::new(folder.join(program)).args(words).stdin(Stdio::null()).env_remove("NO_COLOR").output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    output
}

/// The result of a command that measures.
pub(crate) fn report(line: &str) -> Report {
    let output = run(&format!("memgauge {line} --format json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
