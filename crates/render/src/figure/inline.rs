//! A scene as SVG within a page: its colours follow the page's, and areas tell the pointer what they show.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::palette::{Colour, WHITE, is_neutral};
use super::scene::{Area, Item, RIM, Scene, Stroke, Text};
use super::svg::{Colours, draw, escape, fill_and_pen, hex, number, space};

/// More areas than this would make the page large; the numbers are in its tables.
const MAX_HINTS: usize = 512;

/// Colours that a page may replace where the reader prefers a dark one, by the names of their classes.
#[derive(Debug, Default)]
pub(crate) struct UsedColours {
    pub(crate) fills: BTreeSet<Colour>,
    pub(crate) strokes: BTreeSet<Colour>,
}

/// The class of everything that is filled with a colour.
pub(crate) fn fill_class(colour: Colour) -> String {
    format!("f{}", &hex(colour)[1..])
}

/// The class of everything that is drawn with a colour.
pub(crate) fn stroke_class(colour: Colour) -> String {
    format!("s{}", &hex(colour)[1..])
}

/// The element. `class` is its own class, `named_by` the identifiers of the elements that name it; `hints`: areas tell the pointer what they
/// show.
pub(crate) fn write(scene: &Scene, class: &str, named_by: &str, hints: bool, used: &mut UsedColours) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{named_by}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n"
    );
    // Writing to a String cannot fail.
    let _ = draw(&mut out, scene, used);
    if hints && scene.hints.len() <= MAX_HINTS {
        for (area, text) in &scene.hints {
            let lines: Vec<String> = text.lines().map(escape).collect();
            let _ = writeln!(
                out,
                "<rect class=\"hint\"{} fill=\"none\" pointer-events=\"all\"><title>{}</title></rect>",
                space(area),
                lines.join("\n")
            );
        }
    }
    out.push_str("</svg>");
    out
}

/// Writes colours as attributes, for light and for printed pages, and as classes, which let a dark page replace them.
impl Colours for UsedColours {
    const PIXELATED: &'static str = "image-rendering=\"pixelated\"";

    fn attributes(&mut self, fill: Option<Colour>, stroke: Option<Stroke>) -> String {
        self.fills.extend(fill);
        self.strokes.extend(stroke.map(|stroke| stroke.colour));
        let classes = [fill.map(fill_class), stroke.map(|stroke| stroke_class(stroke.colour))];
        let classes: Vec<String> = classes.into_iter().flatten().collect();
        format!(" class=\"{}\"{}", classes.join(" "), fill_and_pen(fill, stroke))
    }

    /// The colours of values stay: text on them was chosen for them.
    fn of_area(&mut self, fill: Colour) -> String {
        if is_neutral(fill) { self.attributes(Some(fill), None) } else { fill_and_pen(Some(fill), None) }
    }

    fn of_text(&mut self, text: &Text, below: &[Item]) -> (String, String) {
        if is_on_value(text, below) {
            return (fill_and_pen(Some(text.colour), None), String::new());
        }
        let rim = text.rim.then_some(Stroke::new(WHITE, RIM));
        let order = if text.rim { " paint-order=\"stroke\" stroke-linejoin=\"round\"" } else { "" };
        (self.attributes(Some(text.colour), rim), order.to_owned())
    }
}

/// Whether a text stands on the colour of a value or a bar.
fn is_on_value(text: &Text, below: &[Item]) -> bool {
    let area = text.area();
    let middle = Area::new(area.x + area.width / 2.0, area.y + area.height / 2.0, 0.0, 0.0);
    let under = below.iter().rev().find_map(|item| match item {
        Item::Rect { area, fill } if area.holds(&middle) => Some(!is_neutral(*fill)),
        Item::Pixels { area, .. } if area.holds(&middle) => Some(true),
        _ => None,
    });
    under.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::super::palette::{INK, Map, text_on};
    use super::*;

    #[test]
    fn text_on_a_value_keeps_its_colour_and_other_text_follows_the_page() {
        let mut scene = Scene::new("");
        let cell = Map::Main.at(0.0);
        scene.rect(Area::new(0.0, 0.0, 50.0, 20.0), cell);
        scene.text(Text::new("on", (5.0, 15.0), 12.0, text_on(cell)));
        scene.text(Text::new("beside", (70.0, 15.0), 12.0, INK));
        scene.hint(Area::new(0.0, 0.0, 50.0, 20.0), "a <b>\nc");
        let mut used = UsedColours::default();
        let svg = write(&scene, "wide", "t", true, &mut used);
        let line = |end: &str| svg.lines().find(|l| l.ends_with(end)).unwrap_or_default().to_owned();
        assert!(!line(">on</text>").contains("class"), "{svg}");
        assert!(line(">beside</text>").contains("class=\"f1f1f24\""), "{svg}");
        assert!(svg.contains("<title>a &lt;b&gt;\nc</title>"), "{svg}");
        assert_eq!(used.fills.into_iter().collect::<Vec<_>>(), [INK]);
    }
}
