//! The modules of a crate, as its files declare them, and what each defines, imports and mentions: read from its tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A module's path from the crate's root, which is empty.
pub(super) type Name = Vec<String>;

/// A path that code mentions, and what it does where it stands.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    path: Vec<String>,
    role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    /// Code uses what it names.
    Use,
    /// A `use` declaration gives this name to what it names.
    Import(String, Seen),
    /// A `use` declaration imports everything of the module that it names.
    Glob(Seen),
}

/// Who sees an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Here,
    Elsewhere,
}

impl Mention {
    pub(super) fn text(&self) -> String {
        self.path.join("::") + if matches!(self.role, Role::Glob(_)) { "::*" } else { "" }
    }
}

/// A module: a file, or an inline module, which belongs to its file.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The module that its file is.
    pub(super) file: Name,
    /// Names that it defines.
    items: BTreeSet<String>,
    pub(super) mentions: Vec<Mention>,
}

/// The modules of a library or a program.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) modules: BTreeMap<Name, Module>,
}

/// The target of a path.
enum Target {
    Module(Name),
    /// Something that this file defines.
    Item(Name),
}

impl Package {
    /// The library and the programs below a package's `src`.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>> {
        let programs = fs::read_dir(folder.join("src/bin")).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut roots: Vec<PathBuf> = ["src/lib.rs", "src/main.rs"].iter().map(|root| folder.join(root)).chain(programs).collect();
        roots.retain(|root| root.extension().is_some_and(|extension| extension == "rs") && root.is_file());
        roots.sort();
        let read = |root: &PathBuf| {
            let mut package = Self::default();
            package.add_file(Name::new(), root, root.parent().unwrap_or(folder))?;
            Ok(package)
        };
        roots.iter().map(read).collect()
    }

    /// Adds the module of a file and those below it, whose files are in `children`.
    fn add_file(&mut self, name: Name, path: &Path, children: &Path) -> Result<()> {
        let source = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        // Its first line may be for the shell.
        let source = if source.starts_with("#!/") { source.lines().skip(1).collect::<Vec<_>>().join("\n") } else { source };
        let tokens = source.parse::<TokenStream>().map_err(|error| anyhow!("cannot read {}: {error}", path.display()))?;
        self.modules.insert(name.clone(), Module { file: name.clone(), ..Module::default() });
        let folder = path.parent().unwrap_or(children);
        self.add_items(&name, tokens, folder, children)
    }

    /// Adds what a module's tokens define and mention, and its modules.
    fn add_items(&mut self, name: &Name, tokens: TokenStream, folder: &Path, children: &Path) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut path_attribute) = (0, None);
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1);
            match (word(token).as_deref(), next) {
                (Some("mod"), Some(child)) => {
                    let child = word(child).unwrap_or_default();
                    let below = [name.as_slice(), std::slice::from_ref(&child)].concat();
                    let (own, beside) = (children.join(&child), children.join(&child).with_extension("rs"));
                    if let Some(TokenTree::Group(inline)) = tokens.get(at + 2) {
                        self.modules.insert(below.clone(), Module { file: self.modules[name].file.clone(), ..Module::default() });
                        self.add_items(&below, inline.stream(), &own, &own)?;
                    } else if let Some(path) = path_attribute.take() {
                        let path: PathBuf = folder.join(path);
                        self.add_file(below, &path, path.parent().unwrap_or(&own))?;
                    } else {
                        self.add_file(below, &if beside.is_file() { beside } else { own.join("mod.rs") }, &own)?;
                    }
                    at += 3;
                    continue;
                }
                (Some("struct" | "enum" | "union" | "fn" | "const" | "static" | "type" | "trait"), Some(defined)) => {
                    self.module(name).items.extend(word(defined));
                }
                (Some("macro_rules"), _) => self.module(name).items.extend(tokens.get(at + 2).and_then(word)),
                _ => {}
            }
            if is_punctuation(token, '#')
                && let Some(TokenTree::Group(attribute)) = next
                && attribute.stream().to_string().starts_with("path =")
            {
                path_attribute = attribute.stream().into_iter().last().map(|path| path.to_string().trim_matches('"').to_owned());
            }
            at = self.mention(name, &tokens, at);
        }
        Ok(())
    }

    fn module(&mut self, name: &Name) -> &mut Module {
        self.modules.entry(name.clone()).or_default()
    }

    /// Notes the paths at a token, in groups too, and returns the index to go on from. Code for tests is left out.
    fn mention(&mut self, name: &Name, tokens: &[TokenTree], at: usize) -> usize {
        match &tokens[at] {
            token if is_punctuation(token, '#') => match tokens.get(at + 1) {
                Some(TokenTree::Group(attribute)) if is_for_tests(attribute) => return after_item(tokens, at + 2),
                Some(TokenTree::Group(attribute)) => {
                    for literal in literals(attribute.stream()) {
                        let path: Vec<String> = literal.trim_matches('"').split("::").map(str::to_owned).collect();
                        let is_path = path.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_'));
                        self.note(name, if is_path { path } else { Vec::new() }, Role::Use);
                    }
                }
                _ => {}
            },
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut at = 0;
                while at < inside.len() {
                    at = self.mention(name, &inside, at);
                }
            }
            token => match word(token).as_deref() {
                Some("use") => {
                    let end = (at..tokens.len()).find(|i| is_punctuation(&tokens[*i], ';')).unwrap_or(tokens.len());
                    let public = |token: &TokenTree| {
                        matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
                            || word(token).is_some_and(|word| word == "pub")
                    };
                    let seen = if at > 0 && public(&tokens[at - 1]) { Seen::Elsewhere } else { Seen::Here };
                    self.import(name, &tokens[at + 1..end], Vec::new(), seen);
                    return end;
                }
                // `pub(in path)` uses nothing of the module that it names.
                Some("pub") if matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis) =>
                {
                    return at + 2;
                }
                Some(_) => {
                    let (path, end) = path_at(tokens, at);
                    // A name alone is local or imported; the import is noted where it stands.
                    self.note(name, if path.len() > 1 { path } else { Vec::new() }, Role::Use);
                    return end;
                }
                None => {}
            },
        }
        at + 1
    }

    fn note(&mut self, name: &Name, path: Vec<String>, role: Role) {
        if !path.is_empty() {
            self.module(name).mentions.push(Mention { path, role });
        }
    }

    /// Notes the imports of a tree of paths: `a::{b, c::*, d as e}`.
    fn import(&mut self, name: &Name, tokens: &[TokenTree], before: Vec<String>, seen: Seen) {
        // A path from another crate.
        if before.is_empty() && tokens.first().is_some_and(|token| is_punctuation(token, ':')) {
            return;
        }
        for branch in tokens.split(|token| is_punctuation(token, ',')).filter(|branch| !branch.is_empty()) {
            let mut path = before.clone();
            let mut renamed = None;
            let mut rest = branch.iter();
            while let Some(token) = rest.next() {
                match (word(token), token) {
                    (Some(word), _) if word == "as" => renamed = rest.next().and_then(self::word),
                    (Some(word), _) => path.push(word),
                    (None, TokenTree::Group(group)) => {
                        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.import(name, &inside, std::mem::take(&mut path), seen);
                    }
                    (None, token) if is_punctuation(token, '*') => self.note(name, std::mem::take(&mut path), Role::Glob(seen)),
                    _ => {}
                }
            }
            // The `self` in `use a::b::{self, C}` is `b`.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if let Some(last) = path.last() {
                let here = renamed.unwrap_or_else(|| last.clone());
                self.note(name, path, Role::Import(here, seen));
            }
        }
    }

    /// The files that define what a mention uses; none when it leads out of the crate, or only imports a module.
    pub(super) fn used_by(&self, from: &Name, mention: &Mention) -> BTreeSet<Name> {
        match (self.resolve(from, &mention.path, false, &mut BTreeSet::new()), &mention.role) {
            (Some(Target::Item(file)), _) => [file].into(),
            // Only attributes name a module to use it: `#[serde(with = "module")]` calls its functions.
            (Some(Target::Module(name)), Role::Use) => [self.modules[&name].file.clone()].into(),
            (Some(Target::Module(name)), Role::Glob(_)) => self.offered(&name, &mut BTreeSet::new()),
            (Some(Target::Module(_)), Role::Import(..)) | (None, _) => BTreeSet::new(),
        }
    }

    /// The files that define what a glob over a module imports.
    fn offered(&self, name: &Name, seen: &mut BTreeSet<Name>) -> BTreeSet<Name> {
        let module = &self.modules[name];
        let mut files: BTreeSet<Name> = (!module.items.is_empty()).then(|| module.file.clone()).into_iter().collect();
        if seen.insert(name.clone()) {
            let exported = |mention: &&Mention| matches!(mention.role, Role::Import(_, Seen::Elsewhere) | Role::Glob(Seen::Elsewhere));
            for import in module.mentions.iter().filter(exported) {
                match self.resolve(name, &import.path, true, &mut BTreeSet::new()) {
                    Some(Target::Item(file)) => drop(files.insert(file)),
                    Some(Target::Module(below)) if matches!(import.role, Role::Glob(_)) => files.extend(self.offered(&below, seen)),
                    _ => {}
                }
            }
        }
        files
    }

    /// The target of a path from a module. `strictly`: without items that only a macro may define. `seen` has the names that are being looked up,
    /// because imports may lead back to themselves.
    fn resolve(&self, from: &Name, path: &[String], strictly: bool, seen: &mut BTreeSet<(Name, String)>) -> Option<Target> {
        let mut at = from.clone();
        for (i, part) in path.iter().enumerate() {
            let below = [at.as_slice(), std::slice::from_ref(part)].concat();
            let last = i + 1 == path.len();
            match part.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                // The last name of a path may be an item that has the same name as a module.
                _ if self.modules.contains_key(&below) && !(last && self.modules[&at].items.contains(part)) => at = below,
                _ => return self.look_up(&at, &path[i..], strictly || i == 0, seen),
            }
        }
        Some(Target::Module(at))
    }

    /// The target of a path that begins with a name that a module defines or imports.
    fn look_up(&self, at: &Name, path: &[String], strictly: bool, seen: &mut BTreeSet<(Name, String)>) -> Option<Target> {
        let module = &self.modules[at];
        if module.items.contains(&path[0]) {
            return Some(Target::Item(module.file.clone()));
        }
        if !seen.insert((at.clone(), path[0].clone())) {
            return None;
        }
        for import in module.mentions.iter().filter(|mention| matches!(&mention.role, Role::Import(name, _) if *name == path[0])) {
            if let Some(target) = self.resolve(at, &[&import.path, &path[1..]].concat(), strictly, seen) {
                return Some(target);
            }
        }
        for glob in module.mentions.iter().filter(|mention| matches!(mention.role, Role::Glob(_))) {
            if let Some(target) = self.resolve(at, &[&glob.path, path].concat(), true, seen) {
                return Some(target);
            }
        }
        (!strictly).then(|| Target::Item(module.file.clone()))
    }
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(ident) = token { Some(ident.to_string()) } else { None }
}

