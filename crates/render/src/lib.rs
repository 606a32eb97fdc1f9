#![forbid(unsafe_code)]
//! Output.
