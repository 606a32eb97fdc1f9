//! The drop-in: mlc's command lines in, mlc's tables out, memgauge's engine in between.
//!
//! Standard output holds the banner, the header lines and the tables, flushed row by row. Everything else goes to standard error.

pub(crate) mod files;
pub(crate) mod letters;
mod live;
mod messages;
mod prefetchers;
pub(crate) mod run;
mod sections;
#[cfg(test)]
mod tests;
mod text;
mod traffic;
