//! `cargo xtask dist`: everything that a release consists of, in `dist/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::folders::project_folder;

mod archive;
mod build;
mod changelog;
mod check;
mod contents;
mod crates;
mod image;
mod linked;
mod nfpm;
mod release;
mod sbom;
mod target;
mod tree;
mod wheel;

use build::{Origin, Programs};
use contents::Sources;
use nfpm::Kind;
use release::Release;
use target::Target;

pub(crate) use release::DistArgs;

pub(crate) fn dist(args: &DistArgs) -> Result<()> {
    let begun = Instant::now();
    let release = Release::find(args.maintainer.clone())?;
    let (mut targets, mut programs, mut left_out) = (Vec::new(), BTreeMap::new(), Vec::new());
    for target in target::chosen(&args.arches)? {
        match Origin::find(target, args.programs.as_deref()) {
            Ok(origin) => {
                programs.insert(target.name, origin.programs()?);
                targets.push(target);
            }
            // Who names it wants it.
            Err(why) if args.arches.is_empty() && target.linux().is_none() => left_out.push(format!("{why:#}")),
            Err(why) => return Err(why),
        }
    }
    let packages = pack(&release, &targets, &programs)?;
    let out = project_folder().join(&args.out);
    write(&out, &packages)?;
    for (name, bytes) in &packages {
        println!("{:>11}  {name}", grouped(bytes.len()));
    }
    println!("{} files in {}, in {:.1} s", packages.len(), out.display(), begun.elapsed().as_secs_f64());
    let lacking = nfpm::missing().filter(|_| targets.iter().any(|target| target.linux().is_some()));
    left_out.iter().for_each(|why| println!("no package for Windows was made: {why}"));
    for (name, programs) in &programs {
        if !programs.auditable {
            println!(
                "{name}: not auditable: cargo-auditable is not installed, or did not build these programs (cargo install cargo-auditable)"
            );
        }
    }
    let mut checks = Ok(());
    if args.check {
        let packed_again = pack(&release, &targets, &programs)?;
        checks = check::check(&check::Checked {
            args,
            out: &out,
            release: &release,
            targets: &targets,
            programs: &programs,
            packages: &packages,
            packed_again: &packed_again,
        });
    }
    // At the end, where it is read.
    if let Some(why) = lacking {
        println!("no deb and no rpm was made: {why}");
    }
    checks
}

/// Every package by its file name, and their checksums.
fn pack(release: &Release, targets: &[&'static Target], programs: &BTreeMap<&str, Programs>) -> Result<BTreeMap<String, Vec<u8>>> {
    let (mut packages, can_be_made) = (BTreeMap::new(), nfpm::missing().is_none());
    for target in targets {
        let programs = &programs[target.name];
        let crates = crates::linked(programs.triple)?;
        let sources = Sources::read(release, programs, &crates)?;
        let version = release.version;
        let mut add = |name: String, bytes: Vec<u8>| drop(packages.insert(name, bytes));
        let folder = format!("memgauge-{version}-{}", target.platform());
        let Some(names) = target.linux() else {
            add(format!("{folder}.zip"), archive::zip_of(&sources.windows_archive().below(&folder), release)?);
            add(format!("{folder}.cdx.json"), sbom::sbom(release, programs, &crates)?);
            continue;
        };
        add(format!("{folder}.tar.gz"), archive::tar_gz(&sources.archive().below(&folder), release.epoch)?);
        for kind in [Kind::Deb, Kind::Rpm].into_iter().filter(|_| can_be_made) {
            for package in sources.packages(kind.zsh())? {
                add(kind.file_name(package.name, version, names), nfpm::package(kind, release, names, &package, &sources)?);
            }
        }
        add(format!("memgauge-{version}-{}-oci.tar", target.name), image::image(release, names, &sources)?);
        let (name, wheel) = wheel::wheel(release, names, &sources)?;
        add(name, wheel);
        add(format!("memgauge-{version}-{}.cdx.json", target.name), sbom::sbom(release, programs, &crates)?);
    }
    let sums: String = packages.iter().map(|(name, bytes)| format!("{}  {name}\n", tree::sha256(bytes))).collect();
    packages.insert("SHA256SUMS".to_owned(), sums.into_bytes());
    Ok(packages)
}

/// Writes the packages, and removes those of earlier versions.
fn write(out: &Path, packages: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_package(&name) && !packages.contains_key(&name) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    for (name, bytes) in packages {
        let path = out.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Whether a release of some version has a package of this name. Other files in the folder stay.
fn is_package(name: &str) -> bool {
    const ENDINGS: [&str; 7] = [".tar.gz", ".deb", ".rpm", "-oci.tar", ".whl", ".zip", ".cdx.json"];
    let Some(rest) = name.strip_prefix("memgauge").map(|rest| rest.strip_prefix("-mlc").unwrap_or(rest)) else { return false };
    let Some(rest) = rest.strip_prefix(['-', '_']) else { return false };
    let version = rest.split(['-', '_']).next().unwrap_or_default();
    let numbers = version.split('.').take_while(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).count();
    numbers == 3 && version.split('.').count() == 3 && rest.len() > version.len() && ENDINGS.iter().any(|ending| rest.ends_with(ending))
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_other_versions_are_removed() {
        let folder = std::env::temp_dir().join(format!("memgauge-dist-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("memgauge-0.0.9-x86_64-folder.tar.gz")).unwrap();
        let packages = |version: &str| -> BTreeMap<String, Vec<u8>> {
            let names =
                ["-V-x86_64-linux.tar.gz", "_V-1_amd64.deb", "-mlc_V-1_amd64.deb", "-V-1.x86_64.rpm", "-mlc-V-1.x86_64.rpm"].into_iter();
            let names =
                names.chain(["-V-x86_64-oci.tar", "-V-py3-none-manylinux_2_17_x86_64.whl", "-V-x86_64.cdx.json", "-V-x86_64-windows.zip"]);
            names.map(|name| (format!("memgauge{}", name.replace('V', version)), b"of a release".to_vec())).collect()
        };
        let mine = [
            "memgauge-my-results.json",
            "memgauge.json",
            "memgauge-2026-11-26.tar.gz",
            "memgauge-0.1.0-of-n1.json",
            "memgauge-0.1.0",
            "memgauge",
            "memgauge-mlc.txt",
            "memgauge-fleet-0.1.0-x86_64.tar.gz",
            "memgauged-0.1.0-x86_64.tar.gz",
            "notes.txt",
        ];
        mine.iter().for_each(|name| fs::write(folder.join(name), "mine").unwrap());
        let names = || -> Vec<String> {
            let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.retain(|name| !mine.contains(&name.as_str()) && !name.contains("folder"));
            names.sort_unstable();
            names
        };
        for version in ["0.1.0", "0.2.0", "10.20.30"] {
            write(&folder, &packages(version)).unwrap();
            assert_eq!(names(), packages(version).into_keys().collect::<Vec<_>>(), "those of {version}, and no others");
        }
        assert!(mine.iter().all(|name| fs::read(folder.join(name)).is_ok_and(|bytes| bytes == b"mine")));
        fs::remove_dir_all(folder).unwrap();
    }
}
