//! The results: the public contract. `schema/result.schema.json` is generated from these types.

mod curves;
mod environment;
mod evidence;
mod integrity;
mod matrix;
mod measurement;
mod report;
mod summary;

pub use curves::*;
pub use environment::*;
pub use evidence::*;
pub use integrity::*;
pub use matrix::*;
pub use measurement::*;
pub use report::*;
pub use summary::*;
