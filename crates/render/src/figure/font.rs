//! The bundled font: widths of text before it is placed, and outlines of its glyphs.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Regular or semi-bold: the two weights in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    Regular,
    SemiBold,
}

impl Weight {
    /// The table of outlines, as PDF embeds it.
    pub(crate) const fn cff(self) -> &'static [u8] {
        match self {
            Self::Regular => include_bytes!("../../fonts/Inter-Regular.cff"),
            Self::SemiBold => include_bytes!("../../fonts/Inter-SemiBold.cff"),
        }
    }

    /// A line for each glyph, in order of their numbers: its characters, its advance, its outline.
    const fn glyphs(self) -> &'static str {
        match self {
            Self::Regular => include_str!("../../fonts/Inter-Regular.glyphs"),
            Self::SemiBold => include_str!("../../fonts/Inter-SemiBold.glyphs"),
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
/// Depth of letters below the baseline, over the size of the font.
pub(crate) const DESCENT: f64 = 0.21;
/// The files state lengths in units; the font's size has this many of them.
const UNITS: f64 = 65_536.0;

/// A font, as `cargo xtask font` wrote it down.
pub(crate) struct Font {
    /// By number; 0 stands for what is missing.
    glyphs: Vec<Glyph>,
    /// Of ASCII, which nearly all text is.
    ascii: [u16; 128],
    characters: BTreeMap<char, u16>,
}

struct Glyph {
    /// In ems.
    advance: f64,
    /// A letter and points for each segment.
    outline: &'static str,
}

/// A part of an outline, in font units scaled to a size of 1, y upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Segment {
    Move(f32, f32),
    Line(f32, f32),
    Cubic(f32, f32, f32, f32, f32, f32),
    Close,
}

impl Font {
    pub(crate) fn with_weight(weight: Weight) -> &'static Self {
        static FONTS: [OnceLock<Font>; 2] = [OnceLock::new(), OnceLock::new()];
        FONTS[weight as usize].get_or_init(|| Self::read(weight.glyphs()))
    }

    fn read(text: &'static str) -> Self {
        let (mut glyphs, mut characters) = (Vec::new(), BTreeMap::new());
        for (number, line) in (0..).zip(text.lines()) {
            let (codes, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (advance, outline) = rest.split_once(' ').unwrap_or((rest, ""));
            let codes = codes.split(',').filter_map(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
            characters.extend(codes.map(|c| (c, number)));
            glyphs.push(Glyph { advance: advance.parse().unwrap_or(0.0) / UNITS, outline });
        }
        let glyph = |c: usize| char::from_u32(c as u32).and_then(|c| characters.get(&c)).copied().unwrap_or(0);
        Self { ascii: std::array::from_fn(glyph), glyphs, characters }
    }

    /// The glyph of a character; 0, the glyph for missing characters, if the font does not have it.
    pub(crate) fn glyph(&self, c: char) -> u16 {
        self.ascii.get(c as usize).or_else(|| self.characters.get(&c)).copied().unwrap_or(0)
    }

    /// Advance of a glyph in ems.
    pub(crate) fn advance(&self, glyph: u16) -> f64 {
        self.glyphs.get(usize::from(glyph)).map_or(0.0, |g| g.advance)
    }

    /// The outline of a glyph.
    pub(crate) fn outline(&self, glyph: u16) -> Vec<Segment> {
        let mut words = self.glyphs.get(usize::from(glyph)).map_or("", |g| g.outline).split(' ');
        let mut segments = Vec::new();
        while let Some(segment) = words.next() {
            let mut next = || words.next().and_then(|n| n.parse().ok()).map_or(0.0, |n: f64| (n / UNITS) as f32);
            segments.push(match segment {
                "M" => Segment::Move(next(), next()),
                "L" => Segment::Line(next(), next()),
                "C" => Segment::Cubic(next(), next(), next(), next(), next(), next()),
                _ => Segment::Close,
            });
        }
        segments
    }
}

/// Width of one line of text.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let font = Font::with_weight(weight);
    text.chars().map(|c| font.advance(font.glyph(c))).sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_files_are_fonts_with_the_characters_in_use() {
        for weight in [Weight::Regular, Weight::SemiBold] {
            let font = Font::with_weight(weight);
            assert!(font.glyphs.len() > 400 && !weight.cff().is_empty());
            assert!(font.glyphs.iter().all(|g| (0.0..3.0).contains(&g.advance)));
            for c in "AZaz09 ±×–—…·−≥≤→←µ²é".chars() {
                assert_ne!(font.glyph(c), 0, "{c}");
            }
            let eight = font.outline(font.glyph('8'));
            assert!(matches!(eight[0], Segment::Move(..)) && eight.iter().filter(|s| **s == Segment::Close).count() == 3, "{eight:?}");
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
