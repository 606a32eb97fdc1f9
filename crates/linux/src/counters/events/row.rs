//! Tables of events and their rows.

use memgauge_model::metrics::Role;

/// An event and its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The vendor's name, in lower case as in `perf list`. If sysfs has an event of this name, its code is used instead.
    pub(crate) name: &'static str,
    /// Other names of the event in sysfs.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) roles: &'static [Role],
    pub(crate) code: Code,
}

/// The code of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Terms, encoded by the unit's `format/`.
    Terms(&'static str),
    /// An event of the kernel itself: `perf_event_attr.type` and `config`.
    Kernel(u32, u64),
}

/// The events of a core design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// The source of the codes.
    pub(crate) source: &'static str,
    /// Rows counted together.
    pub(crate) groups: &'static [&'static [Row]],
}

impl Table {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }
}

pub(super) const fn row(name: &'static str, roles: &'static [Role], terms: &'static str) -> Row {
    Row { name, aliases: &[], roles, code: Code::Terms(terms) }
}

pub(super) const fn alias(name: &'static str, aliases: &'static [&'static str], roles: &'static [Role], terms: &'static str) -> Row {
    Row { name, aliases, roles, code: Code::Terms(terms) }
}
