//! The tests of the whole crate, and the fixture that the tests of its parts share.

pub(crate) mod fixture;
mod garbage;
