//! Golden command lines: help and the errors that do not depend on the machine. Update with `TRYCMD=overwrite cargo test --test commands`.

#[test]
fn commands() {
    // clap wraps help to the terminal; goldens are for one width.
    trycmd::TestCases::new().env("COLUMNS", "100").case("tests/cmd/*.trycmd");
    trycmd::TestCases::new().env("COLUMNS", "80").case("tests/cmd/brief/*.trycmd");
}
