//! What was rendered, compared with files in `tests/golden`. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes them anew.

use std::path::{Path, PathBuf};

use snapbox::Data;

/// Pages that are compared to the last blank. Of all others the words are, so that another space between columns changes no file but these.
/// Programs read the drop-in's text.
const LAID_OUT: [&str; 4] = ["two-nodes.txt", "cxl-hmat-120.txt", "short-two-nodes-80.txt", "scan-mlc.txt"];

/// Compares a page or a drawing with the golden of this name.
pub(crate) fn check(name: &str, text: &str) {
    let exact = LAID_OUT.contains(&name) || name.starts_with("mlc-") || !name.ends_with(".txt");
    compare(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), if exact { text.to_owned() } else { words(text) });
}

/// Compares a text with a file, byte for byte.
pub(crate) fn compare(path: &Path, text: String) {
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(Data::text(text).raw(), Data::read_from(path, None).raw());
}

/// The words of each line, with one blank between them, and each rule as one stroke.
fn words(page: &str) -> String {
    let word = |word: &'static str, found: &str| if found.chars().all(|c| c == '─') { word.to_owned() } else { found.to_owned() };
    page.lines().map(|line| line.split_whitespace().map(|found| word("─", found)).collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn space_does_not_count_and_words_do() {
    assert_eq!(words("  a    b\n ───  ─ x─\n\nc\n"), "a b\n─ ─ x─\n\nc\n");
}
