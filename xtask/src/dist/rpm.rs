//! Packages of Fedora, openSUSE and others, by rpmbuild.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::{Package, Sources};
use super::release::Release;
use super::target::Names;
use super::tree::{Node, Tree};
use crate::folders::{project_folder, target_folder};
use crate::programs::{find_program, run};

/// Where these distributions have completions of zsh that packages bring.
pub(super) const ZSH: &str = "usr/share/zsh/site-functions";
/// What makes packages.
const RPMBUILD: &str = "rpmbuild";
/// Settings without which a package would say when and where it was made, or be changed after it was put together: programs are stripped
/// already and have no debugging symbols to be found.
const SETTINGS: &[&str] = &[
    "_buildhost localhost",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "_binary_payload w6.gzdio",
    "_build_id_links none",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
];

/// Whether packages can be made here.
pub(super) fn can_be_made() -> bool {
    find_program(RPMBUILD).is_some()
}

/// A package as a file.
///
/// # Errors
/// When rpmbuild fails.
pub(super) fn rpm(release: &Release, names: &Names, package: &Package, sources: &Sources<'_>) -> Result<Vec<u8>> {
    let mut files = package.tree.clone();
    // Those of what the program contains are among the documents of every package.
    for (name, bytes) in sources.licences().filter(|(name, _)| name.starts_with("LICENSE")) {
        files.file(format!("usr/share/licenses/{}/{name}", package.name), bytes);
    }
    let folder = target_folder().join("dist-rpm");
    let _ = fs::remove_dir_all(&folder);
    let staged = folder.join("staged");
    write(&files, &staged)?;
    let spec = folder.join("package.spec");
    fs::write(&spec, describe(release, package, &files, &staged)?)?;
    let mut command = Command::new(RPMBUILD);
    command.args(["-bb", "--quiet", "--target", &format!("{}-linux", names.rpm)]).arg("--buildroot").arg(folder.join("root"));
    command.env("SOURCE_DATE_EPOCH", release.epoch.to_string()).env("LC_ALL", "C");
    for setting in SETTINGS {
        command.args(["--define", setting]);
    }
    run(command.arg("--define").arg(format!("_topdir {}", folder.display())).arg(&spec))?;
    let made = folder.join("RPMS").join(names.rpm).join(format!("{}-{}-1.{}.rpm", package.name, release.version, names.rpm));
    let bytes = fs::read(&made).with_context(|| format!("rpmbuild made no {}", made.display()))?;
    fs::remove_dir_all(&folder)?;
    Ok(bytes)
}

/// Writes a tree to a folder.
fn write(files: &Tree, folder: &Path) -> Result<()> {
    for (path, node) in files.entries() {
        let path = folder.join(path);
        match node {
            Node::Folder => fs::create_dir_all(&path)?,
            Node::Link(to) => symlink(to, &path)?,
            Node::File { bytes, .. } => {
                fs::write(&path, bytes)?;
                fs::set_permissions(&path, Permissions::from_mode(node.mode()))?;
            }
        }
    }
    Ok(())
}

/// The file that rpmbuild follows.
fn describe(release: &Release, package: &Package, files: &Tree, staged: &Path) -> Result<String> {
    let Package { name, summary, description, .. } = package;
    let Release { version, maintainer, .. } = release;
    // A percent sign begins a macro, in a scriptlet too.
    let plain = |text: &str| text.replace('%', "%%");
    let homepage = release.homepage.as_ref().map_or_else(String::new, |url| format!("URL: {}\n", plain(url)));
    let (summary, description, maintainer) = (plain(summary), plain(description), plain(maintainer));
    let mut spec = format!(
        "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: {summary}\nLicense: Apache-2.0 OR MIT\n{homepage}Packager: {maintainer}\nAutoReqProv: no\n\n\
         %description\n{description}\n\n%install\ncp -a {}/. %{{buildroot}}/\n",
        staged.display()
    );
    if package.units {
        let script =
            |file: &str| -> Result<String> { Ok(plain(&fs::read_to_string(project_folder().join("packaging/scripts").join(file))?)) };
        // The number of packages of this name that stay: 0 when it is removed, 1 when it is updated.
        spec += &format!("\n%post\n{}", script("after-install.sh")?);
        spec += &format!("\n%preun\nif [ \"$1\" -eq 0 ]; then\n{}fi\n", script("before-removal.sh")?);
        spec += &format!("\n%postun\n{}", script("after-removal.sh")?);
    }
    spec += "\n%files\n%defattr(-,root,root,0755)\n";
    for (path, node) in files.files() {
        let kind = match path {
            path if path.starts_with("usr/share/licenses/") => "%license ",
            path if path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/") => "%doc ",
            _ => "",
        };
        spec += &format!("%attr(0{:o},root,root) {kind}/{path}\n", node.mode());
    }
    for own in [format!("/usr/share/licenses/{name}"), format!("/usr/share/doc/{name}")] {
        spec += &format!("%dir {own}\n");
    }
    if package.units {
        spec += "%dir /usr/share/memgauge\n%dir /usr/share/memgauge/schema\n";
    }
    Ok(spec)
}
