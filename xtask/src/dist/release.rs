//! The options of a release, and the facts that all of its packages state.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::folders::project_folder;
use crate::programs::run;

/// The arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct DistArgs {
    /// Instruction sets of Linux (x86_64, aarch64, riscv64), or windows; may be repeated [default: all]
    #[arg(long = "arch", value_name = "NAME")]
    pub(super) arches: Vec<String>,
    /// Where the packages go; others of memgauge that are there are removed
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub(super) out: PathBuf,
    /// Take the programs from FOLDER/TARGET/release instead of building them, as cargo leaves them below its target folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) programs: Option<PathBuf>,
    /// Name and address of who makes the packages [default: the author of the last commit]
    #[arg(long, value_name = "NAME <ADDRESS>")]
    pub(super) maintainer: Option<String>,
    /// Then check the packages: packed twice, unpacked, installed, run and removed
    #[arg(long)]
    pub(super) check: bool,
    /// With --check, also what takes minutes: built again from a clone elsewhere, a fresh Debian, types, the schema of the bills of materials
    #[arg(long, requires = "check")]
    pub(super) full: bool,
    /// The Python to test the wheels with
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub(super) python: PathBuf,
}

/// The facts that all packages state.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) version: &'static str,
    /// The time of the last commit, or of SOURCE_DATE_EPOCH: the time of every file.
    pub(super) epoch: u64,
    pub(super) maintainer: String,
    /// The project's address, if `Cargo.toml` has one.
    pub(super) homepage: Option<String>,
}

impl Release {
    /// # Errors
    /// When there is neither git nor what stands for it.
    pub(super) fn find(maintainer: Option<String>) -> Result<Self> {
        let git = |format: &str| run(Command::new("git").args(["log", "-1", &format!("--format={format}")]).current_dir(project_folder()));
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => git("%ct").context("the time of the last commit; without git, set SOURCE_DATE_EPOCH")?,
        };
        let epoch = epoch.trim().parse().with_context(|| format!("SOURCE_DATE_EPOCH: '{epoch}' is no number of seconds"))?;
        let maintainer = match maintainer {
            Some(maintainer) => maintainer,
            None => git("%an <%ae>").context("the author of the last commit; without git, give --maintainer")?.trim().to_owned(),
        };
        ensure!(maintainer.contains('<') && maintainer.ends_with('>'), "--maintainer: '{maintainer}' is not of the form NAME <ADDRESS>");
        let homepage = homepage(&fs::read_to_string(project_folder().join("Cargo.toml")).context("Cargo.toml")?)?;
        Ok(Self { version: env!("CARGO_PKG_VERSION"), epoch, maintainer, homepage })
    }

    /// Its time in UTC, in a format of strftime.
    pub(super) fn time(&self, format: &str) -> Result<String> {
        let mut date = Command::new("date");
        Ok(run(date.env("LC_ALL", "C").args(["-u", "-d", &format!("@{}", self.epoch), &format!("+{format}")]))?.trim().to_owned())
    }
}

/// The homepage of the workspace's crates, or their repository.
fn homepage(manifest: &str) -> Result<Option<String>> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml")?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let field = |name| package.and_then(|package| package.get(name)).and_then(toml::Value::as_str);
    Ok(field("homepage").or_else(|| field("repository")).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_homepage_where_the_workspace_has_one() {
        let found = |fields: &str| homepage(&format!("[workspace.package]\nversion = '0.1.0'\n{fields}")).unwrap();
        assert_eq!(found(""), None);
        assert_eq!(found("repository = 'https://a.test/r'").as_deref(), Some("https://a.test/r"));
        assert_eq!(found("repository = 'https://a.test/r'\nhomepage = 'https://a.test'").as_deref(), Some("https://a.test"));
    }
}
