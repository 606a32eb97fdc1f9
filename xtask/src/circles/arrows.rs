//! Which file uses what is defined in which other file of its package.

use std::collections::{BTreeMap, BTreeSet};

use super::mentions::Role;
use super::modules::Package;

/// The paths that make each arrow, by the files it leads from and to (indices in [`Package::files`]).
pub(super) type Arrows = BTreeMap<(usize, usize), BTreeSet<String>>;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A module, by index.
    Module(usize),
    /// Something that this file defines.
    Definition(usize),
}

/// Every arrow of a package.
pub(super) fn arrows(package: &Package) -> Arrows {
    let mut arrows = Arrows::new();
    for (index, module) in package.modules.iter().enumerate() {
        for mention in &module.mentions {
            let targets = Search::new(package).resolve(index, &mention.path);
            let (files, text) = match mention.role {
                Role::Glob { .. } => {
                    let modules = targets.iter().flat_map(|target| Search::new(package).offered_by(*target));
                    (modules.collect::<BTreeSet<_>>(), mention.path.join("::") + "::*")
                }
                Role::Import { .. } => (definitions(&targets).collect(), mention.path.join("::")),
                // Only attributes name a module to use it: `#[serde(with = "module")]` calls its functions.
                Role::Use => (targets.iter().map(|target| file_of(package, *target)).collect(), mention.path.join("::")),
            };
            for file in files.into_iter().filter(|file| *file != module.file) {
                arrows.entry((module.file, file)).or_default().insert(text.clone());
            }
        }
    }
    arrows
}

/// The file of a module, or of what a file defines.
fn file_of(package: &Package, target: Target) -> usize {
    match target {
        Target::Module(module) => package.modules[module].file,
        Target::Definition(file) => file,
    }
}

fn definitions(targets: &BTreeSet<Target>) -> impl Iterator<Item = usize> {
    targets.iter().filter_map(|target| match target {
        Target::Definition(file) => Some(*file),
        Target::Module(_) => None,
    })
}

/// One search for what a path leads to. It remembers where it is, because imports may lead back to themselves.
struct Search<'a> {
    package: &'a Package,
    /// Modules and the names that are being looked up in them.
    under_way: BTreeSet<(usize, String)>,
}

impl<'a> Search<'a> {
    fn new(package: &'a Package) -> Self {
        Self { package, under_way: BTreeSet::new() }
    }

    /// What a path leads to from a module; nothing when it leads out of the package.
    fn resolve(&mut self, module: usize, path: &[String]) -> BTreeSet<Target> {
        let mut targets = BTreeSet::from([Target::Module(module)]);
        for (position, name) in path.iter().enumerate() {
            let last = position + 1 == path.len();
            let mut next = BTreeSet::new();
            for target in targets {
                match target {
                    Target::Definition(_) => {
                        next.insert(target);
                    }
                    Target::Module(module) => next.extend(self.step(module, name, position == 0, last)),
                }
            }
            targets = next;
        }
        targets
    }

    /// What a segment of a path means in a module.
    fn step(&mut self, module: usize, name: &str, first: bool, last: bool) -> BTreeSet<Target> {
        let parent = self.package.modules[module].parent;
        match (name, parent) {
            ("self", _) => return BTreeSet::from([Target::Module(module)]),
            ("super", Some(parent)) => return BTreeSet::from([Target::Module(parent)]),
            ("crate", _) => return BTreeSet::from([Target::Module(self.root_of(module))]),
            _ => {}
        }
        let found = self.look_up(module, name, last);
        if found.is_empty() && !first {
            // A macro may define what the module does not name.
            return BTreeSet::from([Target::Definition(self.package.modules[module].file)]);
        }
        found
    }

    fn root_of(&self, mut module: usize) -> usize {
        while let Some(parent) = self.package.modules[module].parent {
            module = parent;
        }
        module
    }

    /// What a name means in a module: what it defines, declares or imports. The `last` name of a path may be an item that has the same
    /// name as a module; before that it is the module.
    fn look_up(&mut self, module: usize, name: &str, last: bool) -> BTreeSet<Target> {
        let package = self.package;
        let here = &package.modules[module];
        let mut found: BTreeSet<Target> =
            here.children.iter().filter(|(child, _)| child == name).map(|(_, child)| Target::Module(*child)).collect();
        if (last || found.is_empty()) && here.items.contains(name) {
            found.insert(Target::Definition(here.file));
        }
        let place = (module, name.to_owned());
        if (!last && !found.is_empty()) || !self.under_way.insert(place.clone()) {
            return found;
        }
        for mention in &here.mentions {
            if matches!(&mention.role, Role::Import { name: import, .. } if import == name) {
                found.extend(self.resolve(module, &mention.path));
            }
        }
        if found.is_empty() {
            for mention in here.mentions.iter().filter(|mention| matches!(mention.role, Role::Glob { .. })) {
                for target in self.resolve(module, &mention.path) {
                    if let Target::Module(module) = target {
                        found.extend(self.look_up(module, name, last));
                    }
                }
            }
        }
        self.under_way.remove(&place);
        found
    }

    /// The files that define what a glob over this target imports.
    fn offered_by(&mut self, target: Target) -> BTreeSet<usize> {
        let module = match target {
            Target::Definition(file) => return BTreeSet::from([file]),
            Target::Module(module) => module,
        };
        let package = self.package;
        let here = &package.modules[module];
        let mut files = BTreeSet::new();
        let place = (module, "*".to_owned());
        if !self.under_way.insert(place.clone()) {
            return files;
        }
        if !here.items.is_empty() {
            files.insert(here.file);
        }
        for mention in &here.mentions {
            let targets = match mention.role {
                Role::Import { exported: true, .. } | Role::Glob { exported: true } => self.resolve(module, &mention.path),
                _ => continue,
            };
            match mention.role {
                Role::Glob { .. } => targets.iter().for_each(|target| files.extend(self.offered_by(*target))),
                _ => files.extend(definitions(&targets)),
            }
        }
        self.under_way.remove(&place);
        files
    }
}
