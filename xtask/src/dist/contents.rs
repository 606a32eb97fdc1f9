//! The contents of archives and packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::archive::{BEST, gzip};
use super::build::Programs;
use super::crates::{self, Crate};
use super::release::Release;
use super::target::program;
use super::tree::Tree;
use crate::folders::project_folder;

/// Everything that goes into the packages of one instruction set.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    programs: &'a Programs,
    /// Manual pages by their file names.
    manuals: BTreeMap<String, Vec<u8>>,
    /// Completions by the names that the shells expect.
    completions: BTreeMap<String, Vec<u8>>,
    schema: BTreeMap<String, Vec<u8>>,
    units: BTreeMap<String, Vec<u8>>,
    /// The page on Windows, for its archive.
    windows: BTreeMap<&'static str, Vec<u8>>,
    /// Texts for users: both licences, the licences of the programs' components, README, changes.
    texts: BTreeMap<&'static str, Vec<u8>>,
}

/// A package of a distribution.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    /// By installed paths.
    pub(super) tree: Tree,
    /// Whether it has units of systemd.
    pub(super) units: bool,
}

/// The program's path in an image, from its root.
pub(super) const IN_IMAGE: &str = "usr/bin/memgauge";
/// The manual page of the drop-in, which is in its own package.
const MLC_PAGE: &str = "mlc.1";
/// Another name of the drop-in, which scripts call for the wide loads and stores that it has under every name.
const MLC_AVX512: &str = "mlc_avx512";
/// The page on the differences on Windows, to which the README links, and the pages that it refers to for explanations.
const WINDOWS_PAGES: [&str; 3] = ["docs/windows.md", "docs/scripts.md", "docs/prefetch.md"];

impl<'a> Sources<'a> {
    /// Reads them from this checkout; manual pages and completions are made from the command line.
    ///
    /// # Errors
    /// When one is missing.
    pub(super) fn read(release: &Release, programs: &'a Programs, crates: &[Crate]) -> Result<Self> {
        let project = project_folder();
        let (mut manuals, mut completions) = (BTreeMap::new(), BTreeMap::new());
        for (path, bytes) in crate::docs::files()? {
            let (folder, name) = path.to_str().and_then(|path| path.split_once('/')).context("a file of docs without a folder")?;
            match folder {
                "man" => manuals.insert(name.to_owned(), bytes),
                "completions" => completions.insert(name.to_owned(), bytes),
                _ => bail!("what is {}?", path.display()),
            };
        }
        manuals.insert(MLC_PAGE.to_owned(), read(&project.join("docs").join(MLC_PAGE))?);
        let mut texts = BTreeMap::new();
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
            texts.insert(name, read(&project.join(name))?);
        }
        texts.insert("THIRD-PARTY.txt", crates::licences(crates, programs.triple)?.into_bytes());
        let changes = String::from_utf8_lossy(&texts["CHANGELOG.md"]);
        super::changelog::of_version(&changes, release.version)?;
        let folder = |path: &str| files_in(&project.join(path));
        let mut windows = BTreeMap::new();
        for page in WINDOWS_PAGES {
            windows.insert(page, read(&project.join(page))?);
        }
        Ok(Self { programs, manuals, completions, schema: folder("schema")?, units: folder("packaging/systemd")?, windows, texts })
    }

    pub(super) fn text(&self, name: &str) -> &[u8] {
        self.texts.get(name).map_or(&[], Vec::as_slice)
    }

    /// The archive, which is used where it is unpacked.
    pub(super) fn archive(&self) -> Tree {
        let mut tree = self.both_programs("");
        tree.link(MLC_AVX512, "mlc");
        let parts = [("man", &self.manuals), ("completions", &self.completions), ("schema", &self.schema), ("systemd", &self.units)];
        for (folder, files) in parts {
            files.iter().for_each(|(name, bytes)| tree.file(format!("{folder}/{name}"), bytes.clone()));
        }
        self.texts.iter().for_each(|(name, bytes)| tree.file(*name, bytes.clone()));
        tree
    }

    /// The archive for Windows: no manual pages, completions of Unix shells and units.
    pub(super) fn windows_archive(&self) -> Tree {
        let mut tree = self.both_programs("");
        self.schema.iter().for_each(|(name, bytes)| tree.file(format!("schema/{name}"), bytes.clone()));
        let pages = self.windows.iter().chain(&self.texts);
        let has = |path: &str| self.windows.contains_key(path) || self.texts.contains_key(path);
        for (name, bytes) in pages {
            let bytes =
                if name.ends_with(".md") { unlinked(name, &String::from_utf8_lossy(bytes), has).into_bytes() } else { bytes.clone() };
            tree.file(*name, bytes);
        }
        tree
    }

    /// An image's root: the program, and the drop-in as another name of it.
    pub(super) fn image(&self) -> Tree {
        let mut tree = Tree::default();
        tree.program(IN_IMAGE, self.programs.memgauge.clone());
        tree.link("usr/bin/mlc", "memgauge");
        tree.link(format!("usr/bin/{MLC_AVX512}"), "memgauge");
        self.licences().for_each(|(name, bytes)| tree.file(format!("usr/share/doc/memgauge/{name}"), bytes));
        tree
    }

    /// The licences of the programs and of what they contain.
    pub(super) fn licences(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.texts.iter().filter(|(name, _)| !name.ends_with(".md")).map(|(name, bytes)| (*name, bytes.as_slice()))
    }

    pub(super) fn memgauge(&self) -> &[u8] {
        &self.programs.memgauge
    }

    fn both_programs(&self, folder: &str) -> Tree {
        let mut tree = Tree::default();
        tree.program(format!("{folder}{}", program("memgauge", self.programs.triple)), self.programs.memgauge.clone());
        tree.program(format!("{folder}{}", program("mlc", self.programs.triple)), self.programs.mlc.clone());
        tree
    }

    /// The packages, with zsh's completions in the folder that the distribution has for them.
    ///
    /// # Errors
    /// None that memory would not end first.
    pub(super) fn packages(&self, zsh: &str) -> Result<[Package; 2]> {
        let (mut main, mut drop_in) = (Tree::default(), Tree::default());
        main.program("usr/bin/memgauge", self.programs.memgauge.clone());
        drop_in.program("usr/bin/mlc", self.programs.mlc.clone());
        drop_in.link(format!("usr/bin/{MLC_AVX512}"), "mlc");
        drop_in.link(format!("usr/share/man/man1/{MLC_AVX512}.1.gz"), &format!("{MLC_PAGE}.gz"));
        for (name, bytes) in &self.manuals {
            let tree = if name == MLC_PAGE { &mut drop_in } else { &mut main };
            tree.file(format!("usr/share/man/man1/{name}.gz"), gzip(bytes, BEST)?);
        }
        for (name, bytes) in &self.completions {
            let path = match name.as_str() {
                "memgauge.bash" => "usr/share/bash-completion/completions/memgauge".to_owned(),
                "memgauge.fish" => "usr/share/fish/vendor_completions.d/memgauge.fish".to_owned(),
                zsh_function => format!("{zsh}/{zsh_function}"),
            };
            main.file(path, bytes.clone());
        }
        self.schema.iter().for_each(|(name, bytes)| main.file(format!("usr/share/memgauge/schema/{name}"), bytes.clone()));
        self.units.iter().for_each(|(name, bytes)| main.file(format!("usr/lib/systemd/system/{name}"), bytes.clone()));
        main.file("usr/share/doc/memgauge/README.md", self.text("README.md"));
        for (name, tree) in [("memgauge", &mut main), ("memgauge-mlc", &mut drop_in)] {
            tree.file(format!("usr/share/doc/{name}/THIRD-PARTY.txt.gz"), gzip(self.text("THIRD-PARTY.txt"), BEST)?);
        }
        Ok([
            Package {
                name: "memgauge",
                summary: "measures memory latency, bandwidth and cache-to-cache transfers",
                description: "memgauge measures how a machine's memory behaves: latency, bandwidth, latency under load, and transfers between caches, on any \
                              vendor's CPU, without root, each number with its confidence interval and the evidence for it. It also checks the memory of \
                              many machines on a schedule (memgauge.timer, which is not enabled when it is installed).",
                tree: main,
                units: true,
            },
            Package {
                name: "memgauge-mlc",
                summary: "memgauge for command lines of Intel Memory Latency Checker",
                description: "A program named mlc that takes the command lines of Intel Memory Latency Checker and prints tables of the same shape, so that \
                              scripts and parsers run unchanged, on CPUs of any vendor. It is independent of the original and contains nothing of it.",
                tree: drop_in,
                units: false,
            },
        ])
    }
}

