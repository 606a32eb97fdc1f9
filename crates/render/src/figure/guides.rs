//! Places the names of vertical lines: above the data, in rows, so that no line passes through a name.

/// Height of a row of names.
pub(crate) const ROW: f64 = 17.0;
/// Space between a line and a name.
const CLEAR: f64 = 4.0;
/// More lines than this are not arranged: their names would take the plot.
const MOST: usize = 8;

/// Place of a line's name. The line begins at the top of its row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) row: usize,
    /// Left end of the name.
    pub(crate) left: f64,
}

/// A line at `x` whose name is `width` wide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    pub(crate) x: f64,
    pub(crate) width: f64,
}

/// Places for the names of these lines between two ends, in as few rows as possible; `None` for all where there are none.
pub(crate) fn arrange(lines: &[Line], from: f64, to: f64) -> Option<Vec<Place>> {
    if lines.len() > MOST {
        return None;
    }
    (1..=lines.len().max(1)).find_map(|rows| {
        let mut placed = Vec::new();
        place_rest(lines, rows, (from, to), &mut placed).then_some(placed)
    })
}

/// Places the lines that follow those already placed; goes back where one finds no place.
fn place_rest(lines: &[Line], rows: usize, (from, to): (f64, f64), placed: &mut Vec<Place>) -> bool {
    let Some(line) = lines.get(placed.len()) else { return true };
    for row in 0..rows {
        for left in [line.x - CLEAR - line.width, line.x + CLEAR] {
            let place = Place { row, left };
            let inside = left >= from && left + line.width <= to;
            let clear = lines.iter().zip(placed.iter()).all(|(other, there)| is_clear((line, &place), (other, there)));
            if inside && clear {
                placed.push(place);
                if place_rest(lines, rows, (from, to), placed) {
                    return true;
                }
                placed.pop();
            }
        }
    }
    false
}

/// Whether neither name touches the other or the other's line.
fn is_clear(a: (&Line, &Place), b: (&Line, &Place)) -> bool {
    let end = |(line, place): (&Line, &Place)| place.left + line.width;
    let apart = a.1.row != b.1.row || end(a) + CLEAR < b.1.left || end(b) + CLEAR < a.1.left;
    // A line goes down from its row.
    let crosses = |(line, at): (&Line, &Place), name: (&Line, &Place)| {
        at.row <= name.1.row && line.x > name.1.left - CLEAR + 0.5 && line.x < end(name) + CLEAR - 0.5
    };
    apart && !crosses(a, b) && !crosses(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_passes_through_a_name() {
        for xs in [
            vec![300.0, 310.0, 330.0, 335.0],
            vec![5.0, 8.0, 20.0, 90.0],
            vec![100.0, 100.0, 400.0],
            vec![10.0],
            vec![],
            vec![395.0, 399.0],
        ] {
            let lines: Vec<Line> = xs.iter().map(|x| Line { x: *x, width: 80.0 }).collect();
            let places = arrange(&lines, 0.0, 400.0).unwrap();
            for (i, (line, at)) in lines.iter().zip(&places).enumerate() {
                assert!(at.left >= 0.0 && at.left + 80.0 <= 400.0);
                for (j, (other, name)) in lines.iter().zip(&places).enumerate() {
                    let within = line.x > name.left && line.x < name.left + 80.0 && at.row <= name.row;
                    assert!(!within, "{xs:?}: line {i} passes through the name of {j}: {places:?}");
                    let overlap = i != j && at.row == name.row && (at.left - name.left).abs() < 80.0;
                    assert!(!overlap, "{xs:?}: {i} {j} {other:?}");
                }
            }
        }
    }

    #[test]
    fn names_that_have_room_take_one_row() {
        let lines = [100.0, 250.0, 390.0].map(|x| Line { x, width: 80.0 });
        assert!(arrange(&lines, 0.0, 400.0).unwrap().iter().all(|p| p.row == 0));
        assert_eq!(arrange(&[Line { x: 10.0, width: 500.0 }], 0.0, 400.0), None);
    }
}
