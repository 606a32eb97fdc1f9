//! What a table of events consists of.

use memgauge_core::metrics::Role;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The vendor's name, in lower case as `perf list` writes it. Where sysfs names an event so, that code is taken.
    pub(crate) name: &'static str,
    /// Other names that sysfs has for it.
    pub(crate) aliases: &'static [&'static str],
    /// Its roles.
    pub(crate) roles: &'static [Role],
    /// Its code.
    pub(crate) code: Code,
}

/// How the kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Parts of a code, placed as the unit's `format/` says.
    Terms(&'static str),
    /// An event of the kernel itself: `perf_event_attr.type` and `config`.
    Kernel(u32, u64),
}

/// Events of a core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// Where the codes were read.
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
