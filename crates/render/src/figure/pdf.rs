//! Scenes as a PDF: a page for each, the fonts embedded once.

use std::collections::{BTreeMap, BTreeSet};

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, TextRenderingMode, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::font::{CAPITALS, DESCENT, Font, Weight};
use super::palette::{Colour, WHITE};
use super::scene::{DASH, Item, Point, RIM, Scene, Stroke, Text};

/// A user unit is 1/96 inch, a point of PDF 1/72.
const POINTS: f32 = 0.75;
/// How hard streams are compressed: zlib's default.
const LEVEL: u8 = 6;
/// PDF 1.4 readers take pages of up to 14,400 points; larger ones are scaled down.
const LARGEST: f32 = 14_400.0;
/// Control points of a quarter circle's curve.
const ROUND: f32 = 0.552_284_8;

const IDENTITY: SystemInfo<'_> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// A page, drawn.
struct PdfPage<'a> {
    id: Ref,
    contents: Ref,
    size: (f32, f32),
    drawing: Drawing<'a>,
    images: Vec<(String, Ref)>,
}

/// Pictures as a PDF file, each on a page of its size.
pub(crate) fn write(title: &str, scenes: &[Scene]) -> Vec<u8> {
    let mut refs = (1..).map(Ref::new);
    let mut next = || refs.next().unwrap_or(Ref::new(1));
    let (catalog, tree, info) = (next(), next(), next());
    let mut pages = Vec::new();
    for scene in scenes {
        let scale = POINTS.min(LARGEST / scene.width.max(scene.height).max(1.0) as f32);
        let (w, h) = (scene.width as f32 * scale, scene.height as f32 * scale);
        let mut drawing = Drawing::new();
        // From here on, y grows downwards as in the scene.
        drawing.content.transform([scale, 0.0, 0.0, -scale, 0.0, h]);
        for item in &scene.items {
            drawing.draw(item);
        }
        let images = (0..drawing.images.len()).map(|i| (format!("I{i}"), next())).collect();
        pages.push(PdfPage { id: next(), contents: next(), size: (w, h), drawing, images });
    }
    // All pages share the fonts.
    let mut used: BTreeMap<Weight, BTreeSet<(u16, char)>> = BTreeMap::new();
    for (weight, glyphs) in pages.iter().flat_map(|p| &p.drawing.used) {
        used.entry(*weight).or_default().extend(glyphs);
    }
    let fonts: Vec<(Weight, FontRefs)> =
        used.keys().map(|&w| (w, FontRefs { font: next(), cid: next(), descriptor: next(), unicode: next(), file: next() })).collect();

    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(tree);
    pdf.document_info(info).title(TextStr(title)).creator(TextStr("memgauge"));
    pdf.pages(tree).kids(pages.iter().map(|p| p.id)).count(pages.len() as i32);
    for page in pages {
        write_page(&mut pdf, page, tree, &fonts);
    }
    for (weight, refs) in fonts {
        if let Some(glyphs) = used.get(&weight) {
            embed(&mut pdf, &refs, weight, glyphs);
        }
    }
    pdf.finish()
}

fn write_page(
    pdf: &mut Pdf,
    PdfPage { id, contents, size: (w, h), drawing, images }: PdfPage<'_>,
    tree: Ref,
    fonts: &[(Weight, FontRefs)],
) {
    let mut page = pdf.page(id);
    page.media_box(Rect::new(0.0, 0.0, w, h)).parent(tree).contents(contents);
    let mut resources = page.resources();
    let mut dict = resources.fonts();
    for (weight, refs) in fonts {
        dict.pair(font_name(*weight), refs.font);
    }
    dict.finish();
    let mut dict = resources.x_objects();
    for (name, id) in &images {
        dict.pair(Name(name.as_bytes()), *id);
    }
    dict.finish();
    resources.finish();
    page.finish();
    let content = drawing.content.finish();
    pdf.stream(contents, &compress_to_vec_zlib(&content, LEVEL)).filter(Filter::FlateDecode);
    for ((_, id), (columns, rows, colours)) in images.iter().zip(&drawing.images) {
        let bytes = compress_to_vec_zlib(&colours.concat(), LEVEL);
        let mut image = pdf.image_xobject(*id, &bytes);
        image.width(*columns as i32).height(*rows as i32).bits_per_component(8).interpolate(false);
        image.filter(Filter::FlateDecode);
        image.color_space().device_rgb();
    }
}

