//! Trees as archives whose bytes depend on nothing but their files and the time of the release.

use std::io::{Cursor, Write};

use anyhow::{Result, bail};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::release::Release;
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

/// A zip of a tree, for systems that have no tar.
///
/// # Errors
/// When there is a link in it: not every reader makes links of such entries.
pub(super) fn zip_of(tree: &Tree, release: &Release) -> Result<Vec<u8>> {
    let mut files = Vec::new();
    for (path, node) in tree.files() {
        let Node::File { bytes, executable } = node else { bail!("{path} is a link, which a zip cannot have") };
        files.push((path, bytes.as_slice(), *executable));
    }
    zip(files.into_iter(), zip_time(&release.time("%Y %m %d %H %M %S")?)?)
}

/// A time as this format has it, which knows no time zone: that of UTC is the same wherever it is packed.
fn zip_time(time: &str) -> Result<DateTime> {
    let parts = time.split(' ').map(str::parse).collect::<Result<Vec<u16>, _>>()?;
    let &[year, month, day, hour, minute, second] = parts.as_slice() else { bail!("'{time}' is no date with a time") };
    // The format counts in steps of two seconds and does not know leap seconds.
    let small = |number: u16| u8::try_from(number);
    Ok(DateTime::from_date_and_time(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second.min(59) & !1)?)?)
}

/// A zip of files in this order: path, content, and whether it is a program.
///
/// # Errors
/// None that memory would not end first.
pub(super) fn zip<'a>(files: impl Iterator<Item = (&'a str, &'a [u8], bool)>, time: DateTime) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, executable) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            .last_modified_time(time)
            .unix_permissions(if executable { 0o755 } else { 0o644 });
        archive.start_file(name, options)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
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

    #[test]
    fn a_zip_has_the_time_of_the_release() {
        let release = |epoch| Release { version: "1.2.3", epoch, maintainer: "A <a@b>".to_owned(), homepage: None };
        let mut tree = Tree::default();
        tree.program("x/a.exe", "1");
        tree.file("x/docs/b.md", "23");
        let packed = zip_of(&tree, &release(1_700_000_001)).unwrap();
        assert_eq!(packed, zip_of(&tree, &release(1_700_000_001)).unwrap());
        assert_ne!(packed, zip_of(&tree, &release(1_700_000_003)).unwrap());
        let mut archive = ::zip::ZipArchive::new(Cursor::new(packed)).unwrap();
        let mut found = Vec::new();
        for i in 0..archive.len() {
            let mut file = archive.by_index(i).unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(file.last_modified().unwrap().to_string(), "2023-11-14 22:13:20");
            found.push((file.name().to_owned(), file.unix_mode().unwrap() & 0o777, text));
        }
        let expected = [("x/a.exe", 0o755, "1"), ("x/docs/b.md", 0o644, "23")];
        assert_eq!(found, expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned())));
        tree.link("x/c", "a.exe");
        assert!(zip_of(&tree, &release(1_700_000_001)).unwrap_err().to_string().contains("x/c is a link"));
        assert!(zip_time("1970 01 01 00 00 00").is_err(), "the format begins with 1980");
    }
}
