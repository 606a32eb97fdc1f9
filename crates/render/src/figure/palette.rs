//! Colours that people with any colour vision tell apart.

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Marker {
    #[default]
    Circle,
    Square,
    Diamond,
    Triangle,
}

pub(crate) const WHITE: Colour = [255, 255, 255];
/// Text and axes.
pub(crate) const INK: Colour = [31, 31, 36];
/// Text of second rank: 5.7:1 against white.
pub(crate) const GREY: Colour = [98, 98, 106];
/// Grid lines.
pub(crate) const GRID: Colour = [226, 226, 230];
/// Bands behind a plot.
pub(crate) const BAND: Colour = [245, 245, 248];
/// Cells without a value.
pub(crate) const EMPTY: Colour = [235, 235, 238];
/// Cells of a map whose values are all one: neither high nor low.
pub(crate) const NEUTRAL: Colour = [196, 209, 220];

/// The stroke through cells that have no value because there is nothing to measure.
pub(crate) const STRUCK: Colour = [190, 190, 196];

/// Okabe and Ito's palette ("Color Universal Design", 2008), strongest on white first. Its yellow, too light for a line on white, is
/// left out, and black, which text has.
pub(crate) const SERIES: [Colour; 6] = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233]];

/// Lines in one chart, one for each colour. Readers cannot distinguish more.
pub(crate) const MAX_SERIES: usize = SERIES.len();

/// For more series than that: dark ones, which lightness tells from the first six whatever the colour vision.
const DARK: [Colour; 6] = [[0, 40, 100], [125, 45, 0], [0, 80, 40], [110, 30, 110], [120, 110, 0], [70, 70, 75]];

/// The colour of the nth series.
pub(crate) fn series(n: usize) -> Colour {
    let palette = if (n / SERIES.len()).is_multiple_of(2) { SERIES } else { DARK };
    palette[n % SERIES.len()]
}

/// The colour and the shape that distinguish a series from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Style {
    pub(crate) colour: Colour,
    /// The shape of its points; `None` for bars.
    pub(crate) marker: Option<Marker>,
}

impl Style {
    /// Of the nth series of points: with each use of the palette another shape.
    pub(crate) fn of_points(n: usize) -> Self {
        const SHAPES: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Diamond, Marker::Triangle];
        Self { colour: series(n), marker: Some(SHAPES[n / SERIES.len() % SHAPES.len()]) }
    }

    /// Of the nth series of bars.
    pub(crate) fn of_bars(n: usize) -> Self {
        Self { colour: series(n), marker: None }
    }
}

/// Points of the map "cividis" (Nuñez, Anderton and Renslow, "Optimizing colormaps with consideration for color vision deficiency",
/// PLoS ONE 2018), evenly spread; between them it is nearly linear.
const CIVIDIS: [Colour; 11] = [
    [0, 34, 78],
    [18, 53, 112],
    [59, 73, 108],
    [87, 93, 109],
    [112, 113, 115],
    [138, 134, 120],
    [165, 156, 116],
    [195, 179, 105],
    [225, 204, 85],
    [250, 222, 60],
    [254, 232, 56],
];

/// Near cells, which would take most of the main map's range: light to dark green, a hue that [`CIVIDIS`] does not have. The lightest is
/// not the white of cells without a value.
const NEAR: [Colour; 3] = [[160, 219, 197], [96, 184, 154], [0, 121, 88]];

/// Which map of colours a cell uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Map {
    Main,
    Near,
}

impl Map {
    /// The colour at 0, for the fastest, to 1, for the slowest. Darker is slower, in all maps of all figures.
    pub(crate) fn at(self, share: f64) -> Colour {
        let (stops, share): (&[Colour], f64) = match self {
            Self::Main => (&CIVIDIS, 1.0 - share),
            Self::Near => (&NEAR, share),
        };
        let last = stops.len() - 1;
        let place = if share.is_finite() { share.clamp(0.0, 1.0) * last as f64 } else { 0.0 };
        let i = (place as usize).min(last - 1);
        let part = place - i as f64;
        std::array::from_fn(|k| (f64::from(stops[i][k]) * (1.0 - part) + f64::from(stops[i + 1][k]) * part).round() as u8)
    }
}

