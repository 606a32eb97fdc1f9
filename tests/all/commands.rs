//! Golden command lines: some pages of help, and the errors that do not depend on the machine. All help is in the man pages, which
//! `cargo xtask docs --check` compares. Update with `TRYCMD=overwrite cargo test --test all commands`.
//! `cargo xtask windows` compares the program for Windows with them, too.

#[test]
fn commands() {
    // clap wraps help to the terminal; goldens are for one width.
    run("100", "tests/cmd/*.trycmd");
    run("80", "tests/cmd/brief/*.trycmd");
}

fn run(columns: &str, files: &str) {
    trycmd::TestCases::new().env("COLUMNS", columns).case(files);
}
