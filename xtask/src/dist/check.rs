//! `cargo xtask dist --check`: the packages as their users meet them: compared, unpacked, installed, run and removed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::build::Programs;
use super::target::Target;
use crate::folders::project_folder;
use crate::programs::{find_program, run};

mod booted;
mod crates;
mod image;
mod installed;
mod listed;
mod subject;
mod units;
mod wheels;
mod windows;

use subject::Outcome::{NotChecked, Passed};
use subject::{Outcome, missing, scratch};

pub(super) use subject::Checked;

/// Runs all checks.
///
/// # Errors
/// When one failed.
pub(super) fn check(checked: &Checked<'_>) -> Result<()> {
    let (begun, mut totals) = (Instant::now(), Totals::default());
    totals.run("packed_twice_is_byte_for_byte_the_same", || packed_twice(checked));
    totals.run("checksums_are_right", || checksums(checked));
    totals.run("crates_are_packed_with_their_licences", crates::packed);
    totals.run("programs_list_the_crates_that_they_are_made_of", || crates::listed_in_programs(checked));
    // The packages may be those of one system only.
    if checked.targets.iter().any(|target| target.linux().is_some()) {
        totals.run("programs_of_the_archives_run", || archives(checked));
        totals.run("debs_list_what_is_documented", || listed::debs(checked));
        totals.run("rpms_list_what_is_documented", || listed::rpms(checked));
        totals.run("lintian_finds_nothing", || lintian(checked));
        totals.run("units_of_systemd_are_valid_and_confined", || units::verified(checked));
        totals.run("deb_is_installed_in_a_bare_root_run_and_removed", || here(checked, installed::deb_in_bare_root));
        totals.run("rpm_is_installed_in_a_bare_root_run_and_removed", || here(checked, installed::rpm_in_bare_root));
        totals.run("images_are_whole", || image::whole(checked));
        totals.run("image_runs_in_podman", || here(checked, image::runs));
        totals.run("wheel_is_installed_used_and_removed", || here(checked, wheels::used));
        totals.run("wheels_are_what_pip_takes_for_each_instruction_set", || wheels::taken_by_pip(checked));
    }
    if let Some(target) = checked.targets.iter().find(|target| target.linux().is_none()) {
        totals.run("zip_for_windows_is_whole_and_its_programs_run", || windows::zip(checked, target));
    }
    if checked.args.full {
        totals.run("bills_of_materials_fit_the_schema", || bills_of_materials(checked));
        totals.run("deb_is_installed_in_a_fresh_debian", || here(checked, installed::deb_in_debian));
        totals.run("built_elsewhere_is_byte_for_byte_the_same", || built_elsewhere(checked));
    }
    totals.end(begun)
}

/// Does a check of packages that are installed and run, if one is for this machine.
fn here(checked: &Checked<'_>, check: impl FnOnce(&Checked<'_>) -> Result<Outcome>) -> Result<Outcome> {
    if checked.own().is_err() {
        return Ok(NotChecked(format!("no package is for {}, this machine's instruction set", std::env::consts::ARCH)));
    }
    check(checked)
}

/// How many checks passed, failed, and could not be done.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    not_checked: Vec<String>,
}

impl Totals {
    fn run(&mut self, name: &str, check: impl FnOnce() -> Result<Outcome>) {
        let begun = Instant::now();
        let outcome = match check() {
            Ok(Passed) => {
                self.passed += 1;
                "ok".to_owned()
            }
            Ok(NotChecked(why)) => {
                self.not_checked.push(format!("{name}: {why}"));
                "not checked".to_owned()
            }
            Err(error) => {
                self.failed += 1;
                format!("FAILED\n    {error:#}")
            }
        };
        println!("test dist::{name} ... {outcome} ({:.1} s)", begun.elapsed().as_secs_f64());
    }

    fn end(self, begun: Instant) -> Result<()> {
        self.not_checked.iter().for_each(|what| println!("not checked: {what}"));
        println!("{} passed, {} failed, in {:.1} s", self.passed, self.failed, begun.elapsed().as_secs_f64());
        ensure!(self.failed == 0, "packages are not as they should be");
        Ok(())
    }
}

fn packed_twice(checked: &Checked<'_>) -> Result<Outcome> {
    let differs = |(name, bytes): &(&String, &Vec<u8>)| checked.packed_again.get(*name) != Some(*bytes);
    let different: Vec<&str> = checked.packages.iter().filter(differs).map(|(name, _)| name.as_str()).collect();
    ensure!(different.is_empty(), "packed again, these differ: {}", different.join(", "));
    ensure!(checked.packages.len() == checked.packed_again.len(), "packed again, there are other files");
    Ok(Passed)
}

