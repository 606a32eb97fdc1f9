//! Packages of Debian (deb(5)): an `ar` archive of the format's version, what dpkg reads, and the files.
//!
//! They are written here and not by dpkg-deb, whose bytes depend on its version and on that of its compressor.

use md5::{Digest as _, Md5};

use anyhow::Result;

use super::archive::{BEST, gzip, tar_gz};
use super::contents::Package;
use super::release::Release;
use super::target::Names;
use super::tree::{Node, Tree, hexadecimal};
use crate::folders::project_folder;

/// Where Debian has completions of zsh that packages bring.
pub(super) const ZSH: &str = "usr/share/zsh/vendor-completions";
/// Columns of a description.
const WIDTH: usize = 79;

/// A package as a file.
///
/// # Errors
/// When a part of it cannot be read.
pub(super) fn deb(release: &Release, names: &Names, package: &Package) -> Result<Vec<u8>> {
    let name = package.name;
    let mut files = package.tree.clone();
    files.file(format!("usr/share/doc/{name}/copyright"), copyright(&std::fs::read_to_string(project_folder().join("LICENSE-MIT"))?));
    files.file(format!("usr/share/doc/{name}/changelog.Debian.gz"), gzip(changelog(release, name)?.as_bytes(), BEST)?);
    files.file(format!("usr/share/doc/{name}/changelog.gz"), gzip(&std::fs::read(project_folder().join("CHANGELOG.md"))?, BEST)?);
    files.file(format!("usr/share/lintian/overrides/{name}"), overrides(package, names));
    let mut control = Tree::default();
    control.file("control", fields(release, names, package, &files));
    control.file("md5sums", sums(&files));
    if package.units {
        let script = |file: &str| std::fs::read_to_string(project_folder().join("packaging/scripts").join(file));
        let when = |condition: &str, text: &str| format!("if [ \"$1\" = {condition} ]; then\n{text}fi\n");
        let program = |text: String| format!("#!/bin/sh\nset -e\n{text}");
        control.program("postinst", program(when("configure", &script("after-install.sh")?)));
        control.program("prerm", program(when("remove", &script("before-removal.sh")?)));
        // The results of scheduled checks stay until the package is purged, and what systemd keeps for a timer that is persistent.
        control.program(
            "postrm",
            program(
                script("after-removal.sh")? + &when("purge", "    rm -rf /var/lib/memgauge /var/lib/systemd/timers/stamp-memgauge.timer\n"),
            ),
        );
    }
    let members: [(&str, Vec<u8>); 3] = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&control.below("."), release.epoch)?),
        ("data.tar.gz", tar_gz(&files.below("."), release.epoch)?),
    ];
    Ok(ar(&members, release.epoch))
}

/// What lintian would warn of, and is meant.
fn overrides(package: &Package, names: &Names) -> String {
    let name = package.name;
    // One program runs on every release of Debian; for x86-64 it is one that can be loaded anywhere, which lintian takes for a library.
    let linked = if names.deb == "amd64" { "shared-library-lacks-prerequisites" } else { "statically-linked-binary" };
    // No bug of Debian's asked for it.
    let mut overrides = vec![linked, "initial-upload-closes-no-bugs"];
    // Without debhelper; a machine may have no systemd.
    overrides.extend(package.units.then_some("maintainer-script-calls-systemctl"));
    overrides.iter().map(|tag| format!("{name}: {tag}\n")).collect()
}

/// The common form of ar(5): a line of 60 characters before each member, which begins at an even position.
fn ar(members: &[(&str, Vec<u8>)], epoch: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        archive.extend(format!("{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len()).bytes());
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

/// The file `control`.
fn fields(release: &Release, names: &Names, package: &Package, files: &Tree) -> String {
    let kib = files.bytes().div_ceil(1024);
    let Release { version, maintainer, .. } = release;
    let homepage = release.homepage.as_ref().map_or_else(String::new, |url| format!("Homepage: {url}\n"));
    let Package { name, summary, description, .. } = package;
    let arch = names.deb;
    let text: String = wrapped(description, WIDTH - 1).iter().map(|line| format!(" {line}\n")).collect();
    format!(
        "Package: {name}\nVersion: {version}-1\nArchitecture: {arch}\nMaintainer: {maintainer}\nInstalled-Size: {kib}\nSection: utils\n\
         Priority: optional\n{homepage}Description: {summary}\n{text}"
    )
}

/// The words of a text in lines of at most so many columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn sums(files: &Tree) -> String {
    let sum = |(path, node): (&str, &Node)| match node {
        Node::File { bytes, .. } => Some(format!("{}  {path}\n", hexadecimal(&Md5::digest(bytes)))),
        _ => None,
    };
    files.files().filter_map(sum).collect()
}

fn changelog(release: &Release, name: &str) -> Result<String> {
    let Release { version, maintainer, .. } = release;
    let time = release.time("%a, %d %b %Y %H:%M:%S +0000")?;
    Ok(format!(
        "{name} ({version}-1) unstable; urgency=medium\n\n  * Release {version}; changelog.gz says what changed.\n\n -- {maintainer}  {time}\n"
    ))
}

/// The file `copyright`, with the text of the MIT license; Debian has that of the other.
fn copyright(mit: &str) -> String {
    let indented = |text: &str| -> String {
        text.trim().lines().map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") }).collect()
    };
    let permission = mit.split_once("\n\n").map_or(mit, |(_, permission)| permission);
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: memgauge\n\
         Comment: The licences of the libraries that are part of the program are in THIRD-PARTY.txt.gz.\n\n\
         Files: *\nCopyright: 2026 The memgauge contributors\nLicense: Apache-2.0 or Expat\n\n\
         License: Apache-2.0\n The text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n{}",
        indented(permission)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_begin_at_even_positions() {
        let archive = ar(&[("a", b"123".to_vec()), ("b", b"45".to_vec())], 1_700_000_000);
        let text = String::from_utf8(archive).unwrap();
        assert_eq!(text.len(), 8 + 60 + 4 + 60 + 2);
        assert_eq!(&text[8..8 + 60], "a               1700000000  0     0     100644  3         `\n");
        assert_eq!(&text[68..73], "123\nb");
    }

    #[test]
    fn a_homepage_is_named_where_there_is_one() {
        let package = Package { name: "a", summary: "does", description: "It does.", tree: Tree::default(), units: false };
        let names = Names { deb: "amd64", rpm: "x86_64", oci: "amd64", wheel: "any" };
        let release = |homepage| Release { version: "1.0.0", epoch: 0, maintainer: "A <a@b.test>".to_owned(), homepage };
        let said = |homepage: Option<&str>| fields(&release(homepage.map(str::to_owned)), &names, &package, &Tree::default());
        assert!(said(Some("https://a.test")).contains("\nPriority: optional\nHomepage: https://a.test\nDescription: does\n"));
        assert!(!said(None).contains("Homepage"));
    }

    #[test]
    fn lines_are_no_longer_than_asked() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
    }

    #[test]
    fn the_licence_is_indented() {
        let text = copyright("Copyright (c)\n\nPermission\nis\n\nTHE SOFTWARE\n");
        assert!(text.ends_with("License: Expat\n Permission\n is\n .\n THE SOFTWARE\n"), "{text}");
    }
}
