//! A scene as SVG.

use std::fmt::Write;

use memgauge_model::printable::is_obeyed;

use super::palette::{Colour, WHITE};
use super::png;
use super::scene::{Anchor, Area, DASH, Item, Point, RIM, Scene, Stroke, Text};

/// The whole document. Text stays text. Each carries its length, so that it takes the same space in a viewer that has another font.
pub(crate) fn write(scene: &Scene) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"Inter, 'Helvetica Neue', Arial, sans-serif\">\n<title>{}</title>\n<rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
        escape(&scene.title)
    );
    // Writing to a String cannot fail.
    let _ = draw(&mut out, scene, &mut Fixed);
    out.push_str("</svg>\n");
    out
}

/// How colours are written.
pub(super) trait Colours {
    /// The attribute of an image whose pixels are not smoothed.
    const PIXELATED: &'static str;
    /// Attributes of what is filled, or drawn with a pen, or both.
    fn attributes(&mut self, fill: Option<Colour>, stroke: Option<Stroke>) -> String;
    /// Attributes of a rectangle.
    fn of_area(&mut self, fill: Colour) -> String {
        self.attributes(Some(fill), None)
    }
    /// Attributes of a text for its colours, and what it needs for its rim. `below`: what was drawn before it.
    fn of_text(&mut self, text: &Text, below: &[Item]) -> (String, String);
}

/// Colours as they are.
struct Fixed;

impl Colours for Fixed {
    const PIXELATED: &'static str = "style=\"image-rendering:pixelated\"";

    fn attributes(&mut self, fill: Option<Colour>, stroke: Option<Stroke>) -> String {
        fill_and_pen(fill, stroke)
    }

    fn of_text(&mut self, text: &Text, _: &[Item]) -> (String, String) {
        let pen = fill_and_pen(None, Some(Stroke::new(WHITE, RIM)));
        let rim = if text.rim { format!(" paint-order=\"stroke\"{pen} stroke-linejoin=\"round\"") } else { String::new() };
        (fill_and_pen(Some(text.colour), None), rim)
    }
}

/// Draws all items.
pub(super) fn draw(out: &mut String, scene: &Scene, colours: &mut impl Colours) -> std::fmt::Result {
    scene.items.iter().enumerate().try_for_each(|(i, item)| draw_item(out, item, &scene.items[..i], colours))
}

fn draw_item<C: Colours>(out: &mut String, item: &Item, below: &[Item], colours: &mut C) -> std::fmt::Result {
    match item {
        Item::Rect { area, fill } => writeln!(out, "<rect{}{}/>", space(area), colours.of_area(*fill)),
        Item::Line { points, stroke } => {
            let pen = colours.attributes(None, Some(*stroke));
            match points.as_slice() {
                [a, b] => {
                    let [x1, y1, x2, y2] = [a.0, a.1, b.0, b.1].map(number);
                    writeln!(out, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"{pen}/>")
                }
                _ => writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\"{pen}/>", corners(points)),
            }
        }
        Item::Dot { centre, radius, fill, rim } => {
            let [x, y, r] = [centre.0, centre.1, *radius].map(number);
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"{}/>", colours.attributes(Some(*fill), *rim))
        }
        Item::Shape { points, fill, rim } => {
            writeln!(out, "<polygon points=\"{}\"{}/>", corners(points), colours.attributes(Some(*fill), *rim))
        }
        Item::Text(text) => {
            let (colours, rim) = colours.of_text(text, below);
            text_element(out, text, &colours, &rim)
        }
        Item::Pixels { area, columns, rows, colours } => {
            let image = base64(&png::pixels(*columns, *rows, colours).unwrap_or_default());
            let pixelated = C::PIXELATED;
            writeln!(out, "<image{} preserveAspectRatio=\"none\" {pixelated} href=\"data:image/png;base64,{image}\"/>", space(area))
        }
    }
}

fn corners(points: &[Point]) -> String {
    points.iter().map(|p| format!("{},{}", number(p.0), number(p.1))).collect::<Vec<_>>().join(" ")
}

/// The attributes that say where a shape is.
pub(super) fn space(area: &Area) -> String {
    let [x, y, width, height] = [area.x, area.y, area.width, area.height].map(number);
    format!(" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

/// An element of text with attributes for its colours and for its rim.
fn text_element(out: &mut String, text: &Text, colours: &str, rim: &str) -> std::fmt::Result {
    let (x, y) = (number(text.at.0), number(text.at.1));
    write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"{colours}", number(text.size))?;
    if text.weight.css() != 400 {
        write!(out, " font-weight=\"{}\"", text.weight.css())?;
    }
    match text.anchor {
        Anchor::Start => {}
        Anchor::Middle => out.push_str(" text-anchor=\"middle\""),
        Anchor::End => out.push_str(" text-anchor=\"end\""),
    }
    if text.upwards {
        write!(out, " transform=\"rotate(-90 {x} {y})\"")?;
    }
    out.push_str(rim);
    // One character cannot be spread.
    if text.content.chars().nth(1).is_some() {
        write!(out, " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", number(text.width))?;
    }
    writeln!(out, ">{}</text>", escape(&text.content))
}

/// Colours as attributes.
pub(super) fn fill_and_pen(fill: Option<Colour>, stroke: Option<Stroke>) -> String {
    let fill = fill.map(|fill| format!(" fill=\"{}\"", hex(fill))).unwrap_or_default();
    let Some(Stroke { colour, width, dashed }) = stroke else { return fill };
    let dashes = if dashed { format!(" stroke-dasharray=\"{} {}\"", DASH[0], DASH[1]) } else { String::new() };
    format!("{fill} stroke=\"{}\" stroke-width=\"{}\"{dashes}", hex(colour), number(width))
}

/// Hundredths are finer than any screen or printer shows.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

pub(super) fn hex(colour: Colour) -> String {
    let [r, g, b] = colour;
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// As text and attribute values need it. Characters that XML does not allow, or that a viewer would obey, are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if is_obeyed(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        let shown = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|t| base64(t.as_bytes()));
        assert_eq!(shown, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn nothing_breaks_out_of_the_document() {
        assert_eq!(escape("a<b> & \"c\"\u{7}\n\u{202e}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd} \u{fffd}");
        assert_eq!([1.0, -0.001, 2.504, 100.0].map(number), ["1", "0", "2.5", "100"]);
    }
}
