//! The results: the public contract. `schema/result.schema.json` is generated from these types.

mod asked;
mod bounds;
mod common;
mod curves;
mod difference;
mod environment;
mod evidence;
mod health;
mod integrity;
mod interleave;
mod matrix;
mod measurement;
mod moment;
mod persistent;
mod reference;
mod report;
mod stamp;
mod summary;

pub use asked::*;
pub use bounds::MAX_LABEL_BYTES;
pub use common::*;
pub use curves::*;
pub use difference::*;
pub use environment::*;
pub use evidence::*;
pub use health::*;
pub use integrity::*;
pub use interleave::*;
pub use matrix::*;
pub use measurement::*;
pub use moment::*;
pub use persistent::*;
pub use reference::*;
pub use report::*;
pub use stamp::*;
pub use summary::*;
