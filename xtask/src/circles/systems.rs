//! The places in which code may ask which system or instruction set it is built for: see "What enforces it" in `docs/architecture.md`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};

/// Words of a `cfg` that tell systems and instruction sets apart.
const WORDS: &[&str] = &["target_os", "target_arch", "target_env", "target_family", "target_vendor", "windows", "unix"];

/// Files, or folders with a `/` at their end, and the words that a `cfg` in them may have.
const PLACES: &[(&str, &[&str])] = &[
    ("crates/kernels/", &["target_arch", "windows"]),
    ("crates/linux/", &["target_env"]),
    ("crates/os/src/lib.rs", &["target_os", "windows"]),
    ("crates/os/Cargo.toml", &["target_os", "windows"]),
    ("crates/windows/src/topology/cpuid.rs", &["target_arch"]),
    ("crates/windows/", &["windows"]),
    // Files in place of registers, which its tests make on Linux only; xtask names what tests are built with.
    ("Cargo.toml", &["target_os"]),
    ("xtask/Cargo.toml", &["target_os"]),
];

/// Every `cfg` below a folder that is not where the rule allows it: `FILE: WORD`.
pub(super) fn misplaced(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in files(root)? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        let asked = if name.ends_with(".toml") { asked_in_manifest(&text) } else { asked_in_code(&text) };
        let asked = asked.with_context(|| format!("cannot understand {name}"))?;
        let allowed: Vec<&str> = PLACES
            .iter()
            .filter(|(place, _)| name == *place || (place.ends_with('/') && name.starts_with(place)))
            .flat_map(|(_, words)| words.iter().copied())
            .collect();
        found.extend(asked.into_iter().filter(|word| !allowed.contains(word)).map(|word| format!("{name}: {word}")));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Rust files and manifests, but not what was built.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path)?);
            }
        } else if name.ends_with(".rs") || name == "Cargo.toml" {
            found.push(path);
        }
    }
    Ok(found)
}

/// The words in the tables `[target.'cfg(…)']` of a manifest.
fn asked_in_manifest(text: &str) -> Result<Vec<&'static str>> {
    let manifest: toml::Table = toml::from_str(text)?;
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    Ok(targets.into_iter().flat_map(toml::Table::keys).flat_map(|key| words_in(key)).collect())
}

/// The words in attributes and in `cfg!`.
fn asked_in_code(text: &str) -> Result<Vec<&'static str>> {
    // Reading tokens takes the time, and most files have none of the words.
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Ok(Vec::new());
    }
    Ok(asked_in(text.parse().map_err(|error| anyhow::anyhow!("{error}"))?))
}

/// The words in brackets behind `cfg`, `cfg_attr` and `cfg!`, at any depth.
fn asked_in(tokens: TokenStream) -> Vec<&'static str> {
    let (mut asked, mut is_cfg) = (Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_cfg => {
                asked.extend(words_in(&group.to_string()));
                is_cfg = false;
            }
            TokenTree::Group(group) => asked.extend(asked_in(group.stream())),
            TokenTree::Ident(ident) => is_cfg = ident == "cfg" || ident == "cfg_attr",
            TokenTree::Punct(mark) => is_cfg &= mark.as_char() == '!',
            TokenTree::Literal(_) => is_cfg = false,
        }
    }
    asked
}

fn words_in(text: &str) -> Vec<&'static str> {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    WORDS.iter().copied().filter(|word| words.contains(word)).collect()
}
