//! `cargo xtask schema`: the schema of results, generated from the types.

use anyhow::Result;
use memgauge_core::result::Report;

use crate::folders::project_folder;
use crate::generated::write_or_check;

/// The schema of a report, as the file has it.
fn text() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(Report))? + "\n")
}

/// Writes the schema to its file, or with `check` only compares the two.
pub(crate) fn schema(check: bool) -> Result<()> {
    write_or_check(&project_folder().join("schema/result.schema.json"), text()?.as_bytes(), check, "schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::result::SCHEMA_VERSION;

    #[test]
    fn file_and_types_agree() {
        schema(true).unwrap();
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
