//! `cargo xtask recipes`: does what CONTRIBUTING.md says in a copy of the tree, and builds and tests that. So a recipe that is followed
//! word by word leads to the end, and names every file that has to be edited.
//!
//! The edits are the blocks of code of a recipe whose first line names a file and a place: `rust FILE, above "TEXT"` puts lines above the
//! first line that contains the text, and `rust FILE, before "TEXT"` puts words before the text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::folders::{project_folder, target_folder};
use crate::programs::{self, UNOPTIMISED, run};

/// Files that are edited by hand for a mix, with its kernels on each instruction set, at most.
const MAX_FILES: usize = 5;
/// Other instruction sets whose kernels are built.
const TARGETS: [&str; 2] = ["aarch64-unknown-linux-musl", "riscv64gc-unknown-linux-gnu"];

/// A block of code, and where it goes.
#[derive(Debug, PartialEq, Eq)]
struct Edit<'a> {
    file: &'a str,
    above: bool,
    place: &'a str,
    text: &'a str,
}

/// Options of `cargo xtask recipes`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecipesArgs {
    /// Also check the whole program, and build kernels for the other instruction sets
    #[arg(long)]
    all: bool,
}

/// Follows every recipe that can be followed so: that for a mix.
pub(crate) fn recipes(args: &RecipesArgs) -> Result<()> {
    let copy = target_folder().join("recipes");
    copy_tree(&copy)?;
    let text = fs::read_to_string(project_folder().join("CONTRIBUTING.md"))?;
    let edits = edits(section(&text, "Add a mix")?);
    for edit in &edits {
        edit.apply(&copy)?;
    }
    let files: BTreeSet<&str> = edits.iter().map(|edit| edit.file).collect();
    ensure!((1..=MAX_FILES).contains(&files.len()), "a mix takes edits of {} files: {files:?}", files.len());
    test(&copy, &["-p", "memgauge-kernels"])?;
    // Its name is understood and listed.
    test(&copy, &["-p", "memgauge-model", "--test", "units", "mixes"])?;
    // Nothing else has to know of it. Other tests, without a copy, check that help and documents have everything that is listed.
    if args.all {
        cargo(&copy, &["check", "--quiet", "-p", "memgauge"])?;
        for target in TARGETS {
            cargo(&copy, &["build", "--quiet", "-p", "memgauge-kernels", "--lib", "--target", target])?;
        }
    }
    println!("The recipe for a mix: {} files, and what they need builds and passes its tests", files.len());
    Ok(())
}

/// The text below a heading, up to the next one.
fn section<'a>(text: &'a str, heading: &str) -> Result<&'a str> {
    let (_, rest) =
        text.split_once(&format!("\n### {heading}\n")).with_context(|| format!("CONTRIBUTING.md has no section '{heading}'"))?;
    Ok(rest.split("\n### ").next().unwrap_or(rest))
}

/// The edits of a recipe, in order.
fn edits(recipe: &str) -> Vec<Edit<'_>> {
    let blocks = recipe.split("\n```").skip(1).step_by(2);
    let edit = |block| {
        let (first, text) = str::split_once(block, '\n')?;
        let (file, place) = first.strip_prefix("rust ")?.split_once(", ")?;
        let (word, place) = place.split_once(' ')?;
        Some(Edit { file, above: word == "above", place: place.trim_matches('"'), text })
    };
    blocks.filter_map(edit).collect()
}

impl Edit<'_> {
    fn apply(&self, folder: &Path) -> Result<()> {
        let path = folder.join(self.file);
        let content = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, self.edited(&content)?).with_context(|| format!("cannot write {}", path.display()))
    }

    fn edited(&self, content: &str) -> Result<String> {
        let at = content.find(self.place).with_context(|| format!("CONTRIBUTING.md: {} has no '{}'", self.file, self.place))?;
        let (at, end) = if self.above { (content[..at].rfind('\n').map_or(0, |line| line + 1), "\n") } else { (at, " ") };
        Ok(format!("{}{}{end}{}", &content[..at], self.text, &content[at..]))
    }
}

/// Copies the files of the tree, new ones too, where they differ, and removes others.
fn copy_tree(to: &Path) -> Result<()> {
    let from = project_folder();
    let listed = run(Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(&from))?;
    let there = |path: &&str| !path.is_empty() && from.join(path).is_file();
    for path in listed.split('\0').filter(there) {
        let (source, copy) = (from.join(path), to.join(path));
        let content = fs::read(&source)?;
        if fs::read(&copy).ok().as_ref() != Some(&content) {
            fs::create_dir_all(copy.parent().context("a file is in a folder")?)?;
            fs::write(&copy, content).with_context(|| format!("cannot write {}", copy.display()))?;
        }
    }
    let listed: BTreeSet<PathBuf> = listed.split('\0').filter(there).map(|path| to.join(path)).collect();
    remove_others(to, &listed)
}

fn remove_others(folder: &Path, listed: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, listed)?;
        } else if !listed.contains(&path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Runs tests of the copy, and sees that there are some.
fn test(copy: &Path, which: &[&str]) -> Result<()> {
    let printed = cargo(copy, &[&["test"], which].concat())?;
    ensure!(printed.contains(" passed") && !printed.contains("ok. 0 passed"), "no tests ran of {}", which.join(" "));
    Ok(())
}

/// Not optimised, because little of it runs. Crates of others that are built already serve here, too.
fn cargo(copy: &Path, arguments: &[&str]) -> Result<String> {
    let mut cargo = programs::cargo();
    cargo.args(arguments).args(UNOPTIMISED).current_dir(copy).env("CARGO_TARGET_DIR", target_folder());
    run(&mut cargo).with_context(|| format!("after the recipe for a mix was followed in {}", copy.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_go_where_a_recipe_says() {
        let recipe = "Text:\n\n```rust src/a.rs, above \"two\"\n    one;\n```\n\nand\n\n```rust src/b.rs, before \"c, d\"\nb,\n```\n\n```sh\nls\n```\n";
        let found = edits(recipe);
        assert_eq!(found[0], Edit { file: "src/a.rs", above: true, place: "two", text: "    one;" });
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].edited("zero;\n    two;\n").unwrap(), "zero;\n    one;\n    two;\n");
        assert_eq!(found[1].edited("[a, c, d]").unwrap(), "[a, b, c, d]");
        assert!(found[1].edited("[]").unwrap_err().to_string().contains("src/b.rs has no 'c, d'"));
    }
}
