//! Places labels near the points that they name, and never on top of anything else.

use super::scene::{Area, Point};

/// Distances from the point that are tried, nearest first.
const DISTANCES: [f64; 5] = [7.0, 12.0, 18.0, 26.0, 36.0];
/// Space kept around a label.
const CLEAR: f64 = 2.5;
/// Steps of the search through the whole plot, if the label does not fit near its point.
const LATTICE: f64 = 9.0;

/// A direction from the point to its label, in thirds of a right angle's sine and cosine; the order is the preference.
pub(crate) type Direction = (f64, f64);

pub(crate) const ABOVE: Direction = (0.0, -1.0);
pub(crate) const BELOW: Direction = (0.0, 1.0);
pub(crate) const LEFT: Direction = (-1.0, 0.0);
pub(crate) const RIGHT: Direction = (1.0, 0.0);
pub(crate) const UPPER_LEFT: Direction = (-1.0, -1.0);
pub(crate) const UPPER_RIGHT: Direction = (1.0, -1.0);
pub(crate) const LOWER_LEFT: Direction = (-1.0, 1.0);
pub(crate) const LOWER_RIGHT: Direction = (1.0, 1.0);

/// Finds places for labels in a plot.
#[derive(Debug, Clone)]
pub(crate) struct Placer {
    bounds: Area,
    /// Labels and markers: never covered.
    taken: Vec<Area>,
    /// Lines of data: never covered.
    lines: Vec<(Point, Point)>,
    /// Heights of grid lines: covered when nothing better is near.
    grid: Vec<f64>,
}

impl Placer {
    pub(crate) fn new(bounds: Area) -> Self {
        Self { bounds, taken: Vec::new(), lines: Vec::new(), grid: Vec::new() }
    }
    pub(crate) fn reserve(&mut self, area: Area) {
        self.taken.push(area);
    }
    pub(crate) fn reserve_line(&mut self, points: &[Point]) {
        self.lines.extend(points.iter().zip(points.iter().skip(1)).map(|(a, b)| (*a, *b)));
    }
    pub(crate) fn grid(&mut self, y: f64) {
        self.grid.push(y);
    }

    /// A place of this size near the point, in one of the directions; the place is reserved then.
    pub(crate) fn near(&mut self, point: Point, size: (f64, f64), directions: &[Direction]) -> Option<Area> {
        self.within(DISTANCES.len(), point, size, directions)
    }

    /// The same, but so close that it cannot seem to belong to another point.
    pub(crate) fn close(&mut self, point: Point, size: (f64, f64), directions: &[Direction]) -> Option<Area> {
        self.within(2, point, size, directions)
    }

    /// The same for a point with a ring around it.
    pub(crate) fn close_to_ring(&mut self, point: Point, size: (f64, f64), directions: &[Direction]) -> Option<Area> {
        self.within(3, point, size, directions)
    }

    fn within(&mut self, distances: usize, point: Point, size: (f64, f64), directions: &[Direction]) -> Option<Area> {
        let mut best: Option<(f64, Area)> = None;
        for (i, distance) in DISTANCES.into_iter().take(distances).enumerate() {
            for (j, direction) in directions.iter().enumerate() {
                let area = beside(point, size, *direction, distance);
                if self.free(&area) {
                    let cost = i as f64 * 1.5 + j as f64 * 0.4 + if self.crosses_grid(&area) { 2.0 } else { 0.0 };
                    if best.is_none_or(|(lowest, _)| cost < lowest) {
                        best = Some((cost, area));
                    }
                }
            }
        }
        let (_, area) = best?;
        self.taken.push(area);
        Some(area)
    }

    /// The free place nearest to the point anywhere in the plot; the place is reserved then.
    pub(crate) fn anywhere(&mut self, point: Point, size: (f64, f64)) -> Option<Area> {
        let mut best: Option<(f64, Area)> = None;
        let steps = |space: f64| 0..=(space.max(0.0) / LATTICE) as usize;
        for i in steps(self.bounds.height - size.1) {
            for j in steps(self.bounds.width - size.0) {
                let (x, y) = (self.bounds.x + j as f64 * LATTICE, self.bounds.y + i as f64 * LATTICE);
                let area = Area::new(x, y, size.0, size.1);
                let (dx, dy) = (x + size.0 / 2.0 - point.0, y + size.1 / 2.0 - point.1);
                let distance = dx.hypot(dy) + if self.crosses_grid(&area) { 2.0 * LATTICE } else { 0.0 };
                if best.is_none_or(|(lowest, _)| distance < lowest) && self.free(&area) {
                    best = Some((distance, area));
                }
            }
        }
        let (_, area) = best?;
        self.taken.push(area);
        Some(area)
    }

