//! A tree of files as a package has it, whatever its format: sorted, with root as the owner of all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Files by their paths, without a leading slash.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree(BTreeMap<String, Node>);

/// The entry at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File { bytes: Vec<u8>, executable: bool },
    Link(String),
}

impl Node {
    /// Its permissions.
    pub(super) const fn mode(&self) -> u32 {
        match self {
            Self::Folder | Self::File { executable: true, .. } => 0o755,
            Self::File { executable: false, .. } => 0o644,
            Self::Link(_) => 0o777,
        }
    }
}

impl Tree {
    pub(super) fn file(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Node::File { bytes: bytes.into(), executable: false });
    }

    pub(super) fn program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Node::File { bytes: bytes.into(), executable: true });
    }

    pub(super) fn link(&mut self, path: impl Into<String>, to: &str) {
        self.0.insert(path.into(), Node::Link(to.to_owned()));
    }

    /// The same, in a folder.
    pub(super) fn below(&self, folder: &str) -> Self {
        Self(self.0.iter().map(|(path, node)| (format!("{folder}/{path}"), node.clone())).collect())
    }

    /// The files and links, sorted.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// All entries, each folder before its contents.
    pub(super) fn entries(&self) -> Vec<(&str, &Node)> {
        let folders: BTreeSet<&str> = self.0.keys().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at])).collect();
        let mut entries: Vec<_> = folders.into_iter().map(|path| (path, &Node::Folder)).chain(self.files()).collect();
        entries.sort_unstable_by_key(|(path, _)| *path);
        entries
    }
}

/// The SHA-256 of bytes, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_their_files() {
        let mut tree = Tree::default();
        tree.program("usr/bin/a", "1");
        tree.link("usr/bin/b", "a");
        tree.file("usr/share/c", "23");
        let entries = tree.below("x");
        let paths: Vec<&str> = entries.entries().iter().map(|(path, _)| *path).collect();
        assert_eq!(paths, ["x", "x/usr", "x/usr/bin", "x/usr/bin/a", "x/usr/bin/b", "x/usr/share", "x/usr/share/c"]);
        assert_eq!(tree.files().count(), 3);
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
