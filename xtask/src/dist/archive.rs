//! Trees as archives whose bytes depend on nothing but their files and the time of the release.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::tree::{Node, Tree};

/// The archive of a tree.
///
/// # Errors
/// When a path is too long for the format.
pub(super) fn tar(tree: &Tree, epoch: u64) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (path, node) in tree.entries() {
        let mut header = Header::new_ustar();
        header.set_mode(node.mode());
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        let (kind, bytes): (_, &[u8]) = match node {
            Node::Folder => (EntryType::Directory, &[]),
            Node::File { bytes, .. } => (EntryType::Regular, bytes),
            Node::Link(to) => {
                header.set_link_name(to)?;
                (EntryType::Symlink, &[])
            }
        };
        header.set_entry_type(kind);
        header.set_path(if kind == EntryType::Directory { format!("{path}/") } else { path.to_owned() })?;
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes)?;
    }
    Ok(builder.into_inner()?)
}

/// The same, compressed.
///
/// # Errors
/// When a path is too long for the format.
pub(super) fn tar_gz(tree: &Tree, epoch: u64) -> Result<Vec<u8>> {
    gzip(&tar(tree, epoch)?, FAST)
}

/// For programs: the best level takes three times as long for half of a percent.
pub(super) const FAST: Compression = Compression::new(6);
/// For texts: Debian asks for it.
pub(super) const BEST: Compression = Compression::new(9);

/// Compresses bytes, without a name or a time.
///
/// # Errors
/// None that memory would not end first.
pub(super) fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    // Unix, whatever this machine is.
    let mut encoder = GzBuilder::new().mtime(0).operating_system(3).write(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_archive_has_fixed_owners_and_times() {
        let mut tree = Tree::default();
        tree.program("bin/a", "1");
        tree.link("bin/b", "a");
        let packed = tar_gz(&tree, 1_700_000_000).unwrap();
        assert_eq!(packed, tar_gz(&tree, 1_700_000_000).unwrap());
        let mut found = Vec::new();
        for entry in ::tar::Archive::new(flate2::read::GzDecoder::new(&packed[..])).entries().unwrap() {
            let mut entry = entry.unwrap();
            let (header, mut text) = (entry.header().clone(), String::new());
            entry.read_to_string(&mut text).unwrap();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.username().unwrap()), (1_700_000_000, 0, Some("root")));
            found.push((entry.path().unwrap().display().to_string(), header.mode().unwrap(), text));
        }
        let expected = [("bin/", 0o755, ""), ("bin/a", 0o755, "1"), ("bin/b", 0o777, "")];
        assert_eq!(found, expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned())));
    }
}
