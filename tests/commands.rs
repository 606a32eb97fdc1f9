//! Golden command lines: help and the errors that do not depend on the machine. Update with `TRYCMD=overwrite cargo test --test commands`.

use std::path::Path;

/// A folder with the `memgauge` to run instead of the one that was built with this test: `cargo xtask windows` names one that runs the
/// program for Windows.
const FOLDER: &str = "MEMGAUGE_GOLDENS";

#[test]
fn commands() {
    // clap wraps help to the terminal; goldens are for one width.
    run("100", "tests/cmd/*.trycmd");
    run("80", "tests/cmd/brief/*.trycmd");
}

fn run(columns: &str, files: &str) {
    let cases = trycmd::TestCases::new();
    if let Some(folder) = std::env::var_os(FOLDER) {
        let program = Path::new(&folder).join("memgauge");
        assert!(program.is_file(), "{FOLDER}: there is no {}", program.display());
        cases.register_bin("memgauge", program);
    }
    cases.env("COLUMNS", columns).case(files);
}
