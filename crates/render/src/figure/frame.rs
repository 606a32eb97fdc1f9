//! The parts that all panels share: title, explanation, key of colours above; footnotes below.

use memgauge_model::experiment_table::PanelName;

use super::font::{self, Weight};
use super::palette::{GREY, INK, Style};
use super::scene::{Area, Point, Scene, Text};

/// Size of titles, of explanations and notes, and of labels and ticks.
pub(crate) const TITLE: f64 = 16.0;
pub(crate) const ABOUT: f64 = 12.0;
pub(crate) const LABEL: f64 = 12.0;
/// Width of a panel that does not need more.
pub(crate) const WIDTH: f64 = 760.0;
/// Width of one of two panels that stand beside each other.
pub(crate) const HALF: f64 = (WIDTH - BETWEEN) / 2.0;
/// Space between panels.
pub(crate) const BETWEEN: f64 = 34.0;
const LINE: f64 = 17.0;
const SWATCH: f64 = 11.0;

/// The space that a panel is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Space {
    pub(crate) width: f64,
    /// Space to the left of plots, at least. It is the widest that a chart of the figure needs, so that plots below each other begin at
    /// the same place.
    pub(crate) gutter: f64,
    /// The width was asked for: a panel may not take more.
    pub(crate) fixed: bool,
}

impl Default for Space {
    fn default() -> Self {
        Self { width: WIDTH, gutter: 0.0, fixed: false }
    }
}

/// A part of a figure, with a size and a place to be drawn at.
pub(crate) trait Panel {
    /// Space that a chart needs to the left of its plot.
    fn gutter(&self) -> f64 {
        0.0
    }
    /// Whether half of the usual width is enough.
    fn is_small(&self) -> bool {
        false
    }
    /// Width and height.
    fn size(&self, space: Space) -> (f64, f64);
    /// Draws with this upper left corner.
    fn draw(&self, scene: &mut Scene, at: Point, space: Space);
    /// Title, explanation, key and notes.
    fn caption(&mut self) -> &mut Caption;
}

/// What follows the title of the nth chart of several: ` (2 of 3)`.
pub(crate) fn part_of(n: usize, parts: usize) -> String {
    if parts > 1 { format!(" ({} of {parts})", n + 1) } else { String::new() }
}

/// Panels of one kind as panels of any.
pub(crate) fn boxed<P: Panel + 'static>(panels: impl IntoIterator<Item = P>) -> Vec<Box<dyn Panel>> {
    panels.into_iter().map(|panel| Box::new(panel) as Box<dyn Panel>).collect()
}

/// A panel, and the name that it can be asked for by.
pub(crate) type NamedPanel = (PanelName, Box<dyn Panel>);

/// Title, explanation, key and notes of a plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Caption {
    pub(crate) title: String,
    /// What is shown and how it was measured.
    pub(crate) about: String,
    /// Which colour is which, where labels beside the data do not say it.
    pub(crate) key: Vec<(Style, String)>,
    /// What is missing or degraded.
    pub(crate) notes: Vec<String>,
}

impl Caption {
    pub(crate) fn new(title: impl Into<String>, about: impl Into<String>) -> Self {
        Self { title: title.into(), about: about.into(), ..Self::default() }
    }

    /// Height of what is above the plot.
    pub(crate) fn above(&self, width: f64) -> f64 {
        let titles = wrap(&self.title, width, TITLE, Weight::SemiBold).len() as f64;
        let lines = wrap(&self.about, width, ABOUT, Weight::Regular).len() + self.key_rows(width).len();
        titles * 22.0 + lines as f64 * LINE + if titles > 0.0 || lines > 0 { 10.0 } else { 0.0 }
    }

    /// Height of what is below.
    pub(crate) fn below(&self, width: f64) -> f64 {
        let lines = self.notes.iter().map(|n| wrap(n, width, ABOUT, Weight::Regular).len()).sum::<usize>();
        if lines == 0 { 0.0 } else { lines as f64 * LINE + 8.0 }
    }

