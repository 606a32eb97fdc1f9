//! A scene as SVG within a page: its colours follow the page's, and areas tell the pointer what they show.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::palette::{Colour, WHITE, is_neutral};
use super::png;
use super::scene::{Area, DASH, Item, RIM, Scene, Stroke, Text};
use super::svg::{base64, corners, escape, hex, number, space, text_element};

/// More areas than this would make the page large; the numbers are in its tables.
const MAX_HINTS: usize = 512;

/// Colours that a page may replace where the reader prefers a dark one, by the names of their classes.
#[derive(Debug, Default)]
pub(crate) struct Used {
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
pub(crate) fn write(scene: &Scene, class: &str, named_by: &str, hints: bool, used: &mut Used) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{named_by}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n"
    );
    for (i, item) in scene.items.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = draw(&mut out, item, &scene.items[..i], used);
    }
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

fn draw(out: &mut String, item: &Item, below: &[Item], used: &mut Used) -> std::fmt::Result {
    match item {
        // The colours of values stay: text on them was chosen for them.
        Item::Rect { area, fill } if is_neutral(*fill) => writeln!(out, "<rect{}{}/>", space(area), paint(Some(*fill), None, used)),
        Item::Rect { area, fill } => writeln!(out, "<rect{} fill=\"{}\"/>", space(area), hex(*fill)),
        Item::Line { points, stroke } => match points.as_slice() {
            [a, b] => {
                let [x1, y1, x2, y2] = [a.0, a.1, b.0, b.1].map(number);
                writeln!(out, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"{}/>", paint(None, Some(*stroke), used))
            }
            _ => {
                let pen = paint(None, Some(*stroke), used);
                writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\"{pen}/>", corners(points))
            }
        },
        Item::Dot { centre, radius, fill, rim } => {
            let [x, y, r] = [centre.0, centre.1, *radius].map(number);
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"{}/>", paint(Some(*fill), *rim, used))
        }
        Item::Shape { points, fill, rim } => {
            writeln!(out, "<polygon points=\"{}\"{}/>", corners(points), paint(Some(*fill), *rim, used))
        }
        Item::Text(text) => write_text(out, text, is_on_value(text, below), used),
        Item::Pixels { area, columns, rows, colours } => {
            let image = base64(&png::pixels(*columns, *rows, colours).unwrap_or_default());
            let how = "preserveAspectRatio=\"none\" image-rendering=\"pixelated\"";
            writeln!(out, "<image{} {how} href=\"data:image/png;base64,{image}\"/>", space(area))
        }
    }
}

/// Colours as attributes, which hold on light paper and on printed pages, and the classes by which a dark page replaces them.
fn paint(fill: Option<Colour>, stroke: Option<Stroke>, used: &mut Used) -> String {
    let mut classes = Vec::new();
    let mut attributes = String::new();
    if let Some(colour) = fill {
        used.fills.insert(colour);
        classes.push(fill_class(colour));
        attributes += &format!(" fill=\"{}\"", hex(colour));
    }
    if let Some(stroke) = stroke {
        used.strokes.insert(stroke.colour);
        classes.push(stroke_class(stroke.colour));
        attributes += &format!(" stroke=\"{}\" stroke-width=\"{}\"", hex(stroke.colour), number(stroke.width));
        if stroke.dashed {
            attributes += &format!(" stroke-dasharray=\"{} {}\"", DASH[0], DASH[1]);
        }
    }
    format!(" class=\"{}\"{attributes}", classes.join(" "))
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

fn write_text(out: &mut String, text: &Text, fixed: bool, used: &mut Used) -> std::fmt::Result {
    let rim = text.rim.then_some(Stroke { colour: WHITE, width: RIM, dashed: false });
    let colours = if fixed { format!(" fill=\"{}\"", hex(text.colour)) } else { paint(Some(text.colour), rim, used) };
    let rim = if rim.is_some() && !fixed { " paint-order=\"stroke\" stroke-linejoin=\"round\"" } else { "" };
    text_element(out, text, &colours, rim)
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
        let mut used = Used::default();
        let svg = write(&scene, "wide", "t", true, &mut used);
        let line = |end: &str| svg.lines().find(|l| l.ends_with(end)).unwrap_or_default().to_owned();
        assert!(!line(">on</text>").contains("class"), "{svg}");
        assert!(line(">beside</text>").contains("class=\"f1f1f24\""), "{svg}");
        assert!(svg.contains("<title>a &lt;b&gt;\nc</title>"), "{svg}");
        assert_eq!(used.fills.into_iter().collect::<Vec<_>>(), [INK]);
    }
}