/// A page whose links lead only where `has` knows a file: of others the words stay. Links to the web stay as well. Pictures are left out.
fn unlinked(page: &str, text: &str, has: impl Fn(&str) -> bool) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let leads = |target: &str| {
        let file = target.split('#').next().unwrap_or_default();
        let path = match file.strip_prefix("../") {
            Some(above) => above.to_owned(),
            None if folder.is_empty() => file.to_owned(),
            None => format!("{folder}/{file}"),
        };
        file.is_empty() || file.contains("://") || has(&path)
    };
    let (mut rest, mut kept) = (text, String::new());
    while let Some(middle) = rest.find("](") {
        let target = rest[middle + 2..].split(')').next().unwrap_or_default();
        let end = middle + 2 + target.len() + 1;
        match rest[..middle].rfind('[') {
            Some(begin) if end <= rest.len() && !leads(target) => {
                kept += &rest[..begin];
                kept += &rest[begin + 1..middle];
            }
            _ => kept += &rest[..end.min(rest.len())],
        }
        rest = &rest[end.min(rest.len())..];
    }
    kept += rest;
    kept.lines().filter(|line| !line.starts_with("<img ")).map(|line| format!("{line}\n")).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn files_in(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_to_no_file_of_the_archive_are_words() {
        let has = |path: &str| ["README.md", "docs/windows.md"].contains(&path);
        let text =
            "<img src=\"a.png\">\n[Windows](docs/windows.md#mlc) · [limits](docs/limits.md), [here](#mlc) ([web](https://a.example/b))\n";
        let expected = "[Windows](docs/windows.md#mlc) · limits, [here](#mlc) ([web](https://a.example/b))\n";
        assert_eq!(unlinked("README.md", text, has), expected);
        assert_eq!(
            unlinked("docs/windows.md", "[a](../README.md) [b](mlc.1) [c](windows.md)\n", has),
            "[a](../README.md) b [c](windows.md)\n"
        );
        assert_eq!(unlinked("README.md", "a](b and [c](d", has), "a](b and [c](d\n", "what is no link stays");
    }

    #[test]
    fn pages_for_windows_have_no_link_that_leads_nowhere() {
        let project = crate::folders::project_folder();
        let has = |path: &str| WINDOWS_PAGES.contains(&path) || path == "README.md" || path == "CHANGELOG.md";
        for page in WINDOWS_PAGES.into_iter().chain(["README.md", "CHANGELOG.md"]) {
            let text = unlinked(page, &fs::read_to_string(project.join(page)).unwrap(), has);
            assert_eq!(unlinked(page, &text, has), text, "{page}");
            let dead = ["](method", "](docs/method", "](mlc.1", "](CONTRIBUTING"].into_iter().find(|link| text.contains(link));
            assert_eq!(dead, None, "{page}");
        }
    }
}
