//! CHANGELOG.md, the source of the changes that packages list.

use anyhow::{Result, bail};

/// The text below the heading of a version.
///
/// # Errors
/// When the version has none: a release needs one.
pub(super) fn of_version<'a>(changes: &'a str, version: &str) -> Result<&'a str> {
    let mut sections = changes.split("\n## ").skip(1);
    let found = sections.find_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        (heading.split([' ', ',']).next() == Some(version)).then_some(text.trim())
    });
    match found {
        Some(text) if !text.is_empty() => Ok(text),
        _ => bail!("CHANGELOG.md has nothing below a heading '## {version}'; write what users should know of it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_own_text() {
        let changes = "# Changes\n\n## 0.2.0, unreleased\n\nMore.\n\n## 0.1.0\n\nFirst.\n\nSecond.\n";
        assert_eq!(of_version(changes, "0.1.0").unwrap(), "First.\n\nSecond.");
        assert_eq!(of_version(changes, "0.2.0").unwrap(), "More.");
        assert!(of_version(changes, "0.1").is_err() && of_version("## 0.1.0\n\n## 0.0.1\n", "0.1.0").is_err());
    }
}
