//! Everything that asks the operating system: what the machine is ([`sysfs`]), what of it may be used ([`cpu`], [`limits`]), the state it is
//! in ([`environment`]).
//!
//! Whatever is a file is read below a root folder that the caller names, so that a recorded machine is read by the same code as the live one.

pub mod child;
pub mod cpu;
pub mod directory;
pub mod environment;
pub mod limits;
pub mod msr;
pub mod prefetch;
pub mod smbios;
pub mod sysfs;

pub mod clock;
pub mod memory;
pub mod noise;
pub mod perf;
pub mod start_signal;
