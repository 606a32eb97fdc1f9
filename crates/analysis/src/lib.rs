//! Interprets measured numbers: those of one run ([`conclusions`]), and those of several runs in comparison ([`comparison`]). It gives advice
//! ([`advice`]), sets the numbers beside published ones of machines of the same kind ([`mod@reference`]), and finds their place among those of
//! many hosts ([`fleet`]).
//!
//! Nothing here does I/O, reads a clock or is `unsafe`: all of it is computed from reports.
#![forbid(unsafe_code)]

pub mod advice;
pub mod comparison;
pub mod conclusions;
pub mod fleet;
pub mod reference;
pub mod residency;
