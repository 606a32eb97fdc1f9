//! What came out: the result contract. `schema/result.schema.json` is generated from these types.

mod curves;
mod environment;
mod evidence;
mod health;
mod levels;
mod measurement;
mod report;

pub use curves::*;
pub use environment::*;
pub use evidence::*;
pub use health::*;
pub use levels::*;
pub use measurement::*;
pub use report::*;
