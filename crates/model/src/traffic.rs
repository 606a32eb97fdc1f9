//! Mixes of reads and writes, and how their bytes are counted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::ParseError;

mod mixes;

pub use mixes::{Mix, Operation, StoreKind};

/// The access pattern of traffic.
///
/// Kernels of different forms never compete in one trial: they are different measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Form {
    /// In which order it visits lines.
    pub access: Access,
    /// How it uses a line, if not by loading or storing all of it.
    pub line: LineUse,
}

impl Form {
    /// The form for traffic of `mix` with this access and line use. Only strided kernels touch parts of lines, random access uses whole
    /// lines only, and neither loads nor non-temporal stores leave anything to write back.
    pub fn new(mix: Mix, access: Access, line: LineUse) -> Self {
        let plain_stores = mix.lines().1 > 0 && !mix.non_temporal();
        match (access, line) {
            (Access::Random, _) => Self { access, line: LineUse::Whole },
            (_, LineUse::Part) => Self { access: Access::Strided, line },
            (_, LineUse::WrittenBack) if !plain_stores => Self { access, line: LineUse::Whole },
            _ => Self { access, line },
        }
    }

    /// Whether it visits every line in ascending order and touches all of it.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// In which order traffic visits lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Every line, one after the other.
    #[default]
    Sequential,
    /// One line in every stride, in ascending order.
    Strided,
    /// Every line of an address window, in pseudo-random order. No access waits for another.
    Random,
    /// Blocks of lines in pseudo-random order, the lines of each in ascending order.
    Blocks,
}

/// What traffic does with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LineUse {
    /// Loads or stores all of it.
    #[default]
    Whole,
    /// Loads or stores only its first bytes, the width of one access. Memory still moves the whole line, and every core must read a
    /// line before it stores a part of it.
    Part,
    /// Loads or stores all of it. Stored lines are then written back to memory by a separate instruction (CLWB, CLFLUSHOPT, `dc cvac`).
    WrittenBack,
    /// Loads all of it and keeps a checksum of what was loaded.
    Checked,
    /// Stores all of it. After each block its lines are made durable: nothing later is stored before.
    Persisted(PersistMethod),
    /// The same, and each line is loaded again once it is durable, before anything else is done.
    ReadBack(PersistMethod),
}

impl LineUse {
    /// How lines are made durable, if they are.
    pub const fn persists(self) -> Option<PersistMethod> {
        match self {
            Self::Persisted(method) | Self::ReadBack(method) => Some(method),
            _ => None,
        }
    }
}

/// How stored lines are made durable: by what they leave the caches, and what then waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PersistMethod {
    /// x86-64: `clwb`, which may leave the line in the caches, and `sfence`.
    Clwb,
    /// x86-64: `clflushopt` and `sfence`.
    Clflushopt,
    /// x86-64: `clflush`, one line after the other, and `sfence`.
    Clflush,
    /// x86-64: non-temporal stores and `sfence`.
    NtStore,
    /// aarch64: `dc cvap`, to the point of persistence, and `dsb`.
    Cvap,
    /// aarch64: `dc cvadp`, to the point of deep persistence, and `dsb`.
    Cvadp,
}

impl PersistMethod {
    /// Every method.
    pub const ALL: [Self; 6] = [Self::Clwb, Self::Clflushopt, Self::Clflush, Self::NtStore, Self::Cvap, Self::Cvadp];

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clwb => "clwb",
            Self::Clflushopt => "clflushopt",
            Self::Clflush => "clflush",
            Self::NtStore => "nt-store",
            Self::Cvap => "cvap",
            Self::Cvadp => "cvadp",
        }
    }
}

/// The width of one load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// 8 bytes, portable code.
    Scalar,
    /// 16 bytes, x86-64.
    Sse2,
    /// 32 bytes, x86-64.
    Avx2,
    /// 64 bytes, x86-64.
    Avx512,
    /// 16 bytes, aarch64 (pairs of them: 32).
    Neon,
    /// A string instruction, whose width the core decides.
    String,
}

impl Width {
    /// Every width.
    pub const ALL: [Self; 6] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512, Self::Neon, Self::String];

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::String => "string",
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether plain stores of whole lines read the line first (read for ownership).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rfo {
    /// They do.
    Yes,
    /// They do not, or the traffic has no plain stores.
    No,
    /// Not known on this machine.
    #[default]
    Unknown,
}

/// The content of one 64-byte line, written as 128 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct LineContent(pub [u8; 64]);

impl FromStr for LineContent {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, "128 hexadecimal digits, the content of one 64-byte line");
        if text.len() != 128 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut line = [0; 64];
        for (i, byte) in line.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| error())?;
        }
        Ok(Self(line))
    }
}

impl fmt::Display for LineContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl TryFrom<String> for LineContent {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<LineContent> for String {
    fn from(line: LineContent) -> Self {
        line.to_string()
    }
}
