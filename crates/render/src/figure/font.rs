//! The bundled font: widths of text before it is placed, and outlines of its glyphs.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};

/// Regular or semi-bold: the two weights in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    Regular,
    SemiBold,
}

impl Weight {
    pub(crate) const ALL: [Self; 2] = [Self::Regular, Self::SemiBold];

    /// The font file.
    pub(crate) fn file(self) -> &'static [u8] {
        match self {
            Self::Regular => include_bytes!("../../fonts/Inter-Regular.otf"),
            Self::SemiBold => include_bytes!("../../fonts/Inter-SemiBold.otf"),
        }
    }

    /// The name that PDF calls it by.
    pub(crate) const fn postscript_name(self) -> &'static str {
        match self {
            Self::Regular => "Inter-Regular",
            Self::SemiBold => "Inter-SemiBold",
        }
    }

    /// The weight as CSS states it.
    pub(crate) const fn css(self) -> u32 {
        match self {
            Self::Regular => 400,
            Self::SemiBold => 600,
        }
    }
}

/// Height of capitals and digits over the size of the font: Inter's 2048 of 2816 units.
pub(crate) const CAPITALS: f64 = 0.727;
/// How far letters go below the baseline, over the size of the font.
pub(crate) const DESCENT: f64 = 0.21;
/// Advance of a glyph that the font lacks, in ems.
const UNKNOWN: f64 = 0.6;

/// A font. It is never `None` with the bundled files, which a test reads; text without a font has
/// estimated widths and no outlines.
#[derive(Clone)]
pub(crate) struct Font {
    font: Option<FontRef<'static>>,
}

/// A part of an outline, in font units scaled to a size of 1, y upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Segment {
    Move(f32, f32),
    Line(f32, f32),
    Quad(f32, f32, f32, f32),
    Cubic(f32, f32, f32, f32, f32, f32),
    Close,
}

impl Font {
    pub(crate) fn new(weight: Weight) -> Self {
        Self { font: FontRef::new(weight.file()).ok() }
    }

    /// The glyph of a character; 0, the glyph for what is missing, when there is none.
    pub(crate) fn glyph(&self, c: char) -> u16 {
        let id = self.font.as_ref().and_then(|f| f.charmap().map(c)).unwrap_or_default();
        u16::try_from(id.to_u32()).unwrap_or(0)
    }

    /// Advance of a glyph in ems.
    pub(crate) fn advance(&self, glyph: u16) -> f64 {
        let metrics = self.font.as_ref().map(|f| f.glyph_metrics(Size::new(1.0), LocationRef::default()));
        metrics.and_then(|m| m.advance_width(GlyphId::from(glyph))).map_or(UNKNOWN, f64::from)
    }

    /// The outline of a glyph.
    pub(crate) fn outline(&self, glyph: u16) -> Vec<Segment> {
        let mut pen = Pen(Vec::new());
        if let Some(outline) = self.font.as_ref().and_then(|f| f.outline_glyphs().get(GlyphId::from(glyph))) {
            // A glyph that cannot be drawn stays empty: its text has still its place.
            let _ = outline.draw(DrawSettings::unhinted(Size::new(1.0), LocationRef::default()), &mut pen);
        }
        pen.0
    }

    /// The table of outlines, as PDF embeds it.
    pub(crate) fn cff(&self) -> Option<&'static [u8]> {
        use skrifa::raw::TableProvider;
        self.font.as_ref()?.data_for_tag(skrifa::Tag::new(b"CFF ")).map(|d| d.as_bytes())
    }
}

/// Width of one line of text.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    // Layout asks tens of thousands of times; the few hundred characters are looked up once.
    static ADVANCES: [OnceLock<BTreeMap<u32, f64>>; 2] = [OnceLock::new(), OnceLock::new()];
    let table = &ADVANCES[weight as usize];
    let advances = table.get_or_init(|| {
        let font = Font::new(weight);
        let mappings = font.font.iter().flat_map(|f| f.charmap().mappings());
        mappings.map(|(c, glyph)| (c, font.advance(u16::try_from(glyph.to_u32()).unwrap_or(0)))).collect()
    });
    let missing = || Font::new(weight).advance(0);
    text.chars().map(|c| advances.get(&u32::from(c)).copied().unwrap_or_else(missing)).sum::<f64>() * size
}

struct Pen(Vec<Segment>);

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.push(Segment::Move(x, y));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.0.push(Segment::Line(x, y));
    }
    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.0.push(Segment::Quad(cx, cy, x, y));
    }
    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        self.0.push(Segment::Cubic(ax, ay, bx, by, x, y));
    }
    fn close(&mut self) {
        self.0.push(Segment::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_files_are_fonts_with_the_characters_in_use() {
        for weight in Weight::ALL {
            let font = Font::new(weight);
            assert!(font.font.is_some() && font.cff().is_some());
            for c in "AZaz09 ±×–—…·−≥≤→←µ²é".chars() {
                assert_ne!(font.glyph(c), 0, "{c}");
            }
            assert!(!font.outline(font.glyph('8')).is_empty());
        }
    }

    #[test]
    fn widths_grow_with_text_size_and_weight() {
        let one = width("100 ns", 12.0, Weight::Regular);
        assert!((30.0..50.0).contains(&one), "{one}");
        assert!((width("100 ns", 24.0, Weight::Regular) / one - 2.0).abs() < 1e-6);
        assert!(width("100 ns", 12.0, Weight::SemiBold) > one);
        assert!((width("100 ns100 ns", 12.0, Weight::Regular) / one - 2.0).abs() < 1e-6);
    }
}
