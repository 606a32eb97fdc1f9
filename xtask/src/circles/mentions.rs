//! The paths that an item's code mentions: in `use` declarations, in types, expressions, patterns and attributes, and in macros'
//! arguments.

use syn::buffer::Cursor;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ImplItem, Item, ItemUse, Lit, Macro, Meta, MetaList, Token, UseTree, VisRestricted, Visibility};

/// A path that code mentions.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    /// Its segments, without generic arguments.
    pub(super) path: Vec<String>,
    pub(super) role: Role,
}

/// What the path does where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// Code uses what it names.
    Use,
    /// A `use` declaration gives this name to what it names; `exported` when other modules can see that.
    Import { name: String, exported: bool },
    /// A `use` declaration with a glob imports everything of the module.
    Glob { exported: bool },
}

/// Paths of two and more segments that an item mentions, and all of its `use` declarations. Code for tests is left out.
pub(super) fn mentions_in(item: &Item) -> Vec<Mention> {
    let mut collector = Collector::default();
    collector.visit_item(item);
    collector.mentions
}

/// Whether an item is compiled for tests only.
pub(super) fn is_test_only(item: &Item) -> bool {
    let attributes = match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(is_test_attribute)
}

/// Whether this is `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_test_attribute(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && requires_test(list),
        Meta::NameValue(_) => false,
    }
}

/// Whether `cfg(…)` or `all(…)` has `test` among its conditions.
fn requires_test(list: &MetaList) -> bool {
    let conditions = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default();
    conditions.iter().any(|condition| match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("all") && requires_test(list),
        Meta::NameValue(_) => false,
    })
}

/// The string of `#[name = "string"]`.
pub(super) fn value_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[derive(Default)]
struct Collector {
    mentions: Vec<Mention>,
}

impl Collector {
    /// Notes a path that code uses. A name alone is local or imported; the import is noted where it stands.
    fn add_use(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.mentions.push(Mention { path, role: Role::Use });
        }
    }

    fn add_tree(&mut self, tree: &UseTree, mut path: Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(branch) => {
                path.push(branch.ident.to_string());
                self.add_tree(&branch.tree, path, exported);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, path.clone(), exported)),
            UseTree::Glob(_) => self.mentions.push(Mention { path, role: Role::Glob { exported } }),
            UseTree::Name(leaf) => self.add_import(path, leaf.ident.to_string(), None, exported),
            UseTree::Rename(leaf) => self.add_import(path, leaf.ident.to_string(), Some(leaf.rename.to_string()), exported),
        }
    }

    fn add_import(&mut self, mut path: Vec<String>, leaf: String, rename: Option<String>, exported: bool) {
        // The `self` in `use a::b::{self, C}` is `b`; elsewhere it would be the first segment.
        if leaf != "self" || path.is_empty() {
            path.push(leaf);
        }
        let name = rename.or_else(|| path.last().cloned()).unwrap_or_default();
        self.mentions.push(Mention { path, role: Role::Import { name, exported } });
    }

    /// Notes the paths among tokens that `syn` leaves unparsed, and those in strings, where attributes have paths.
    fn add_tokens(&mut self, input: ParseStream<'_>, strings: bool) -> syn::Result<()> {
        input.step(|cursor| Ok(((), self.walk_tokens(*cursor, strings))))
    }

    /// Walks to the end of a group of tokens.
    fn walk_tokens<'c>(&mut self, mut cursor: Cursor<'c>, strings: bool) -> Cursor<'c> {
        let mut path = Vec::new();
        let mut colons = 0;
        while !cursor.eof() {
            if let Some((ident, rest)) = cursor.ident() {
                if colons != 2 {
                    self.add_use(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                (cursor, colons) = (rest, 0);
                continue;
            }
            if let Some((punctuation, rest)) = cursor.punct()
                && punctuation.as_char() == ':'
            {
                (cursor, colons) = (rest, colons + 1);
                continue;
            }
            self.add_use(std::mem::take(&mut path));
            colons = 0;
            if let Some((inside, _, _, rest)) = cursor.any_group() {
                self.walk_tokens(inside, strings);
                cursor = rest;
            } else if let Some((literal, rest)) = cursor.literal() {
                if strings && let Ok(named) = syn::parse_str::<syn::Path>(literal.to_string().trim_matches('"')) {
                    self.visit_path(&named);
                }
                cursor = rest;
            } else if let Some((_, rest)) = cursor.token_tree() {
                cursor = rest;
            }
        }
        self.add_use(path);
        cursor
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !attributes.iter().any(is_test_attribute) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.add_tree(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    /// `pub(in path)` uses nothing of the module that it names.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add_use(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast Macro) {
        self.visit_path(&invocation.path);
        // Reading tokens one by one cannot fail.
        let _ = Parser::parse2(|input: ParseStream<'_>| self.add_tokens(input, false), invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            let _ = Parser::parse2(|input: ParseStream<'_>| self.add_tokens(input, true), list.tokens.clone());
        }
    }
}
