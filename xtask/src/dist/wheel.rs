//! A wheel: the static program and the module of `python/`, for pip.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::DateTime;

use super::archive::zip;
use super::contents::Sources;
use super::release::Release;
use super::target::Names;
use crate::folders::project_folder;

/// The oldest Python that has what the module uses.
const PYTHON: &str = ">=3.9";

/// A wheel's name, and the wheel.
///
/// # Errors
/// When a file of the module cannot be read.
pub(super) fn wheel(release: &Release, names: &Names, sources: &Sources<'_>) -> Result<(String, Vec<u8>)> {
    let (version, info) = (release.version, format!("memgauge-{}.dist-info", release.version));
    let mut files: BTreeMap<String, (Vec<u8>, bool)> = BTreeMap::new();
    for entry in fs::read_dir(project_folder().join("python/memgauge")).context("the module in python/memgauge")? {
        let path = entry?.path();
        // Python leaves a folder with its cache there, which does not belong to the module.
        if path.is_file() {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.insert(format!("memgauge/{name}"), (text.replace("\"VERSION\"", &format!("\"{version}\"")).into_bytes(), false));
        }
    }
    files.insert(format!("memgauge-{version}.data/scripts/memgauge"), (sources.memgauge().to_vec(), true));
    for (name, bytes) in sources.licences() {
        files.insert(format!("{info}/licenses/{name}"), (bytes.to_vec(), false));
    }
    let licences: String = sources.licences().map(|(name, _)| format!("License-File: {name}\n")).collect();
    files.insert(format!("{info}/METADATA"), (metadata(release, &licences)?.into_bytes(), false));
    let tags: String = names.wheel.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let about = format!("Wheel-Version: 1.0\nGenerator: cargo xtask dist ({version})\nRoot-Is-Purelib: false\n{tags}");
    files.insert(format!("{info}/WHEEL"), (about.into_bytes(), false));
    let line = |(name, (bytes, _)): (&String, &(Vec<u8>, bool))| {
        format!("{name},sha256={},{}\n", URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)), bytes.len())
    };
    let record: String = files.iter().map(line).chain([format!("{info}/RECORD,,\n")]).collect();
    // The description comes last, as the format recommends: then it can be replaced without moving the rest.
    let record = (format!("{info}/RECORD"), (record.into_bytes(), false));
    let (described, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(name, _)| name.starts_with(&info));
    let files: Vec<_> = others.into_iter().chain(described).chain([record]).collect();
    let files = files.iter().map(|(name, (bytes, executable))| (name.as_str(), bytes.as_slice(), *executable));
    // Any time would do.
    Ok((format!("memgauge-{version}-py3-none-{}.whl", names.wheel), zip(files, DateTime::default())?))
}

fn metadata(release: &Release, licences: &str) -> Result<String> {
    let version = release.version;
    let homepage = release.homepage.as_ref().map_or_else(String::new, |url| format!("Project-URL: Homepage, {url}\n"));
    let readme = fs::read_to_string(project_folder().join("python/README.md")).context("python/README.md")?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: memgauge\nVersion: {version}\nSummary: Measures how a machine's memory behaves: latency, bandwidth, latency under \
         load, cache-to-cache transfers\nKeywords: memory,latency,bandwidth,numa,benchmark\nLicense-Expression: Apache-2.0 OR MIT\n{licences}{homepage}\
         Classifier: Operating System :: POSIX :: Linux\nClassifier: Programming Language :: Python :: 3\nClassifier: Programming Language :: Rust\n\
         Classifier: Topic :: System :: Benchmark\nClassifier: Typing :: Typed\nRequires-Python: {PYTHON}\nProvides-Extra: pandas\n\
         Requires-Dist: pandas; extra == \"pandas\"\nDescription-Content-Type: text/markdown; charset=UTF-8\n\n{readme}"
    ))
}