struct FontRefs {
    font: Ref,
    cid: Ref,
    descriptor: Ref,
    unicode: Ref,
    file: Ref,
}

fn font_name(weight: Weight) -> Name<'static> {
    match weight {
        Weight::Regular => Name(b"F0"),
        Weight::SemiBold => Name(b"F1"),
    }
}

/// Glyphs by number, as CFF fonts are embedded (ISO 32000-1, 9.7.4); a table leads back to characters, so that text can be searched
/// and copied.
fn embed(pdf: &mut Pdf, refs: &FontRefs, weight: Weight, glyphs: &BTreeSet<(u16, char)>) {
    let font = Font::with_weight(weight);
    let name = Name(weight.postscript_name().as_bytes());
    pdf.type0_font(refs.font).base_font(name).encoding_predefined(Name(b"Identity-H")).descendant_font(refs.cid).to_unicode(refs.unicode);
    let mut cid = pdf.cid_font(refs.cid);
    cid.subtype(CidFontType::Type0).base_font(name).system_info(IDENTITY).font_descriptor(refs.descriptor).default_width(0.0);
    let mut widths = cid.widths();
    // By glyph: several characters may share one, such as all that the font lacks.
    let by_glyph: BTreeMap<u16, char> = glyphs.iter().copied().collect();
    for &glyph in by_glyph.keys() {
        widths.consecutive(glyph, [(font.advance(glyph) * 1000.0) as f32]);
    }
    widths.finish();
    cid.finish();
    let thousand = |v: f64| (v * 1000.0) as f32;
    pdf.font_descriptor(refs.descriptor)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(-750.0, -300.0, 2600.0, 1100.0))
        .italic_angle(0.0)
        .ascent(thousand(0.97))
        .descent(thousand(-DESCENT))
        .cap_height(thousand(CAPITALS))
        .stem_v(if weight == Weight::Regular { 90.0 } else { 140.0 })
        .font_file3(refs.file);
    let mut cmap = UnicodeCmap::new(Name(b"Custom"), IDENTITY);
    for (&glyph, &c) in &by_glyph {
        cmap.pair(glyph, c);
    }
    pdf.cmap(refs.unicode, &cmap.finish());
    let cff = compress_to_vec_zlib(weight.cff(), LEVEL);
    pdf.stream(refs.file, &cff).filter(Filter::FlateDecode).pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
}

struct Drawing<'a> {
    content: Content,
    /// Glyphs in use, and the characters that they are.
    used: BTreeMap<Weight, BTreeSet<(u16, char)>>,
    images: Vec<(usize, usize, &'a [Colour])>,
}

impl<'a> Drawing<'a> {
    fn new() -> Self {
        Self { content: Content::new(), used: BTreeMap::new(), images: Vec::new() }
    }

    fn fill(&mut self, [r, g, b]: Colour) {
        let part = |v: u8| f32::from(v) / 255.0;
        self.content.set_fill_rgb(part(r), part(g), part(b));
    }

    fn pen(&mut self, [r, g, b]: Colour, width: f64, dashed: bool) {
        let part = |v: u8| f32::from(v) / 255.0;
        self.content.set_stroke_rgb(part(r), part(g), part(b)).set_line_width(width as f32);
        self.content.set_line_cap(LineCapStyle::ButtCap).set_line_join(LineJoinStyle::RoundJoin);
        let dashes = DASH.map(|v| v as f32);
        self.content.set_dash_pattern(if dashed { dashes.to_vec() } else { vec![] }, 0.0);
    }

