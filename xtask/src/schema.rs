//! `cargo xtask schema`: the schemas of results, comparisons, advice and statements about fleets, generated from the types.

use anyhow::Result;
use memgauge_analysis::advice::Advice;
use memgauge_analysis::comparison::Comparison;
use memgauge_analysis::fleet::{FleetBaseline, FleetHistory, FleetOutliers};
use memgauge_fleet::IngestOutcome;
use memgauge_model::result::Report;
use schemars::Schema;
use serde_json::Value;

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
        let mut schema = schema.to_value();
        without_links(&mut schema);
        // Written as a schema, which begins with its title and version.
        let text = serde_json::to_string_pretty(&Schema::try_from(schema)?)? + "\n";
        write_or_check(&project_folder().join(file), text.as_bytes(), check, "schema")?;
    }
    Ok(())
}

/// Replaces rustdoc's links in descriptions by their words: who reads a schema has no paths of crates to follow.
fn without_links(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(description)) = fields.get_mut("description") {
                *description = words_of(description);
            }
            fields.values_mut().for_each(without_links);
        }
        Value::Array(items) => items.iter_mut().for_each(without_links),
        _ => {}
    }
}

/// A description without the brackets and targets of its links. Other brackets stay.
fn words_of(description: &str) -> String {
    let (mut words, mut rest) = (String::new(), description);
    while let Some((before, after)) = rest.split_once('[') {
        words += before;
        let link = after.split_once(']').and_then(|(name, after)| {
            let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
            let is_code = name.len() > 1 && name.starts_with('`') && name.ends_with('`');
            (target.is_some() || is_code).then(|| (name, target.map_or(after, |(_, after)| after)))
        });
        match link {
            Some((name, after)) => {
                words += name;
                rest = after;
            }
            None => {
                words.push('[');
                rest = after;
            }
        }
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_have_words_and_no_links() {
        assert_eq!(words_of("its\n[row](crate::table) and [`Bytes`]; [`A`](b::A)."), "its\nrow and `Bytes`; `A`.");
        assert_eq!(words_of("a share in [0, 1] of (all) `[u8]`"), "a share in [0, 1] of (all) `[u8]`");
    }

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
