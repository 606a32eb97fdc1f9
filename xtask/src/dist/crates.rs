//! The crates that a program is linked from, and their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::target::is_windows;
use crate::folders::project_folder;
use crate::programs::{cargo, run};

/// A crate of the programs.
#[derive(Debug)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    /// An SPDX expression.
    pub(super) licence: String,
    /// SHA-256 of its package; `None` for memgauge's own.
    pub(super) checksum: Option<String>,
    /// Those that it needs, by name and version.
    pub(super) needs: BTreeSet<(String, String)>,
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The crates of both programs, sorted by name. Those that only build them (macros, build scripts, tests) are not among them.
///
/// # Errors
/// When cargo cannot say.
pub(super) fn linked(triple: &str) -> Result<Vec<Crate>> {
    let said = |arguments: &[&str]| run(cargo().args(arguments));
    // `cargo tree` knows the features of this build; `cargo metadata` those of the whole workspace, with its chores.
    let tree = ["tree", "--locked", "--package", "memgauge", "--edges", "normal,no-proc-macro", "--target", triple, "--prefix", "none"];
    let listed: BTreeSet<(String, String)> = said(&tree)?.lines().filter_map(name_and_version).collect();
    let metadata = ["metadata", "--locked", "--format-version", "1", "--filter-platform", triple];
    let metadata: Metadata = serde_json::from_str(&said(&metadata)?).context("what cargo metadata says")?;
    let lock: Lock = toml::from_str(&fs::read_to_string(project_folder().join("Cargo.lock"))?).context("Cargo.lock")?;
    let checksums: BTreeMap<_, _> = lock.package.into_iter().filter_map(|p| Some(((p.name, p.version), p.checksum?))).collect();
    let by_id: BTreeMap<&str, (String, String)> =
        metadata.packages.iter().map(|p| (p.id.as_str(), (p.name.clone(), p.version.clone()))).collect();
    let needs: BTreeMap<&str, BTreeSet<(String, String)>> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.deps.iter().filter_map(|dep| by_id.get(dep.pkg.as_str()).cloned()).collect()))
        .collect();
    let mut crates = Vec::new();
    for package in &metadata.packages {
        let key = (package.name.clone(), package.version.clone());
        if !listed.contains(&key) {
            continue;
        }
        let licence = package.license.as_deref().with_context(|| format!("the crate {} states no licence", package.name))?;
        crates.push(Crate {
            checksum: checksums.get(&key).cloned(),
            name: package.name.clone(),
            version: package.version.clone(),
            description: package.description.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
            licence: licence.replace('/', " OR "),
            needs: needs.get(package.id.as_str()).map(|needs| needs.intersection(&listed).cloned().collect()).unwrap_or_default(),
            folder: package.manifest_path.parent().unwrap_or(Path::new("")).to_owned(),
        });
    }
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    ensure!(crates.len() == listed.len(), "cargo tree lists {} crates, of which cargo metadata knows {}", listed.len(), crates.len());
    Ok(crates)
}

/// `serde v1.0.229 (*)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once(' ')?;
    Some((name.to_owned(), rest.strip_prefix('v')?.split(' ').next()?.to_owned()))
}

/// The licences of everything that is in the programs and not memgauge's, equal texts once.
///
/// # Errors
/// When one cannot be read.
pub(super) fn licences(crates: &[Crate], triple: &str) -> Result<String> {
    let mut by_text: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut text = "What the programs of memgauge contain besides memgauge, and its licences.\n\n".to_owned();
    for krate in crates.iter().filter(|krate| krate.checksum.is_some()) {
        let name = format!("{} {}", krate.name, krate.version);
        text += &format!("{name}: {}\n", krate.licence);
        for file in licence_files(&krate.folder)? {
            let licence = String::from_utf8_lossy(&fs::read(&file)?).replace("\r\n", "\n").trim().to_owned();
            by_text.entry(licence).or_default().insert(name.clone());
        }
    }
    let project = project_folder();
    let runtime = runtime(triple);
    let names: Vec<&str> = runtime.iter().map(|library| library.name).collect();
    text += &format!("Inter, the font of figures: OFL-1.1\n{}: at the end\n", names.join(", "));
    by_text
        .entry(fs::read_to_string(project.join("crates/render/fonts/LICENSE-OFL.txt"))?.trim().to_owned())
        .or_default()
        .insert("Inter".to_owned());
    for (licence, names) in by_text {
        let names: Vec<String> = names.into_iter().collect();
        text += &format!("\n{}\n{}\n\n{licence}\n", "=".repeat(80), names.join(", "));
    }
    text += &format!("\n{}\n", "=".repeat(80));
    let read =
        |file: &&str| fs::read_to_string(project.join("packaging/licences").join(file)).with_context(|| format!("cannot read {file}"));
    text += &runtime.iter().flat_map(|library| library.files).map(read).collect::<Result<Vec<_>>>()?.join("\n");
    Ok(text)
}

