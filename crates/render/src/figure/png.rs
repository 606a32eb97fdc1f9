//! A scene as pixels.

use std::collections::BTreeMap;

use tiny_skia::{
    Color, FillRule, FilterQuality, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, PixmapPaint, PixmapRef, Rect, StrokeDash,
    Transform,
};

use super::font::{Font, Segment, Weight};
use super::palette::{Colour, WHITE};
use super::scene::{DASH, Item, Point, RIM, Scene, Stroke, Text};
use crate::appearance::UNITS_PER_INCH;

/// Pixels of a user unit: two, as dense screens and print want, unless that makes more than this many pixels.
const DENSE: f64 = 2.0;
/// For figures of a given width, which are for paper: 300 pixels to an inch, as journals ask for.
const PRINT: f64 = 300.0 / UNITS_PER_INCH;
const MOST_PIXELS: f64 = 40e6;

/// The figure as a PNG file, in the density of print if so; `None` when it is too large for a bitmap.
pub(crate) fn write(scene: &Scene, print: bool) -> Option<Vec<u8>> {
    let wanted = if print { PRINT } else { DENSE };
    let scale = if scene.width * scene.height * wanted * wanted <= MOST_PIXELS { wanted } else { 1.0 };
    let mut pixmap = Pixmap::new((scene.width * scale).ceil() as u32, (scene.height * scale).ceil() as u32)?;
    pixmap.fill(Color::WHITE);
    let mut canvas = Canvas { pixmap, transform: Transform::from_scale(scale as f32, scale as f32), glyphs: BTreeMap::new() };
    for item in &scene.items {
        canvas.draw(item);
    }
    encode(&canvas.pixmap, scale)
}

/// PNG with the density that makes it as large on paper as the scene is. tiny-skia writes PNG without one.
fn encode(pixmap: &Pixmap, scale: f64) -> Option<Vec<u8>> {
    const INCHES_PER_METRE: f64 = 39.370_079;
    let density = (UNITS_PER_INCH * scale * INCHES_PER_METRE).round() as u32;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: density, yppu: density, unit: png::Unit::Meter }));
    let data = rgb(pixmap);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&data).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

/// Red, green and blue of each pixel of a figure, which is opaque. By index: an iterator that flattens takes most of the time of a figure where
/// nothing is optimised, as in tests.
fn rgb(pixmap: &Pixmap) -> Vec<u8> {
    let pixels = pixmap.data();
    let mut colours = vec![0; pixels.len() / 4 * 3];
    let bytes: &mut [u8] = &mut colours;
    for pixel in 0..pixels.len() / 4 {
        let (from, to) = (4 * pixel, 3 * pixel);
        bytes[to] = pixels[from];
        bytes[to + 1] = pixels[from + 1];
        bytes[to + 2] = pixels[from + 2];
    }
    colours
}

/// A bitmap of its own, as SVG embeds it.
pub(crate) fn pixels(columns: usize, rows: usize, colours: &[Colour]) -> Option<Vec<u8>> {
    bitmap(columns, rows, colours)?.encode_png().ok()
}

fn bitmap(columns: usize, rows: usize, colours: &[Colour]) -> Option<Pixmap> {
    let mut pixmap = Pixmap::new(u32::try_from(columns).ok()?, u32::try_from(rows).ok()?)?;
    for (pixel, &[r, g, b]) in pixmap.pixels_mut().iter_mut().zip(colours) {
        *pixel = tiny_skia::ColorU8::from_rgba(r, g, b, 255).premultiply();
    }
    Some(pixmap)
}

/// An outline, turned so that y grows downwards.
fn path(outline: &[Segment]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for segment in outline {
        match *segment {
            Segment::Move(x, y) => path.move_to(x, -y),
            Segment::Line(x, y) => path.line_to(x, -y),
            Segment::Cubic(a, b, c, d, x, y) => path.cubic_to(a, -b, c, -d, x, -y),
            Segment::Close => path.close(),
        }
    }
    path.finish()
}