fn checksums(checked: &Checked<'_>) -> Result<Outcome> {
    let said = run(Command::new("sha256sum").args(["--strict", "--check", "SHA256SUMS"]).current_dir(checked.out))?;
    ensure!(
        said.lines().count() + 1 == checked.packages.len(),
        "SHA256SUMS names {} of {} files",
        said.lines().count(),
        checked.packages.len() - 1
    );
    Ok(Passed)
}

/// The command that runs a target's programs here, empty if they run by themselves; `None` if nothing runs them.
fn runner(target: &Target) -> Option<Vec<PathBuf>> {
    if target.runs_here() { Some(Vec::new()) } else { find_program(&format!("qemu-{}-static", target.name)).map(|emulator| vec![emulator]) }
}

fn archives(checked: &Checked<'_>) -> Result<Outcome> {
    let mut not_run = Vec::new();
    for target in checked.targets.iter().filter(|target| target.linux().is_some()) {
        let folder = scratch("archive")?;
        let name = format!("memgauge-{}-{}", checked.release.version, target.platform());
        run(Command::new("tar").arg("-xzf").arg(checked.out.join(format!("{name}.tar.gz"))).arg("-C").arg(&folder))?;
        for part in [
            "README.md",
            "CHANGELOG.md",
            "LICENSE-MIT",
            "THIRD-PARTY.txt",
            "man/memgauge.1",
            "man/mlc.1",
            "completions/_memgauge",
            "schema/result.schema.json",
        ] {
            ensure!(folder.join(&name).join(part).is_file(), "{name} has no {part}");
        }
        let Some(with) = runner(target) else {
            not_run.push(target.name);
            continue;
        };
        let call = |program: &str, argument: &str| {
            let words: Vec<PathBuf> = with.iter().cloned().chain([folder.join(&name).join(program)]).collect();
            run(Command::new(&words[0]).args(&words[1..]).arg(argument))
        };
        let said = call("memgauge", "--version")?;
        ensure!(said.starts_with(&format!("memgauge {} (", checked.release.version)), "{name}: {said}");
        ensure!(call("memgauge", "info")?.contains("CPUs"), "{name}: memgauge info");
        for program in ["mlc", "mlc_avx512"] {
            ensure!(call(program, "--help")?.contains("--loaded_latency"), "{name}: {program} --help");
        }
    }
    if not_run.is_empty() {
        Ok(Passed)
    } else {
        Ok(NotChecked(format!("programs for {}: no emulator (qemu-user-static)", not_run.join(", "))))
    }
}

fn lintian(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["lintian"]) {
        return Ok(outcome);
    }
    let output = Command::new("lintian").args(["--allow-root", "--fail-on", "error,warning"]).args(checked.with_ending(".deb")).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().for_each(|line| println!("    {line}"));
    ensure!(output.status.success(), "lintian found errors or warnings: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(Passed)
}

/// Validates the bills of materials with the schema that CycloneDX's own library brings.
fn bills_of_materials(checked: &Checked<'_>) -> Result<Outcome> {
    const VALIDATE: &str = "import sys\n\
        from cyclonedx.schema import SchemaVersion\n\
        from cyclonedx.validation.json import JsonStrictValidator\n\
        for path in sys.argv[1:]:\n    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(path).read())\n    \
        assert error is None, f'{path}: {error}'\n";
    let folder = scratch("schema")?;
    run(Command::new(&checked.args.python).args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/pip"));
    if let Err(error) = run(pip.args(["install", "--quiet", "--disable-pip-version-check", "cyclonedx-python-lib[json-validation]"])) {
        return Ok(NotChecked(format!("cyclonedx-python-lib cannot be had: {error:#}")));
    }
    run(Command::new(folder.join("bin/python")).args(["-c", VALIDATE]).args(checked.with_ending(".cdx.json")))?;
    Ok(Passed)
}

/// Builds the last commit again, from a clone in another place.
fn built_elsewhere(checked: &Checked<'_>) -> Result<Outcome> {
    if checked.args.programs.is_some() {
        return Ok(NotChecked("the programs were not built here (--programs)".to_owned()));
    }
    if !run(Command::new("git").args(["status", "--porcelain"]).current_dir(project_folder()))?.is_empty() {
        return Ok(NotChecked("this checkout has changes that are not committed".to_owned()));
    }
    let folder = scratch("elsewhere")?;
    run(Command::new("git").args(["clone", "--quiet"]).arg(project_folder()).arg(folder.join("source")))?;
    for target in checked.targets {
        let again = Programs::build(target, &folder.join("source"), &folder.join("target"))?;
        if again != checked.programs[target.name] {
            bail!("the programs for {} differ from those that were built first; both are kept: {}", target.name, folder.display());
        }
    }
    Ok(Passed)
}