/// A library that is linked besides crates.
#[derive(Debug)]
pub(super) struct Runtime {
    pub(super) name: &'static str,
    /// As SPDX writes it.
    pub(super) licence: &'static str,
    /// Of its licences, in packaging/licences.
    files: &'static [&'static str],
}

const RUST: Runtime = Runtime { name: "Rust's standard library", licence: "MIT OR Apache-2.0", files: &["rust.txt"] };
const MUSL: Runtime = Runtime { name: "musl", licence: "MIT", files: &["musl.txt"] };
const LIBUNWIND: Runtime = Runtime { name: "libunwind", licence: "Apache-2.0 WITH LLVM-exception", files: &["libunwind.txt"] };
const LIBGCC: Runtime = Runtime { name: "libgcc", licence: "GPL-3.0-or-later WITH GCC-exception-3.1", files: &["libgcc.txt"] };
const GLIBC: Runtime = Runtime { name: "the GNU C Library", licence: "LGPL-2.1-or-later", files: &["glibc.txt", "lgpl-2.1.txt"] };
const MINGW: Runtime = Runtime { name: "mingw-w64", licence: "ZPL-2.1", files: &["mingw-w64.txt"] };

/// The libraries that are linked besides crates.
pub(super) fn runtime(triple: &str) -> &'static [Runtime] {
    if is_windows(triple) {
        &[RUST, MINGW, LIBGCC]
    } else if triple.ends_with("-gnu") {
        &[RUST, GLIBC, LIBGCC]
    } else {
        &[RUST, MUSL, LIBUNWIND]
    }
}

/// The files of a crate that have its licence.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        if path.is_file() && ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"].iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_tree_are_read() {
        let read = |line: &str| name_and_version(line).map(|(name, version)| format!("{name} {version}"));
        assert_eq!(read("serde v1.0.229 (*)").as_deref(), Some("serde 1.0.229"));
        assert_eq!(read("memgauge v0.1.0 (/home/a b)").as_deref(), Some("memgauge 0.1.0"));
        assert_eq!((read(""), read("a b")), (None, None));
    }

    #[test]
    fn what_is_linked_has_licences_and_no_chores() {
        let crates = linked("x86_64-unknown-linux-musl").unwrap();
        let names: BTreeSet<&str> = crates.iter().map(|c| c.name.as_str()).collect();
        assert!(names.is_superset(&["memgauge", "memgauge-model", "clap", "libc", "serde_json"].into()), "{names:?}");
        assert!(names.is_disjoint(&["xtask", "proptest", "schemars", "syn", "clap_derive", "memgauge-simulation"].into()), "{names:?}");
        assert!(crates.iter().all(|c| c.name.starts_with("memgauge") == c.checksum.is_none()));
        let texts = licences(&crates, "x86_64-unknown-linux-musl").unwrap();
        for part in ["clap 4", "Rich Felker", "SIL OPEN FONT LICENSE", "Apache License"] {
            assert!(texts.contains(part), "{part}");
        }
        assert!(!texts.contains("GNU C Library"), "glibc is not linked");
    }

    #[test]
    fn programs_with_the_gnu_c_library_have_its_licence_and_not_that_of_musl() {
        const TRIPLE: &str = "riscv64gc-unknown-linux-gnu";
        let texts = licences(&linked(TRIPLE).unwrap(), TRIPLE).unwrap();
        for part in ["the GNU C Library, libgcc: at the end", "GNU LESSER GENERAL PUBLIC LICENSE", "GCC RUNTIME LIBRARY EXCEPTION"] {
            assert!(texts.contains(part), "{part}");
        }
        assert!(!texts.contains("\nmusl\n----"), "musl is not linked");
    }

    #[test]
    fn what_is_linked_for_windows_has_its_own_bindings_and_licences() {
        const TRIPLE: &str = "x86_64-pc-windows-gnu";
        let crates = linked(TRIPLE).unwrap();
        let names: BTreeSet<&str> = crates.iter().map(|c| c.name.as_str()).collect();
        assert!(names.is_superset(&["memgauge", "memgauge-windows", "windows-sys"].into()), "{names:?}");
        assert!(names.is_disjoint(&["memgauge-linux", "signal-hook", "rustix"].into()), "{names:?}");
        let texts = licences(&crates, TRIPLE).unwrap();
        for part in ["windows-sys 0", "the mingw-w64 project", "GCC Runtime Library Exception", "SIL OPEN FONT LICENSE"] {
            assert!(texts.contains(part), "{part}");
        }
        assert!(!texts.contains("\nmusl\n----"), "musl is not linked");
    }
}
