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
    let apart = ["clock", "files"].map(|name| (name.to_owned(), exported(&read(&format!("crates/os/src/{name}.rs")))));
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::from(apart);
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

/// The crates of this workspace, without `memgauge-`, that a manifest has for all systems or for some, but not for tests and build scripts only.
fn used_by(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().unwrap();
    let table = |of: &toml::Table, name: &str| of.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let systems = table(&manifest, "target");
    let tables = systems.values().filter_map(toml::Value::as_table).chain([&manifest]);
    let names = tables.flat_map(|of| table(of, "dependencies")).map(|(name, _)| name).filter(|name| name.starts_with("memgauge"));
    names.map(|name| name.strip_prefix("memgauge-").unwrap_or(&name).to_owned()).collect()
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
        let used = used_by(&read(&format!("{folder}Cargo.toml")));
        let may_use = &row[2];
        // The program joins all others and is the only row that says so by exception.
        let listed = if let Some(but) = may_use.strip_prefix("all but ") {
            let but = quoted(but);
            ["analysis", "engine", "fleet", "kernels", "linux", "model", "os", "planner", "render", "windows"]
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
fn the_glossary_has_each_word_once() {
    let words = table("Words");
    assert!(!words.is_empty());
    let different: BTreeSet<&String> = words.iter().map(|row| &row[0]).collect();
    assert_eq!(different.len(), words.len());
}

/// Every path of this repository that a page names, as from its top or as in docs/architecture.md: `linux/src/faults.rs`.
#[test]
fn pages_name_files_that_exist() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "METHOD.md".to_owned()];
    for folder in ["docs", "docs/method"] {
        let names = fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    let has = |folder: &Path| {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    let (above, crates) = (has(top), has(&top.join("crates")));
    let (mut named, mut missing) = (0, Vec::new());
    for page in pages {
        for path in quoted(&read(&page)) {
            let plain = path.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c));
            let Some((first, rest)) = path.split_once('/').filter(|(_, rest)| plain && !rest.is_empty()) else { continue };
            let found = match () {
                () if above.contains(first) && first != "target" => vec![top.join(&path)],
                () if crates.contains(first) => vec![top.join("crates").join(&path), top.join("crates").join(first).join("src").join(rest)],
                () => continue,
            };
            named += 1;
            let exists = found.iter().any(|path| path.exists() || Path::new(&format!("{}.rs", path.display())).exists());
            (!exists).then(|| missing.push(format!("{page}: {path}")));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(named > 20, "{named}");
}
