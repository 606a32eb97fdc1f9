//! docs/architecture.md is true where it lists what the code has: crates and what they may use, the edge towards the operating system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The rows of the first table below a heading, cell by cell.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = read("docs/architecture.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.skip(2).map(cells).collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Names that `pub use` lines export.
fn exported(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rest) in code.match_indices("pub use ").map(|(at, _)| code[at..].split_at("pub use ".len())) {
        let path = rest.split(';').next().unwrap_or_default();
        let list =
            path.split_once('{').map_or_else(|| path.rsplit("::").next().unwrap_or_default(), |(_, list)| list.trim_end_matches('}'));
        names.extend(list.split(',').map(|name| name.trim_matches(['}', ' ', '\n']).to_owned()).filter(|name| !name.is_empty()));
    }
    names
}

#[test]
fn the_edge_is_listed_whole() {
    let code = read("crates/os/src/lib.rs");
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::from([("clock".to_owned(), exported(&read("crates/os/src/clock.rs")))]);
    for (_, rest) in code.match_indices("\npub mod ").map(|(at, _)| code[at..].split_at("\npub mod ".len())) {
        if let Some((name, rest)) = rest.split_once(" {\n").filter(|(name, _)| !name.contains('\n')) {
            modules.insert(name.to_owned(), exported(rest.split("\n}\n").next().unwrap_or_default()));
        }
    }
    let listed: BTreeMap<String, BTreeSet<String>> = table("The edge towards the operating system")
        .into_iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), quoted(&row[1])))
        .collect();
    assert!(modules.len() > 15, "{modules:?}");
    assert_eq!(listed, modules);
}

#[test]
fn crates_use_what_is_listed() {
    for row in table("Crates") {
        let name = row[0].split('`').nth(1).unwrap().to_owned();
        let folder = match name.as_str() {
            "memgauge" => String::new(),
            "simulation" | "testing" | "lab" | "xtask" => format!("{name}/"),
            _ => format!("crates/{name}/"),
        };
        let manifest = read(&format!("{folder}Cargo.toml"));
        let mut used = BTreeSet::new();
        let mut counts = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                counts =
                    line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("build-") && !line.contains("workspace");
            } else if counts && line.starts_with("memgauge") {
                let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
                used.insert(dependency.strip_prefix("memgauge-").unwrap_or(dependency).to_owned());
            }
        }
        let may_use = &row[2];
        // The program joins all others and is the only row that says so by exception.
        let listed = if let Some(but) = may_use.strip_prefix("all but ") {
            let but = quoted(but);
            ["core", "kernels", "linux", "windows", "os", "engine", "render", "fleet"]
                .map(str::to_owned)
                .into_iter()
                .filter(|c| !but.contains(c))
                .collect()
        } else {
            quoted(may_use)
        };
        assert_eq!(used, listed, "{name}");
    }
}

#[test]
fn the_glossary_has_forty_words_at_most() {
    let words = table("Words");
    assert!((20..=40).contains(&words.len()), "{}", words.len());
    let different: BTreeSet<&String> = words.iter().map(|row| &row[0]).collect();
    assert_eq!(different.len(), words.len());
}
