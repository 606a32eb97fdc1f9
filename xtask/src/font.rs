//! `cargo xtask font`: what figures need of the bundled fonts, in forms that need no font library to read.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result};
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::raw::TableProvider;
use skrifa::{FontRef, GlyphId, MetadataProvider, Tag};

use crate::folders::project_folder;
use crate::generated::write_or_check;

/// Writes, for each font, its table of outlines as PDF embeds it and its glyphs as text; with `check` only compares.
pub(crate) fn font(check: bool) -> Result<()> {
    for name in ["Inter-Regular", "Inter-SemiBold"] {
        let path = project_folder().join("crates/render/fonts").join(name).with_extension("otf");
        let file = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let font = FontRef::new(&file).with_context(|| format!("{} is no font", path.display()))?;
        let cff = font.data_for_tag(Tag::new(b"CFF ")).with_context(|| format!("{} has no table of outlines", path.display()))?;
        write_or_check(&path.with_extension("cff"), cff.as_bytes(), check, "font")?;
        write_or_check(&path.with_extension("glyphs"), glyphs(&font)?.as_bytes(), check, "font")?;
    }
    Ok(())
}

/// A line for each glyph, by number: its characters in hexadecimal joined by commas (`-` for none), its advance, its outline.
/// Lengths are in 65536ths of the font's size, as exact as the library has them.
fn glyphs(font: &FontRef<'_>) -> Result<String> {
    let mut characters: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (c, glyph) in font.charmap().mappings() {
        characters.entry(glyph.to_u32()).or_default().push(format!("{c:x}"));
    }
    let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::default());
    let mut text = String::new();
    for number in 0..u32::from(font.maxp()?.num_glyphs()) {
        let glyph = GlyphId::from(number);
        let characters = characters.get(&number).map_or("-".to_owned(), |c| c.join(","));
        let advance = metrics.advance_width(glyph).with_context(|| format!("glyph {number} has no advance"))?;
        write!(text, "{characters} {}", length(advance))?;
        let outline = font.outline_glyphs().get(glyph).with_context(|| format!("glyph {number} has no outline"))?;
        outline.draw(DrawSettings::unhinted(Size::new(1.0), LocationRef::default()), &mut Pen(&mut text))?;
        text.push('\n');
    }
    Ok(text)
}

fn length(value: f32) -> i32 {
    (value * 65_536.0).round() as i32
}

/// Writes an outline as a letter and points for each segment, named as in SVG.
struct Pen<'a>(&'a mut String);

impl Pen<'_> {
    fn segment(&mut self, name: char, points: &[f32]) {
        self.0.extend([' ', name]);
        for &point in points {
            self.0.push(' ');
            self.0.push_str(&length(point).to_string());
        }
    }
}

impl OutlinePen for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.segment('M', &[x, y]);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.segment('L', &[x, y]);
    }
    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.segment('Q', &[cx, cy, x, y]);
    }
    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.segment('C', &[ax, ay, bx, by, x, y]);
    }
    fn close(&mut self) {
        self.segment('Z', &[]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_and_fonts_agree() {
        super::font(true).unwrap();
    }
}