/// Relative luminance by WCAG 2.1.
fn luminance(colour: Colour) -> f64 {
    let linear = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Dark or white text, whichever reads better on a background.
pub(crate) fn text_on(background: Colour) -> Colour {
    if contrast(INK, background) >= contrast(WHITE, background) { INK } else { WHITE }
}

/// The background of a page where the reader prefers dark ones.
pub(crate) const DARK_PAPER: Colour = [22, 24, 29];

/// The colour that replaces this one on [`DARK_PAPER`]: each neutral colour has a fixed counterpart, others get lighter until they are readable.
pub(crate) fn on_dark(colour: Colour) -> Colour {
    match colour {
        WHITE => DARK_PAPER,
        INK => [230, 230, 234],
        GREY => [170, 171, 181],
        GRID => [52, 55, 63],
        BAND => [33, 36, 42],
        EMPTY => [46, 49, 56],
        STRUCK => [92, 96, 105],
        mut other => {
            while contrast(other, DARK_PAPER) < 4.5 {
                other = other.map(|v| v + (255 - v).div_ceil(16));
            }
            other
        }
    }
}

/// Whether a colour is that of paper, ink or something between them, and not a value's or a series'.
pub(crate) fn is_neutral(colour: Colour) -> bool {
    [WHITE, INK, GREY, GRID, BAND, EMPTY, STRUCK].contains(&colour)
}

/// A series' colour as text on white: darkened until it reads.
pub(crate) fn text_of(mut colour: Colour) -> Colour {
    while contrast(colour, WHITE) < 4.5 {
        colour = colour.map(|v| (u16::from(v) * 19 / 20) as u8);
    }
    colour
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_on_every_colour_of_a_map() {
        for map in [Map::Main, Map::Near] {
            for i in 0..=100 {
                let colour = map.at(f64::from(i) / 100.0);
                assert!(contrast(text_on(colour), colour) >= 4.0, "{map:?} {i}: {colour:?}");
            }
        }
        assert!(SERIES.map(text_of).iter().all(|c| contrast(*c, WHITE) >= 4.5) && contrast(GREY, WHITE) >= 4.5);
    }

    #[test]
    fn every_colour_reads_on_dark_paper() {
        for colour in SERIES.into_iter().chain(DARK).chain(SERIES.map(text_of)).chain([INK, GREY, [0, 0, 0]]) {
            assert!(contrast(on_dark(colour), DARK_PAPER) >= 4.5, "{colour:?} becomes {:?}", on_dark(colour));
        }
        assert!(contrast(on_dark(INK), on_dark(BAND)) >= 4.5 && contrast(on_dark(GREY), on_dark(EMPTY)) >= 3.0);
    }

    #[test]
    fn slower_is_darker_in_every_map() {
        let steps = |map: Map| (0..=50).map(move |i| luminance(map.at(f64::from(i) / 50.0)));
        for map in [Map::Main, Map::Near] {
            assert!(steps(map).zip(steps(map).skip(1)).all(|(fast, slow)| fast >= slow), "{map:?}");
            assert!(luminance(map.at(0.0)) - luminance(map.at(1.0)) > 0.3, "{map:?}");
            assert!(contrast(map.at(0.0), WHITE) > 1.2, "{map:?}: the fastest is not the white of the diagonal");
        }
        assert_eq!(Map::Main.at(f64::NAN), CIVIDIS[0]);
    }

    #[test]
    fn twelve_series_differ_in_colour_and_the_second_six_in_shape() {
        let styles: Vec<Style> = (0..12).map(Style::of_points).collect();
        for (i, a) in styles.iter().enumerate() {
            assert!(contrast(a.colour, WHITE) > 1.9, "{i} is too light for a line");
            for (j, b) in styles.iter().enumerate().skip(i + 1) {
                let apart: i32 = a.colour.iter().zip(b.colour).map(|(x, y)| (i32::from(*x) - i32::from(y)).abs()).sum();
                assert!(apart > 60, "{i} and {j}: {a:?} {b:?}");
                assert!(i / 6 == j / 6 || a.marker != b.marker, "{i} and {j}");
            }
        }
    }
}
