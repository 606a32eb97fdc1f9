//! The modules of a crate, as its files declare them, and what each defines, imports and mentions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::{Attribute, Item, ItemMod};

use super::mentions::{Mention, is_test_only, mentions_in, value_of};

/// A module: a file, or an inline module, which belongs to its file.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Index of its file in [`Package::files`].
    pub(super) file: usize,
    /// Index of the module around it; none for a root.
    pub(super) parent: Option<usize>,
    /// Names and indices of the modules below it. A name may stand twice, under different `cfg`s.
    pub(super) children: Vec<(String, usize)>,
    /// Names that it defines.
    pub(super) items: BTreeSet<String>,
    /// Paths that its code mentions, `use` declarations among them.
    pub(super) mentions: Vec<Mention>,
}

/// The source files of one package and their modules.
#[derive(Debug, Default)]
pub(super) struct Package {
    /// Files, relative to the package's folder.
    pub(super) files: Vec<PathBuf>,
    pub(super) modules: Vec<Module>,
}

/// Where a module's child modules are looked for.
struct Place<'a> {
    /// The package's folder.
    package: &'a Path,
    /// The folder of the module's file: `#[path]` starts there.
    file_folder: &'a Path,
    /// The folder of the files of child modules.
    child_folder: &'a Path,
}

impl Package {
    /// Reads the library and the programs below a package's `src`, and every file that they declare as a module.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut package = Self::default();
        let mut roots: Vec<PathBuf> =
            ["src/lib.rs", "src/main.rs"].iter().map(|root| folder.join(root)).filter(|root| root.is_file()).collect();
        for entry in fs::read_dir(folder.join("src/bin")).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                roots.push(path);
            }
        }
        roots.sort();
        for root in roots {
            let child_folder = root.parent().unwrap_or(folder).to_path_buf();
            package.add_file(folder, &root, &child_folder, None)?;
        }
        Ok(package)
    }

    /// Adds the module of a file and those below it; returns its index.
    fn add_file(&mut self, package: &Path, path: &Path, child_folder: &Path, parent: Option<usize>) -> Result<usize> {
        let source = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let parsed = syn::parse_file(&source).with_context(|| format!("cannot parse {}", path.display()))?;
        let relative = path.strip_prefix(package).unwrap_or(path).to_path_buf();
        let file = self.files.iter().position(|known| *known == relative).unwrap_or_else(|| {
            self.files.push(relative);
            self.files.len() - 1
        });
        let file_folder = path.parent().unwrap_or(package);
        self.add_module(file, parent, &parsed.items, &Place { package, file_folder, child_folder })
    }

    /// Adds a module with these items and the modules below it; returns its index.
    fn add_module(&mut self, file: usize, parent: Option<usize>, items: &[Item], place: &Place<'_>) -> Result<usize> {
        let module = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        for item in items.iter().filter(|item| !is_test_only(item)) {
            if let Item::Mod(declaration) = item {
                let child = self.add_child(module, declaration, place)?;
                self.modules[module].children.push((declaration.ident.to_string(), child));
                continue;
            }
            self.modules[module].items.extend(defined_name(item));
            let mentions = mentions_in(item);
            self.modules[module].mentions.extend(mentions);
        }
        Ok(module)
    }

    fn add_child(&mut self, parent: usize, declaration: &ItemMod, place: &Place<'_>) -> Result<usize> {
        let name = declaration.ident.to_string();
        let folder = place.child_folder.join(&name);
        if let Some((_, items)) = &declaration.content {
            let place = Place { package: place.package, file_folder: &folder, child_folder: &folder };
            return self.add_module(self.modules[parent].file, Some(parent), items, &place);
        }
        if let Some(path) = path_attribute(&declaration.attrs) {
            let path = place.file_folder.join(path);
            let child_folder = path.parent().unwrap_or(&folder).to_path_buf();
            return self.add_file(place.package, &path, &child_folder, Some(parent));
        }
        let beside = folder.with_extension("rs");
        let path = if beside.is_file() { beside } else { folder.join("mod.rs") };
        self.add_file(place.package, &path, &folder, Some(parent))
    }
}

/// The value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(value_of)
}

/// The name that an item defines.
fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
