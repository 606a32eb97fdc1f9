//! The bill of materials of a release's programs: CycloneDX 1.5 as JSON (<https://cyclonedx.org/docs/1.5/json/>).

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::build::Programs;
use super::crates::{Crate, runtime};
use super::release::Release;
use super::target::program;
use super::tree::sha256;
use crate::folders::project_folder;
use crate::programs::run;

/// The program itself.
const MAIN: &str = "memgauge";

/// A bill of materials: the crates that the programs are linked from, with licences and checksums, and which needs which; and the libraries that
/// Rust's compiler, or another one, brings for the target. Only of Rust's own is the version known.
///
/// # Errors
/// When Rust's compiler does not say its version.
pub(super) fn sbom(release: &Release, programs: &Programs, crates: &[Crate]) -> Result<Vec<u8>> {
    let reference = |name: &str, version: &str| format!("pkg:cargo/{name}@{version}");
    let component = |krate: &Crate| {
        let purl = reference(&krate.name, &krate.version);
        let mut component = json!({
            "type": if krate.name == MAIN { "application" } else { "library" },
            "bom-ref": purl,
            "name": krate.name,
            "version": krate.version,
            "scope": "required",
            "licenses": [{ "expression": krate.licence }],
            "purl": purl,
        });
        if let Some(description) = &krate.description {
            component["description"] = json!(description);
        }
        if let Some(checksum) = &krate.checksum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let mut main = Value::Null;
    let mut components = Vec::new();
    for krate in crates {
        if krate.name == MAIN {
            main = component(krate);
        } else {
            components.push(component(krate));
        }
    }
    let compiler = run(Command::new("rustc").arg("--version").current_dir(project_folder()))?;
    let version = compiler.split(' ').nth(1).context("rustc --version says none")?;
    let library = |name: &str| format!("library:{}", name.replace(' ', "-"));
    for (number, linked) in runtime(programs.triple).iter().enumerate() {
        let mut component = json!({
            "type": "library",
            "bom-ref": library(linked.name),
            "name": linked.name,
            "scope": "required",
            "licenses": [{ "expression": linked.licence }],
        });
        if number == 0 {
            component["version"] = json!(version);
        }
        components.push(component);
    }
    let file =
        |name: &str, bytes: &[u8]| json!({ "type": "file", "name": name, "hashes": [{ "alg": "SHA-256", "content": sha256(bytes) }] });
    main["components"] =
        json!([file(&program("memgauge", programs.triple), &programs.memgauge), file(&program("mlc", programs.triple), &programs.mlc)]);
    main["properties"] = json!([{ "name": "memgauge:target", "value": programs.triple }]);
    let needs = |krate: &Crate| {
        let mut on: Vec<String> = krate.needs.iter().map(|(name, version)| reference(name, version)).collect();
        if krate.name == MAIN {
            on.extend(runtime(programs.triple).iter().map(|linked| library(linked.name)));
        }
        json!({ "ref": reference(&krate.name, &krate.version), "dependsOn": on })
    };
    let mut bom = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.time("%Y-%m-%dT%H:%M:%SZ")?,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": release.version }] },
            "component": main,
        },
        "components": components,
        "dependencies": crates.iter().map(needs).collect::<Vec<_>>(),
    });
    bom["serialNumber"] = json!(format!("urn:uuid:{}", uuid(&sha256(&serde_json::to_vec(&bom)?))));
    let mut bytes = serde_json::to_vec_pretty(&bom)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A UUID of one's own making (version 8 of RFC 9562) from hexadecimal digits: the same contents have the same.
fn uuid(digits: &str) -> String {
    format!("{}-{}-8{}-a{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_which_kind_it_is() {
        assert_eq!(uuid("00112233445566778899aabbccddeeff"), "00112233-4455-8677-a899-aabbccddeeff");
    }
}