    pub(crate) fn draw_above(&self, scene: &mut Scene, at: Point, width: f64) {
        let mut y = at.1;
        for line in wrap(&self.title, width, TITLE, Weight::SemiBold) {
            scene.text(Text::new(line, (at.0, y + 15.0), TITLE, INK).bold());
            y += 22.0;
        }
        for line in wrap(&self.about, width, ABOUT, Weight::Regular) {
            scene.text(Text::new(line, (at.0, y + 12.0), ABOUT, GREY));
            y += LINE;
        }
        for row in self.key_rows(width) {
            let mut x = at.0;
            for (style, name, wide) in row {
                match style.marker {
                    Some(marker) => scene.mark(marker, (x + SWATCH / 2.0, y + 2.5 + SWATCH / 2.0), SWATCH / 2.0, style.colour, None),
                    None => scene.rect(Area::new(x, y + 2.5, SWATCH, SWATCH), style.colour),
                }
                scene.text(Text::new(name, (x + SWATCH + 5.0, y + 12.0), LABEL, INK));
                x += wide;
            }
            y += LINE;
        }
    }

    pub(crate) fn draw_below(&self, scene: &mut Scene, at: Point, width: f64) {
        let lines = self.notes.iter().flat_map(|n| wrap(n, width, ABOUT, Weight::Regular));
        for (i, line) in lines.enumerate() {
            scene.text(Text::new(line, (at.0, at.1 + 8.0 + 12.0 + i as f64 * LINE), ABOUT, GREY));
        }
    }

    /// Entries of the key with the width of each, in rows.
    fn key_rows(&self, width: f64) -> Vec<Vec<(Style, String, f64)>> {
        let mut rows: Vec<Vec<(Style, String, f64)>> = Vec::new();
        let mut used = f64::INFINITY;
        for (style, name) in &self.key {
            let name = shorten(name, width - SWATCH - 5.0, LABEL);
            let wide = SWATCH + 5.0 + font::width(&name, LABEL, Weight::Regular) + 18.0;
            if used + wide > width + 18.0 {
                rows.push(Vec::new());
                used = 0.0;
            }
            used += wide;
            if let Some(row) = rows.last_mut() {
                row.push((*style, name, wide));
            }
        }
        rows
    }
}

/// Breaks text into lines; a word that is too long is broken as well.
pub(crate) fn wrap(text: &str, width: f64, size: f64, weight: Weight) -> Vec<String> {
    let fits = |line: &str| font::width(line, size, weight) <= width;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(last) = lines.last_mut() {
            let longer = format!("{last} {word}");
            if fits(&longer) {
                *last = longer;
                continue;
            }
        }
        let mut rest = word;
        while !fits(rest) {
            let ends: Vec<usize> = rest.char_indices().map(|(i, _)| i).skip(1).collect();
            let fitting = ends.partition_point(|&i| fits(&rest[..i]));
            let Some(&cut) = ends.get(fitting.saturating_sub(1)) else { break };
            lines.push(rest[..cut].to_owned());
            rest = &rest[cut..];
        }
        lines.push(rest.to_owned());
    }
    lines
}

/// The text, its end replaced by an ellipsis when it is too wide.
pub(crate) fn shorten(text: &str, width: f64, size: f64) -> String {
    if font::width(text, size, Weight::Regular) <= width {
        return text.to_owned();
    }
    let shown = |end: usize| format!("{}…", text[..end].trim_end());
    let ends: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
    let fitting = ends.partition_point(|&end| font::width(&shown(end), size, Weight::Regular) <= width);
    fitting.checked_sub(1).map(|last| shown(ends[last])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_whatever_the_words() {
        let text = "buffers of 512 MiB on 2 MiB pages averyveryveryveryveryverylongpathwithoutanyspaces/and/more of it";
        for width in [1.0, 60.0, 120.0, 400.0] {
            let lines = wrap(text, width, ABOUT, Weight::Regular);
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
            assert!(width < 20.0 || lines.iter().all(|l| font::width(l, ABOUT, Weight::Regular) <= width), "{lines:?}");
        }
    }

    #[test]
    fn what_is_too_wide_ends_in_an_ellipsis() {
        assert_eq!(shorten("short", 100.0, LABEL), "short");
        let text = shorten("a rather long name of a result", 80.0, LABEL);
        assert!(text.ends_with('…') && font::width(&text, LABEL, Weight::Regular) <= 80.0, "{text}");
        assert_eq!(shorten("x", 0.0, LABEL), "");
    }
}
