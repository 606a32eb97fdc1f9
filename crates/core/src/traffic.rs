//! Mixes of reads and writes, and how their bytes are counted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::ParseError;

/// A mix of traffic, named by the reads and writes that a memory controller sees when plain stores first read
/// the line they write (read for ownership).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mix {
    /// Loads only.
    #[default]
    #[serde(rename = "all-reads")]
    AllReads,
    /// Eight loads to one plain store: 9 reads to 1 write on the bus, 90 % reads.
    #[serde(rename = "9:1")]
    R9W1,
    /// Three loads to one plain store: 4 reads to 1 write on the bus.
    #[serde(rename = "4:1")]
    R4W1,
    /// Two loads to one plain store: 3 reads to 1 write on the bus.
    #[serde(rename = "3:1")]
    R3W1,
    /// As [`R3W1`](Self::R3W1), its loads from two streams in turn.
    #[serde(rename = "3:1-x2")]
    R3W1X2,
    /// One load to one plain store: 2 reads to 1 write on the bus.
    #[serde(rename = "2:1")]
    R2W1,
    /// One load to two plain stores: 3 reads to 2 writes on the bus.
    #[serde(rename = "3:2")]
    R3W2,
    /// Plain stores only: 1 read to 1 write on the bus.
    #[serde(rename = "1:1")]
    R1W1,
    /// Non-temporal stores only.
    #[serde(rename = "nt-write")]
    NtWrite,
    /// Three loads of one stream to one non-temporal store.
    #[serde(rename = "3:1-nt")]
    R3W1Nt,
    /// Two loads of one stream to one non-temporal store.
    #[serde(rename = "2:1-nt-x1")]
    R2W1NtX1,
    /// Two read streams to one non-temporal store stream, like STREAM's triad.
    #[serde(rename = "triad", alias = "2:1-nt")]
    R2W1Nt,
    /// One read stream to one non-temporal store stream.
    #[serde(rename = "1:1-nt")]
    R1W1Nt,
    /// Each line loaded is stored elsewhere, by plain stores or `rep movsb`.
    #[serde(rename = "copy")]
    Copy,
    /// Lines filled by the machine's string instruction (`rep stosb`, `dc zva`), which may avoid reading them first.
    #[serde(rename = "fill")]
    Fill,
}

impl Mix {
    /// Every mix, in the order in which they are shown.
    pub const ALL: [Self; 15] = [
        Self::AllReads,
        Self::R9W1,
        Self::R4W1,
        Self::R3W1,
        Self::R3W1X2,
        Self::R2W1,
        Self::R3W2,
        Self::R1W1,
        Self::NtWrite,
        Self::R3W1Nt,
        Self::R2W1NtX1,
        Self::R2W1Nt,
        Self::R1W1Nt,
        Self::Copy,
        Self::Fill,
    ];

    /// The mixes that the suite measures. The others lie between two of these, or differ from one only in the number of streams.
    pub const PEAK: [Self; 10] =
        [Self::AllReads, Self::R4W1, Self::R3W1, Self::R2W1, Self::R1W1, Self::NtWrite, Self::R2W1Nt, Self::R1W1Nt, Self::Copy, Self::Fill];

    /// Its name, what it does, and the lines that the program loads and stores in one step.
    const fn properties(self) -> (&'static str, &'static str, (u32, u32)) {
        match self {
            Self::AllReads => ("all-reads", "loads only", (1, 0)),
            Self::R9W1 => ("9:1", "8 loads : 1 store", (8, 1)),
            Self::R4W1 => ("4:1", "3 loads : 1 store", (3, 1)),
            Self::R3W1 => ("3:1", "2 loads : 1 store", (2, 1)),
            Self::R3W1X2 => ("3:1-x2", "2 load streams : 1 store", (2, 1)),
            Self::R2W1 => ("2:1", "1 load : 1 store", (1, 1)),
            Self::R3W2 => ("3:2", "1 load : 2 stores", (1, 2)),
            Self::R1W1 => ("1:1", "stores only", (0, 1)),
            Self::NtWrite => ("nt-write", "non-temporal stores only", (0, 1)),
            Self::R3W1Nt => ("3:1-nt", "3 loads : 1 non-temporal store", (3, 1)),
            Self::R2W1NtX1 => ("2:1-nt-x1", "2 loads : 1 non-temporal store", (2, 1)),
            Self::R2W1Nt => ("triad", "2 load streams : 1 non-temporal store", (2, 1)),
            Self::R1W1Nt => ("1:1-nt", "1 load : 1 non-temporal store", (1, 1)),
            Self::Copy => ("copy", "load and store the same data elsewhere", (1, 1)),
            Self::Fill => ("fill", "string-instruction fill", (0, 1)),
        }
    }

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        self.properties().0
    }

    /// What it does, for people.
    pub const fn description(self) -> &'static str {
        self.properties().1
    }

    /// Lines loaded and lines stored by the program in one step.
    pub const fn lines(self) -> (u32, u32) {
        self.properties().2
    }

    /// Whether its stores go around the caches.
    pub const fn non_temporal(self) -> bool {
        matches!(self, Self::NtWrite | Self::R3W1Nt | Self::R2W1Nt | Self::R2W1NtX1 | Self::R1W1Nt)
    }

    /// The mix with the same loads and stores but with one read stream. In random order two streams cannot be told from one, so there are
    /// kernels for one stream only.
    pub const fn with_one_read_stream(self) -> Self {
        match self {
            Self::R3W1X2 => Self::R3W1,
            Self::R2W1Nt => Self::R2W1NtX1,
            other => other,
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a message says if a mix was expected.
const MIXES: &str =
    "a mix: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy or fill";

impl FromStr for Mix {
    type Err = ParseError;
    /// Also takes `reads`, `read`, `writes`, `write`, and `2:1-nt`, as earlier versions called the triad.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let lower = text.trim().to_ascii_lowercase();
        let name = match lower.as_str() {
            "reads" | "read" => "all-reads",
            "writes" | "write" => "1:1",
            "2:1-nt" => "triad",
            other => other,
        };
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| ParseError::new(text, MIXES))
    }
}

/// The access pattern of traffic.
///
/// Kernels of different forms never compete in one trial: they are different measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Form {
    /// In which order it visits lines.
    pub access: Access,
    /// What it does with a line, other than loading or storing all of it.
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
    /// Loads or stores only its first bytes, the width of one access. Memory still moves the whole line, and no core can avoid reading a
    /// line of which it stores a part.
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
