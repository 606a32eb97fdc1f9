//! memgauge's own chores.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore tells what it did")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memgauge_core::result::Report;

mod circles;
mod lab;
mod machines;
mod peers;

/// memgauge's own chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Write the schema of results from the types
    Schema {
        /// Only say whether the file is what the types say
        #[arg(long)]
        check: bool,
    },
    /// Write the recorded machines that no laboratory has from their description
    Machines {
        /// Only say whether the archives hold what the description says
        #[arg(long)]
        check: bool,
    },
    /// Run memgauge in virtual machines that have what this one lacks
    Lab(lab::LabArgs),
    /// Compare memgauge with other benchmarks that are installed or built in a folder, in turn
    Peers(peers::PeersArgs),
    /// Fail where files of a crate import each other in a circle
    Circles(circles::CirclesArgs),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Schema { check: false } => write_schema(&schema_path()),
        Chore::Schema { check: true } => check_schema(&schema_path()),
        Chore::Machines { check: false } => machines::write(&machines_folder()),
        Chore::Machines { check: true } => machines::check(&machines_folder()),
        Chore::Lab(args) => lab::lab(&args),
        Chore::Peers(args) => peers::peers(&args),
        Chore::Circles(args) => circles::circles(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn project_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

/// Where cargo builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project_folder().join("target"), |folder| project_folder().join(folder))
}

fn schema_path() -> PathBuf {
    project_folder().join("schema/result.schema.json")
}

/// Where recorded machines are.
fn machines_folder() -> PathBuf {
    project_folder().join("tests/machines")
}

/// The schema of a report, as the file has it.
fn schema() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(Report))? + "\n")
}

fn write_schema(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, schema()?).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn check_schema(path: &Path) -> Result<()> {
    let found = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let expected = schema()?;
    if found == expected {
        return Ok(());
    }
    let same = found.lines().zip(expected.lines()).take_while(|(a, b)| a == b).count();
    bail!("{} differs from the types from line {} on: run 'cargo xtask schema' and commit it", path.display(), same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::result::SCHEMA_VERSION;

    #[test]
    fn file_and_types_agree() {
        check_schema(&schema_path()).unwrap();
    }

    #[test]
    fn a_file_that_differs_is_found() {
        let path = std::env::temp_dir().join(format!("memgauge-xtask-{}.json", std::process::id()));
        fs::write(&path, schema().unwrap().replacen("schema_version", "schema_versions", 1)).unwrap();
        let message = check_schema(&path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(message.contains("cargo xtask schema"), "{message}");
        assert!(check_schema(&path).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn every_field_is_described() {
        // Descriptions come from the types' documentation; people read the schema without the source.
        let schema: serde_json::Value = serde_json::from_str(&schema().unwrap()).unwrap();
        let definitions = schema["$defs"].as_object().unwrap();
        let mut without = Vec::new();
        for (name, definition) in definitions.iter().chain([(&"Report".to_owned(), &schema)]) {
            for (field, value) in definition["properties"].as_object().into_iter().flatten() {
                if value.get("description").is_none() {
                    without.push(format!("{name}.{field}"));
                }
            }
        }
        assert!(without.is_empty(), "{without:?}");
        assert!(definitions.len() > 20 && SCHEMA_VERSION >= 1);
    }
}
