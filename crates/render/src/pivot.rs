//! Measurements in rows and columns: made once for the tables of texts and pages and for the panels of figures.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::result::Measurement;

/// Measurements by what those of a row share, and those of a column.
pub(crate) struct Pivot<'a, R, C> {
    /// Each once, in ascending order.
    pub(crate) rows: Vec<R>,
    pub(crate) columns: Vec<C>,
    cells: BTreeMap<(R, C), &'a Measurement>,
}

impl<'a, R: Ord + Clone, C: Ord + Clone> Pivot<'a, R, C> {
    /// `place`: the row and the column of a measurement. A cell has the first measurement that belongs into it.
    pub(crate) fn new(ms: &[&'a Measurement], place: impl Fn(&'a Measurement) -> (R, C)) -> Self {
        Self::of(ms.iter().map(|&m| (place(m), m)))
    }

    /// The same of measurements with their places.
    pub(crate) fn of(all: impl IntoIterator<Item = ((R, C), &'a Measurement)>) -> Self {
        let mut cells = BTreeMap::new();
        for (place, m) in all {
            cells.entry(place).or_insert(m);
        }
        Self {
            rows: sorted(cells.keys().map(|(row, _)| row.clone())),
            columns: sorted(cells.keys().map(|(_, column)| column.clone())),
            cells,
        }
    }

    /// The same over these rows and columns, whether anything was measured there or not.
    pub(crate) fn over(self, rows: &[R], columns: &[C]) -> Self {
        Self { rows: rows.to_vec(), columns: columns.to_vec(), ..self }
    }

    /// The same with its rows in the order in which these have them first.
    pub(crate) fn in_order(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        let mut first = BTreeMap::new();
        rows.into_iter().enumerate().for_each(|(i, row)| {
            first.entry(row).or_insert(i);
        });
        self.rows.sort_by_key(|row| first.get(row));
        self
    }

    pub(crate) fn get(&self, row: &R, column: &C) -> Option<&'a Measurement> {
        self.cells.get(&(row.clone(), column.clone())).copied()
    }

    /// All cells, row by row.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Option<&'a Measurement>> {
        self.rows.iter().flat_map(move |row| self.columns.iter().map(move |column| self.get(row, column)))
    }

    /// The measurements that its cells have.
    pub(crate) fn measurements(&self) -> Vec<&'a Measurement> {
        self.cells.values().copied().collect()
    }

    /// The measurements of a row, in the order of the columns.
    pub(crate) fn row(&self, row: &R) -> impl Iterator<Item = &'a Measurement> {
        self.columns.iter().filter_map(move |column| self.get(row, column))
    }
}

/// Each once, in ascending order.
pub(crate) fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().collect::<BTreeSet<T>>().into_iter().collect()
}

/// Measurements that share something, each kind as a table of its own.
pub(crate) fn layers<'a, K: Ord>(ms: &[&'a Measurement], key: impl Fn(&'a Measurement) -> K) -> BTreeMap<K, Vec<&'a Measurement>> {
    let mut layers: BTreeMap<K, Vec<&Measurement>> = BTreeMap::new();
    for &m in ms {
        layers.entry(key(m)).or_default().push(m);
    }
    layers
}