    fn draw(&mut self, item: &'a Item) {
        match item {
            Item::Rect { area, fill } => {
                self.fill(*fill);
                self.content.rect(area.x as f32, area.y as f32, area.width as f32, area.height as f32).fill_nonzero();
            }
            Item::Line { points, stroke } => {
                self.pen(stroke.colour, stroke.width, stroke.dashed);
                self.lines(points);
                self.content.stroke();
            }
            Item::Dot { centre, radius, fill, rim } => {
                self.fill(*fill);
                self.circle(*centre, *radius as f32);
                self.paint(*rim);
            }
            Item::Shape { points, fill, rim } => {
                self.fill(*fill);
                self.lines(points);
                self.content.close_path();
                self.paint(*rim);
            }
            Item::Text(text) => self.text(text),
            Item::Pixels { area, columns, rows, colours } => {
                let name = format!("I{}", self.images.len());
                self.images.push((*columns, *rows, colours));
                self.content.save_state();
                // An image fills the unit square, its first row at the top where y is 1.
                self.content.transform([area.width as f32, 0.0, 0.0, -area.height as f32, area.x as f32, area.bottom() as f32]);
                self.content.x_object(Name(name.as_bytes()));
                self.content.restore_state();
            }
        }
    }

    fn lines(&mut self, points: &[Point]) {
        for (i, &(x, y)) in points.iter().enumerate() {
            if i == 0 {
                self.content.move_to(x as f32, y as f32)
            } else {
                self.content.line_to(x as f32, y as f32)
            };
        }
    }

    /// Fills what was outlined, and draws its rim.
    fn paint(&mut self, rim: Option<Stroke>) {
        match rim {
            Some(rim) => {
                self.pen(rim.colour, rim.width, rim.dashed);
                self.content.fill_nonzero_and_stroke();
            }
            None => {
                self.content.fill_nonzero();
            }
        }
    }

    fn circle(&mut self, centre: Point, r: f32) {
        let (x, y, k) = (centre.0 as f32, centre.1 as f32, r * ROUND);
        self.content
            .move_to(x + r, y)
            .cubic_to(x + r, y + k, x + k, y + r, x, y + r)
            .cubic_to(x - k, y + r, x - r, y + k, x - r, y)
            .cubic_to(x - r, y - k, x - k, y - r, x, y - r)
            .cubic_to(x + k, y - r, x + r, y - k, x + r, y)
            .close_path();
    }

    fn text(&mut self, text: &Text) {
        let font = Font::with_weight(text.weight);
        let used = self.used.entry(text.weight).or_default();
        let mut codes = Vec::with_capacity(text.content.len() * 2);
        for c in text.content.chars() {
            let glyph = font.glyph(c);
            used.insert((glyph, c));
            codes.extend(glyph.to_be_bytes());
        }
        let (x, y) = text.start();
        let (x, y) = (x as f32, y as f32);
        // Letters stand upright although y grows downwards.
        let matrix = if text.upwards { [0.0, -1.0, -1.0, 0.0, x, y] } else { [1.0, 0.0, 0.0, -1.0, x, y] };
        if text.rim {
            self.pen(WHITE, RIM, false);
            self.show(text, matrix, TextRenderingMode::Stroke, &codes);
        }
        self.fill(text.colour);
        self.show(text, matrix, TextRenderingMode::Fill, &codes);
    }

    fn show(&mut self, text: &Text, matrix: [f32; 6], mode: TextRenderingMode, codes: &[u8]) {
        self.content
            .begin_text()
            .set_font(font_name(text.weight), text.size as f32)
            .set_text_rendering_mode(mode)
            .set_text_matrix(matrix)
            .show(Str(codes))
            .end_text();
    }
}
