//! What measured numbers mean: of one run ([`conclusions`]), of several runs that are compared ([`comparison`]), as advice ([`advice`]),
//! beside what was published about machines of the same kind ([`mod@reference`]), and among those of many hosts ([`fleet`]).
//!
//! Nothing here does I/O, reads a clock or is `unsafe`: all of it is computed from reports.
#![forbid(unsafe_code)]

pub mod advice;
pub mod comparison;
pub mod conclusions;
pub mod fleet;
pub mod reference;