/// Lines through points.
fn polygon(points: &[Point]) -> PathBuilder {
    let mut path = PathBuilder::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        if i == 0 { path.move_to(x as f32, y as f32) } else { path.line_to(x as f32, y as f32) }
    }
    path
}

struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
    /// Outlines, each made once.
    glyphs: BTreeMap<(Weight, u16), Option<Path>>,
}

impl Canvas {
    fn draw(&mut self, item: &Item) {
        match item {
            Item::Rect { area, fill } => {
                if let Some(rect) = Rect::from_xywh(area.x as f32, area.y as f32, area.width as f32, area.height as f32) {
                    self.pixmap.fill_rect(rect, &paint(*fill), self.transform, None);
                }
            }
            Item::Line { points, stroke } => {
                if let Some(path) = polygon(points).finish() {
                    self.stroke(&path, *stroke, self.transform);
                }
            }
            Item::Dot { centre, radius, fill, rim } => {
                self.filled(PathBuilder::from_circle(centre.0 as f32, centre.1 as f32, *radius as f32), *fill, *rim);
            }
            Item::Shape { points, fill, rim } => {
                let mut path = polygon(points);
                path.close();
                self.filled(path.finish(), *fill, *rim);
            }
            Item::Text(text) => self.text(text),
            Item::Pixels { area, columns, rows, colours } => {
                if let Some(bitmap) = bitmap(*columns, *rows, colours) {
                    self.image(bitmap.as_ref(), area.x, area.y, area.width / *columns as f64, area.height / *rows as f64);
                }
            }
        }
    }

    fn filled(&mut self, path: Option<Path>, fill: Colour, rim: Option<Stroke>) {
        let Some(path) = path else { return };
        self.pixmap.fill_path(&path, &paint(fill), FillRule::Winding, self.transform, None);
        if let Some(rim) = rim {
            self.stroke(&path, rim, self.transform);
        }
    }

    fn image(&mut self, image: PixmapRef<'_>, x: f64, y: f64, sx: f64, sy: f64) {
        let place = self.transform.pre_translate(x as f32, y as f32).pre_scale(sx as f32, sy as f32);
        let paint = PixmapPaint { quality: FilterQuality::Nearest, ..PixmapPaint::default() };
        self.pixmap.draw_pixmap(0, 0, image, &paint, place, None);
    }

    fn text(&mut self, text: &Text) {
        let font = Font::with_weight(text.weight);
        let (x, y) = text.start();
        let turned = if text.upwards { Transform::from_rotate(-90.0) } else { Transform::identity() };
        let base = self.transform.pre_translate(x as f32, y as f32).pre_concat(turned).pre_scale(text.size as f32, text.size as f32);
        // All rims first, so that none covers its neighbour's letter.
        for rim in [true, false] {
            if rim && !text.rim {
                continue;
            }
            let mut along = 0.0;
            for c in text.content.chars() {
                let glyph = font.glyph(c);
                let path = self.glyphs.entry((text.weight, glyph)).or_insert_with(|| path(&font.outline(glyph))).clone();
                let place = base.pre_translate(along as f32, 0.0);
                match path {
                    Some(path) if rim => self.stroke(&path, Stroke::new(WHITE, RIM / text.size), place),
                    Some(path) => self.pixmap.fill_path(&path, &paint(text.colour), FillRule::Winding, place, None),
                    None => {}
                }
                along += font.advance(glyph);
            }
        }
    }

    fn stroke(&mut self, path: &Path, stroke: Stroke, transform: Transform) {
        let dash = if stroke.dashed { StrokeDash::new(DASH.map(|v| v as f32).to_vec(), 0.0) } else { None };
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash,
            ..tiny_skia::Stroke::default()
        };
        self.pixmap.stroke_path(path, &paint(stroke.colour), &pen, transform, None);
    }
}

fn paint(colour: Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(colour[0], colour[1], colour[2], 255);
    paint
}