    fn free(&self, area: &Area) -> bool {
        let around = area.grown(CLEAR);
        self.bounds.holds(area)
            && !self.taken.iter().any(|t| t.overlaps(&around))
            && !self.lines.iter().any(|(a, b)| crosses(&around, *a, *b))
    }

    fn crosses_grid(&self, area: &Area) -> bool {
        self.grid.iter().any(|y| area.y - 1.0 < *y && *y < area.bottom() + 1.0)
    }
}

/// The box of this size that lies beside the point.
fn beside(point: Point, (width, height): (f64, f64), (dx, dy): Direction, distance: f64) -> Area {
    let slant = if dx != 0.0 && dy != 0.0 { 0.7 } else { 1.0 };
    let along = |d: f64, at: f64, size: f64| match d {
        d if d < 0.0 => at - distance * slant - size,
        d if d > 0.0 => at + distance * slant,
        _ => at - size / 2.0,
    };
    Area::new(along(dx, point.0, width), along(dy, point.1, height), width, height)
}

/// Whether a line segment touches the box (Liang and Barsky's clipping).
fn crosses(area: &Area, a: Point, b: Point) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (step, room) in [(-dx, a.0 - area.x), (dx, area.right() - a.0), (-dy, a.1 - area.y), (dy, area.bottom() - a.1)] {
        if step == 0.0 {
            if room < 0.0 {
                return false;
            }
        } else if step < 0.0 {
            enter = enter.max(room / step);
        } else {
            leave = leave.min(room / step);
        }
    }
    enter <= leave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_boxes() {
        let area = Area::new(10.0, 10.0, 10.0, 10.0);
        assert!(crosses(&area, (0.0, 0.0), (30.0, 30.0)));
        assert!(crosses(&area, (12.0, 12.0), (13.0, 13.0)));
        assert!(crosses(&area, (0.0, 15.0), (30.0, 15.0)));
        assert!(!crosses(&area, (0.0, 5.0), (30.0, 5.0)));
        assert!(!crosses(&area, (0.0, 0.0), (9.0, 9.0)));
        assert!(!crosses(&area, (0.0, 25.0), (25.0, 21.0)));
    }

    #[test]
    fn labels_keep_clear_of_lines_markers_and_each_other() {
        let mut placer = Placer::new(Area::new(0.0, 0.0, 200.0, 100.0));
        placer.reserve_line(&[(0.0, 50.0), (200.0, 50.0)]);
        placer.reserve(Area::new(97.0, 47.0, 6.0, 6.0));
        let size = (40.0, 10.0);
        let all = [ABOVE, BELOW, LEFT, RIGHT];
        let mut placed: Vec<Area> = Vec::new();
        while let Some(area) = placer.near((100.0, 50.0), size, &all).or_else(|| placer.anywhere((100.0, 50.0), size)) {
            assert!(placed.iter().all(|p| !p.overlaps(&area)) && (area.bottom() <= 50.0 || area.y >= 50.0), "{area:?}");
            assert!(area.x >= 0.0 && area.right() <= 200.0 && area.y >= 0.0 && area.bottom() <= 100.0);
            placed.push(area);
        }
        assert!(placed.len() >= 12, "{}", placed.len());
    }

    #[test]
    fn a_label_avoids_the_grid_when_a_place_beside_is_free() {
        let mut placer = Placer::new(Area::new(0.0, 0.0, 200.0, 100.0));
        placer.grid(38.0);
        let area = placer.near((100.0, 50.0), (40.0, 10.0), &[ABOVE, BELOW]);
        assert!(area.is_some_and(|a| a.y > 50.0), "{area:?}");
    }
}
