//! `cargo xtask circles`: finds files of a crate that import each other in a circle.
//!
//! An arrow leads from a file to another that defines something it uses. `use` declarations are followed through re-exports to the file
//! that defines the item, so a facade of `mod` and `pub use` lines is not in a circle with its children. `mod` is no arrow, and neither is
//! the import of a module: the paths through it are. No `cfg` is evaluated but `cfg(test)`, which is left out.
//!
//! It also finds each `cfg` of a system or an instruction set outside of the few places for them.
//!
//! What it does not see: macros by `macro_rules!` that are used by textual scope, methods of a type in another file's `impl`, and
//! paths that only exist after a macro's expansion.

mod arrows;
mod graph;
mod mentions;
mod modules;
mod systems;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use arrows::Arrows;
use modules::Package;

/// What `cargo xtask circles` looks at.
#[derive(Debug, Default, Args)]
pub(crate) struct CirclesArgs {
    /// The workspace's folder, or that of one package [default: this workspace]
    root: Option<PathBuf>,
}

/// Prints the circles of every package below a folder, and what is asked about systems where it may not be; fails when there are any.
pub(crate) fn circles(args: &CirclesArgs) -> Result<()> {
    let root = args.root.clone().unwrap_or_else(crate::folders::project_folder);
    let mut totals = Vec::new();
    for folder in packages(&root)? {
        let circles = Circles::read(&folder)?;
        let folder = folder.strip_prefix(&root).unwrap_or(&folder);
        let name = if folder.as_os_str().is_empty() { ".".to_owned() } else { folder.display().to_string() };
        circles.print(&name);
        totals.push((name, circles.files()));
    }
    for (name, files) in &totals {
        println!("{name}: {files} files in circles");
    }
    let misplaced = systems::misplaced(&root)?;
    misplaced.iter().for_each(|found| println!("a cfg outside of its places: {found}"));
    ensure!(misplaced.is_empty(), "only the places in docs/architecture.md may ask which system or instruction set it is");
    match totals.iter().map(|(_, files)| files).sum::<usize>() {
        0 => Ok(()),
        files => bail!("{files} files import each other in circles"),
    }
}

/// Folders with a `Cargo.toml` and a `src`: the root, those in it, and those in its `crates`.
fn packages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.to_path_buf()];
    for parent in [root.to_path_buf(), root.join("crates")] {
        if parent.is_dir() {
            let entries = fs::read_dir(&parent).with_context(|| format!("cannot list {}", parent.display()))?;
            folders.extend(entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?);
        }
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file() && folder.join("src").is_dir());
    folders.sort();
    if folders.is_empty() {
        bail!("{} has no packages", root.display());
    }
    Ok(folders)
}

/// The circles of one package.
struct Circles {
    package: Package,
    arrows: Arrows,
    /// Indices of the files of each circle.
    circles: Vec<Vec<usize>>,
}

impl Circles {
    fn read(folder: &Path) -> Result<Self> {
        let package = Package::read(folder)?;
        let arrows = arrows::arrows(&package);
        let mut successors = vec![Vec::new(); package.files.len()];
        for (from, to) in arrows.keys() {
            successors[*from].push(*to);
        }
        Ok(Self { circles: graph::circles(&successors), package, arrows })
    }

    /// How many files are in circles.
    fn files(&self) -> usize {
        self.circles.iter().map(Vec::len).sum()
    }

    /// Prints each circle: its files, and under each the files of the circle that it uses and the paths by which it does.
    fn print(&self, name: &str) {
        for circle in &self.circles {
            println!("{name}: a circle of {} files", circle.len());
            for from in circle {
                println!("  {}", self.package.files[*from].display());
                for to in circle {
                    if let Some(paths) = self.arrows.get(&(*from, *to)) {
                        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                        println!("    uses {}: {}", self.package.files[*to].display(), paths.join(", "));
                    }
                }
            }
            println!();
        }
    }
}
