//! `cargo xtask schema`: the schemas of results, comparisons, advice and what is said of fleets, generated from the types.

use anyhow::Result;
use memgauge_core::advice::Advice;
use memgauge_core::comparison::Comparison;
use memgauge_core::fleet::{FleetBaseline, FleetHistory, FleetOutliers};
use memgauge_core::result::Report;
use memgauge_fleet::IngestOutcome;
use schemars::Schema;

use crate::folders::project_folder;
use crate::generated::write_or_check;

/// The schemas and their files.
fn schemas() -> [(&'static str, Schema); 7] {
    [
        ("schema/result.schema.json", schemars::schema_for!(Report)),
        ("schema/comparison.schema.json", schemars::schema_for!(Comparison)),
        ("schema/advice.schema.json", schemars::schema_for!(Advice)),
        ("schema/fleet-ingest.schema.json", schemars::schema_for!(IngestOutcome)),
        ("schema/fleet-outliers.schema.json", schemars::schema_for!(FleetOutliers)),
        ("schema/fleet-baseline.schema.json", schemars::schema_for!(FleetBaseline)),
        ("schema/fleet-history.schema.json", schemars::schema_for!(FleetHistory)),
    ]
}

/// Writes the schemas to their files, or with `check` only compares the two.
pub(crate) fn schema(check: bool) -> Result<()> {
    for (file, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        write_or_check(&project_folder().join(file), text.as_bytes(), check, "schema")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_types_agree() {
        schema(true).unwrap();
    }

    #[test]
    fn every_field_is_described() {
        // Descriptions come from the types' documentation; people read the schema without the source.
        let mut without = Vec::new();
        for (file, schema) in schemas() {
            let schema = schema.to_value();
            let definitions = schema["$defs"].as_object().unwrap();
            for (name, definition) in definitions.iter().chain([(&file.to_owned(), &schema)]) {
                for (field, value) in definition["properties"].as_object().into_iter().flatten() {
                    if value.get("description").is_none() {
                        without.push(format!("{name}.{field}"));
                    }
                }
            }
            let least = match file {
                "schema/result.schema.json" => 20,
                "schema/comparison.schema.json" => 10,
                _ => 2,
            };
            assert!(definitions.len() > least, "{file}");
        }
        assert!(without.is_empty(), "{without:?}");
    }
}
