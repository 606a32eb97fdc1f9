//! `cargo xtask circles`: finds files of a crate that use each other in a circle, and modules with all that is below them.
//!
//! An arrow leads from a file to another that defines something it uses. Paths are followed through imports and re-exports to the file that
//! defines the item, so a facade of `mod` and `pub use` lines is not in a circle with its children. `mod` does not count as an arrow, nor does the
//! import of a module: the paths through it do. No `cfg` is evaluated except `cfg(test)`, which is left out.
//!
//! It also finds each `cfg` of a system or an instruction set outside of the few places for them.
//!
//! It does not see macros by `macro_rules!` that are used by textual scope, methods of a type in another file's `impl`, or
//! paths that only exist after a macro's expansion.

mod modules;
mod systems;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use modules::{Name, Package};

/// What `cargo xtask circles` looks at.
#[derive(Debug, Default, Args)]
pub(crate) struct CirclesArgs {
    /// The workspace's folder, or that of one package [default: this workspace]
    root: Option<PathBuf>,
}

/// Prints the circles of every package below a folder, and each `cfg` of a system in a wrong place; fails if there are any.
pub(crate) fn circles(args: &CirclesArgs) -> Result<()> {
    let root = args.root.clone().unwrap_or_else(crate::folders::project_folder);
    let mut found = 0;
    for folder in packages(&root)? {
        let below = folder.strip_prefix(&root).unwrap_or(&folder);
        let name = if below.as_os_str().is_empty() { ".".to_owned() } else { below.display().to_string() };
        for package in Package::all(&folder)? {
            let arrows = Arrows::of(&package);
            for circle in arrows.circles() {
                found += 1;
                println!("{name}: a circle: {}", circle.join(", "));
                arrows.print_among(&circle);
            }
        }
    }
    let misplaced = systems::misplaced(&root)?;
    misplaced.iter().for_each(|found| println!("a cfg outside of its places: {found}"));
    ensure!(misplaced.is_empty(), "only the places in docs/architecture.md may ask which system or instruction set it is");
    ensure!(found == 0, "{found} circles of files or modules");
    Ok(())
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

/// The files that use items of another file: the names of both modules, and the paths of the uses.
struct Arrows(BTreeMap<(Name, Name), BTreeSet<String>>);

impl Arrows {
    fn of(package: &Package) -> Self {
        let mut arrows = BTreeMap::<_, BTreeSet<String>>::new();
        for (name, module) in &package.modules {
            for mention in &module.mentions {
                for to in package.used_by(name, mention).into_iter().filter(|to| *to != module.file) {
                    arrows.entry((module.file.clone(), to)).or_default().insert(mention.text());
                }
            }
        }
        Self(arrows)
    }

    /// Circles of files, and of modules with everything below them, each once; as `a::b`, the root as `crate`.
    fn circles(&self) -> BTreeSet<Vec<String>> {
        let said = |name: &[String]| if name.is_empty() { "crate".to_owned() } else { name.join("::") };
        let files = self.0.keys().map(|(from, to)| (said(from), said(to))).collect();
        let mut circles: BTreeSet<_> = groups(&files).into_iter().collect();
        // By the module around both: which of its modules uses which. Circles of a module's own file and the files below it are found above.
        let mut levels = BTreeMap::<&[String], BTreeSet<(String, String)>>::new();
        for (from, to) in self.0.keys() {
            let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            if common < from.len() && common < to.len() {
                levels.entry(&from[..common]).or_default().insert((said(&from[..=common]), said(&to[..=common])));
            }
        }
        circles.extend(levels.values().flat_map(groups));
        circles
    }

    /// Prints how the modules of a circle use each other: the paths of the uses.
    fn print_among(&self, circle: &[String]) {
        let inside = |name: &Name, module: &String| {
            let said = if name.is_empty() { "crate".to_owned() } else { name.join("::") };
            said == *module || said.starts_with(&format!("{module}::"))
        };
        for from in circle {
            for to in circle.iter().filter(|to| *to != from) {
                let between = self.0.iter().filter(|((a, b), _)| inside(a, from) && inside(b, to));
                let paths: Vec<&str> = between.flat_map(|(_, paths)| paths).map(String::as_str).collect();
                if !paths.is_empty() {
                    println!("  {from} uses {to}: {}", paths.join(", "));
                }
            }
        }
    }
}

/// The groups of nodes that reach each other.
fn groups(arrows: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let mut reaches: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, _) in arrows {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from.as_str()]);
        while let Some(node) = open.pop() {
            let next = arrows.iter().filter(|(a, _)| a == node).map(|(_, b)| b.as_str());
            open.extend(next.filter(|b| reached.insert(*b)).collect::<Vec<_>>());
        }
        reaches.insert(from, reached);
    }
    let reach_each_other = |a: &str, b: &str| reaches[a].contains(b) && reaches[b].contains(a);
    let group = |a: &&str| reaches.keys().filter(|b| reach_each_other(a, b)).map(|b| (*b).to_owned()).collect::<Vec<_>>();
    let groups: BTreeSet<Vec<String>> = reaches.keys().map(group).filter(|group| group.len() > 1).collect();
    groups.into_iter().collect()
}
