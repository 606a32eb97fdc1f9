//! The order in which parts of a plan are given up when time is short. Each cell and each point has a rank: those of rank 0 stay longest.

use std::collections::BTreeMap;

use crate::plan::steps::Cell;

/// Ranks of `n` points along an axis: 0 for both ends, then halvings of what is between them. The points up to any rank are evenly spread.
pub fn point_ranks(n: usize) -> Vec<u32> {
    let mut ranks: Vec<u32> = (0..n).map(|index| halvings(index, n)).collect();
    if let Some(last) = ranks.last_mut() {
        *last = 0;
    }
    ranks
}

/// The order in which to measure `n` points of an axis if time may end before all are: rank by rank, in turn upwards and downwards, so that
/// neighbours follow each other. Points that are `together` come before the others.
pub fn point_order(n: usize, together: impl Fn(usize) -> bool) -> Vec<usize> {
    let ranks = point_ranks(n);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&index| (!together(index), ranks[index], if ranks[index].is_multiple_of(2) { index } else { n - index }));
    order
}

/// Ranks of the cells of a step. Repeats come last, and before them all of a matrix but each node's own memory and one other node's. Of the rest
/// the first has rank 0, and the others are ranked by halvings. A step of repeats alone has them in the order of their worth.
pub fn cell_ranks(cells: &[Cell]) -> Vec<u32> {
    if cells.iter().all(|cell| cell.repeat) {
        return (0..cells.len() as u32).collect();
    }
    let pair = |cell: &Cell| cell.at.cpu_node.zip(cell.at.memory_node()).filter(|_| !cell.repeat);
    // The most distant number of a node: neighbours in one package have neighbouring numbers.
    let mut far: BTreeMap<u32, u32> = BTreeMap::new();
    for (row, column) in cells.iter().filter_map(pair).filter(|(row, column)| row != column) {
        let most = far.entry(row).or_insert(column);
        if column.abs_diff(row) > most.abs_diff(row) {
            *most = column;
        }
    }
    let stays = |cell: &Cell| !cell.repeat && pair(cell).is_none_or(|(row, column)| row == column || far.get(&row) == Some(&column));
    let lasting = cells.iter().filter(|cell| stays(cell)).count();
    let others = halvings(1, lasting) + 1;
    let mut index = 0..;
    let rank = |cell: &Cell| match () {
        () if cell.repeat => others + 1,
        () if stays(cell) => index.next().map_or(0, |index| halvings(index, lasting)),
        () => others,
    };
    cells.iter().map(rank).collect()
}

/// The rank of the item at `index` among `n`, if the list is halved again and again by dropping every second item: items dropped first have the
/// highest rank.
const fn halvings(index: usize, n: usize) -> u32 {
    match index {
        0 => 0,
        _ => (usize::BITS - n.saturating_sub(1).leading_zeros()).saturating_sub(index.trailing_zeros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_most_worth_are_both_ends_and_evenly_spread() {
        assert_eq!(point_ranks(9), [0, 4, 3, 4, 2, 4, 3, 4, 0]);
        assert_eq!(point_ranks(8), [0, 3, 2, 3, 1, 3, 2, 0]);
        assert_eq!([point_ranks(0), point_ranks(1), point_ranks(2)], [vec![], vec![0], vec![0, 0]]);
        for n in 0..100 {
            let (ranks, mut order) = (point_ranks(n), point_order(n, |_| false));
            assert!(order.is_sorted_by_key(|index| ranks[*index]), "{order:?}");
            order.sort_unstable();
            assert_eq!(order, (0..n).collect::<Vec<_>>());
        }
        // Up, down, up.
        assert_eq!(point_order(9, |_| false), [0, 8, 4, 6, 2, 1, 3, 5, 7]);
        assert_eq!(point_order(9, |index| index > 5), [8, 6, 7, 0, 4, 2, 1, 3, 5]);
    }
}
