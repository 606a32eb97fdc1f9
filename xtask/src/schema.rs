//! `cargo xtask schema`: the schema of results, generated from the types.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use memgauge_core::result::Report;

use crate::folders::project_folder;

fn path() -> PathBuf {
    project_folder().join("schema/result.schema.json")
}

/// The schema of a report, as the file has it.
fn text() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(Report))? + "\n")
}

/// Writes the schema to its file, or with `check` only compares the two.
pub(crate) fn schema(check: bool) -> Result<()> {
    if check { check_file(&path()) } else { write_file(&path()) }
}

fn write_file(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, text()?).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn check_file(path: &Path) -> Result<()> {
    let found = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let expected = text()?;
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
        check_file(&path()).unwrap();
    }

    #[test]
    fn a_file_that_differs_is_found() {
        let path = std::env::temp_dir().join(format!("memgauge-xtask-{}.json", std::process::id()));
        fs::write(&path, text().unwrap().replacen("schema_version", "schema_versions", 1)).unwrap();
        let message = check_file(&path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(message.contains("cargo xtask schema"), "{message}");
        assert!(check_file(&path).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn every_field_is_described() {
        // Descriptions come from the types' documentation; people read the schema without the source.
        let schema: serde_json::Value = serde_json::from_str(&text().unwrap()).unwrap();
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
