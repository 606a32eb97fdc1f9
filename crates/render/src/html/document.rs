//! The parts that every page has: its title, its style and script, and the policy that allows these and nothing else.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memgauge_model::printable::escape_within_lines;
use sha2::{Digest, Sha256};

use crate::figure::inline::{UsedColours, fill_class, stroke_class};
use crate::figure::palette::{Colour, on_dark};

const STYLE: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

/// The frame of a page.
pub(super) struct Document {
    pub(super) title: String,
    pub(super) generator: String,
    pub(super) style: String,
    pub(super) script: &'static str,
    /// The content security policy.
    pub(super) policy: String,
}

impl Document {
    /// `used`: the colours of the page's figures.
    pub(super) fn new(title: String, used: &UsedColours) -> Self {
        let style = format!("{STYLE}{}", dark_colours(used));
        let policy = format!(
            "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
            hash(&style),
            hash(SCRIPT)
        );
        let generator = format!("memgauge {}", env!("CARGO_PKG_VERSION"));
        Self { title, generator, style, script: SCRIPT, policy }
    }
}

/// As a policy names what stands between two tags.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The colours of figures where the reader prefers a dark page.
fn dark_colours(used: &UsedColours) -> String {
    let hex = |[r, g, b]: Colour| format!("#{r:02x}{g:02x}{b:02x}");
    let mut rules = String::from("@media screen and (prefers-color-scheme:dark){");
    for colour in &used.fills {
        // Writing to a String cannot fail.
        let _ = write!(rules, ".{}{{fill:{}}}", fill_class(*colour), hex(on_dark(*colour)));
    }
    for colour in &used.strokes {
        let _ = write!(rules, ".{}{{stroke:{}}}", stroke_class(*colour), hex(on_dark(*colour)));
    }
    rules + "}\n"
}

/// A page without what a browser, or a terminal that shows its source, would obey.
pub(super) fn without_controls(page: &str) -> Vec<u8> {
    escape_within_lines(page).into_owned().into_bytes()
}