fn is_punctuation(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punctuation) if punctuation.as_char() == wanted)
}

/// The path that begins at a word, without generic arguments, and where it ends.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    // A path after a colon belongs to another crate or to a type; a word after a point is a method or a field.
    let foreign = at > 1 && (is_punctuation(&tokens[at - 1], ':') && is_punctuation(&tokens[at - 2], ':'));
    let mut path = Vec::new();
    while let Some(part) = tokens.get(at).and_then(word) {
        path.push(part);
        at += 1;
        let colons = tokens.get(at..at + 2).is_some_and(|two| two.iter().all(|token| is_punctuation(token, ':')));
        if !colons || tokens.get(at + 2).and_then(word).is_none() {
            break;
        }
        at += 2;
    }
    (if foreign { Vec::new() } else { path }, at)
}

/// Whether this is `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_for_tests(attribute: &Group) -> bool {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let words = |tokens: &[TokenTree]| tokens.first().and_then(word);
    match (words(&tokens).as_deref(), tokens.get(1)) {
        (Some("test"), None) => true,
        (Some("cfg"), Some(TokenTree::Group(conditions))) => requires_test(conditions),
        _ => false,
    }
}

fn requires_test(conditions: &Group) -> bool {
    let tokens: Vec<TokenTree> = conditions.stream().into_iter().collect();
    tokens.split(|token| is_punctuation(token, ',')).any(|condition| {
        match (condition.first().and_then(word).as_deref(), condition.get(1)) {
            (Some("test"), None) => true,
            (Some("all"), Some(TokenTree::Group(inside))) => requires_test(inside),
            _ => false,
        }
    })
}

/// Where the item ends that begins at a token: with a semicolon or a block.
fn after_item(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punctuation(token, ';'),
    };
    (at..tokens.len()).find(|i| ends(&tokens[*i])).map_or(tokens.len(), |end| end + 1)
}

/// The strings of an attribute. Comments are attributes, too, and name nothing.
fn literals(attribute: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    if tokens.first().and_then(word).is_some_and(|name| name == "doc") {
        return Vec::new();
    }
    let strings = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => literals(group.stream()),
        TokenTree::Literal(literal) => vec![literal.to_string()].into_iter().filter(|text| text.contains("::")).collect(),
        _ => Vec::new(),
    });
    strings.flatten().collect()
}
