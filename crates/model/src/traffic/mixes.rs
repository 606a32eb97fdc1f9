//! The list of mixes. Its rows make everything that is known of a mix elsewhere: the type [`Mix`], kernels on each instruction set
//! (`crates/kernels/src/text.rs`), what its stores are compared with, the lists in help, messages and documents.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::units::ParseError;

/// Calls the macro `$with`, with `$arguments` and all mixes in the order of output.
///
/// A row says:
/// - `chunk`: what the program does for four lines, or for another divisor of 36 where the ratio needs it. Each step has
///   [operations](crate::traffic::Operation) on streams (`a`, `b` …), which alternate part by part of a line, and lines: their places in bytes
///   from where the streams stand;
/// - `stores`: the [kind](crate::traffic::StoreKind) of its stores;
/// - `kernel`: the two parts of its kernels' name, with their width between them;
/// - `name`: how the command line and results call it, and perhaps another name that is understood;
/// - `does`: what it does, for people;
/// - `suite`: whether the suite and `--peak` measure it. Others lie between two that they measure, or differ only in the number of streams.
#[macro_export]
macro_rules! mixes {
    ($with:ident $arguments:tt) => {
        $with! { $arguments
            /// Loads only.
            #[default]
            AllReads {
                chunk: { Load a at [0, 64, 128, 192]; }, stores: None, kernel: "load" "",
                name: "all-reads", does: "loads only", suite: true
            }
            /// Eight loads to one plain store: 9 reads to 1 write on the bus, 90 % reads.
            R9W1 {
                // No mix with non-temporal stores has its loads: nine lines and ten differ too little to distinguish.
                chunk: { Load a at [0, 64, 128, 192, 256, 320, 384, 448]; Store b at [0]; }, stores: Plain(None), kernel: "mix-9:1" "",
                name: "9:1", does: "8 loads : 1 store", suite: false
            }
            /// Three loads to one plain store: 4 reads to 1 write on the bus.
            R4W1 {
                chunk: { Load a at [0, 64, 128]; Store b at [0]; }, stores: Plain(Some(Mix::R3W1Nt)), kernel: "mix-4:1" "",
                name: "4:1", does: "3 loads : 1 store", suite: true
            }
            /// Two loads to one plain store: 3 reads to 1 write on the bus.
            R3W1 {
                chunk: { Load a at [0, 64]; Store b at [0]; }, stores: Plain(Some(Mix::R2W1NtX1)), kernel: "mix-3:1" "",
                name: "3:1", does: "2 loads : 1 store", suite: true
            }
            /// As [`R3W1`](Self::R3W1), its loads from two streams in turn.
            R3W1X2 {
                chunk: { Load a, Load b at [0]; Store c at [0]; }, stores: Plain(Some(Mix::R2W1Nt)), kernel: "mix-3:1" "-x2",
                name: "3:1-x2", does: "2 load streams : 1 store", suite: false
            }
            /// One load to one plain store: 2 reads to 1 write on the bus.
            R2W1 {
                chunk: { Load a at [0, 64]; Store b at [0, 64]; }, stores: Plain(Some(Mix::R1W1Nt)), kernel: "mix-2:1" "",
                name: "2:1", does: "1 load : 1 store", suite: true
            }
            /// One load to two plain stores: 3 reads to 2 writes on the bus.
            R3W2 {
                // No mix with non-temporal stores has its loads.
                chunk: { Load a at [0]; Store b at [0, 64]; }, stores: Plain(None), kernel: "mix-3:2" "",
                name: "3:2", does: "1 load : 2 stores", suite: false
            }
            /// Plain stores only: 1 read to 1 write on the bus.
            R1W1 {
                chunk: { Store a at [0, 64, 128, 192]; }, stores: Plain(Some(Mix::NtWrite)), kernel: "store" "",
                name: "1:1", does: "stores only", suite: true
            }
            /// Non-temporal stores only.
            NtWrite {
                chunk: { NtStore a at [0, 64, 128, 192]; }, stores: NonTemporal, kernel: "nt-store" "",
                name: "nt-write", does: "non-temporal stores only", suite: true
            }
            /// Three loads of one stream to one non-temporal store.
            R3W1Nt {
                chunk: { Load a at [0, 64, 128]; NtStore b at [0]; }, stores: NonTemporal, kernel: "mix-3:1-nt" "",
                name: "3:1-nt", does: "3 loads : 1 non-temporal store", suite: false
            }
            /// Two loads of one stream to one non-temporal store.
            R2W1NtX1 {
                chunk: { Load a at [0, 64]; NtStore b at [0]; }, stores: NonTemporal, kernel: "mix-2:1-nt" "",
                name: "2:1-nt-x1", does: "2 loads : 1 non-temporal store", suite: false
            }
            /// Two read streams to one non-temporal store stream, like STREAM's triad.
            R2W1Nt {
                chunk: { Load a, Add b, NtStoreLoaded c at [0]; }, stores: NonTemporal, kernel: "triad-nt" "",
                name: "triad" or "2:1-nt", does: "2 load streams : 1 non-temporal store", suite: true
            }
            /// One read stream to one non-temporal store stream.
            R1W1Nt {
                chunk: { Load a, NtStoreLoaded b at [0, 64]; }, stores: NonTemporal, kernel: "copy-nt" "",
                name: "1:1-nt", does: "1 load : 1 non-temporal store", suite: true
            }
            /// Each line loaded is stored elsewhere, by plain stores or `rep movsb`.
            Copy {
                chunk: { Load a, StoreLoaded b at [0, 64]; }, stores: Plain(Some(Mix::R1W1Nt)), kernel: "copy" "",
                name: "copy", does: "load and store the same data elsewhere", suite: true
            }
            /// Lines filled by the machine's string instruction (`rep stosb`, `dc zva`), which may avoid reading them first.
            Fill {
                chunk: { FillLine a at [0]; }, stores: ByString, kernel: "fill" "",
                name: "fill", does: "string-instruction fill", suite: true
            }
        }
    };
}

/// An operation on a part of a line, of the width of one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Loads it.
    Load,
    /// Loads it and adds it to what was loaded before.
    Add,
    /// Stores what it was given to store.
    Store,
    /// The same past the caches.
    NtStore,
    /// Stores what was loaded.
    StoreLoaded,
    /// The same past the caches.
    NtStoreLoaded,
    /// Leaves it to a string instruction, which stores the whole line.
    FillLine,
}

impl Operation {
    /// Whether it reads memory; all others write.
    pub const fn loads(self) -> bool {
        matches!(self, Self::Load | Self::Add)
    }

    /// Whether it stores so, or loads.
    #[allow(dead_code, reason = "Rust 1.88 does not see the constant that uses it")]
    const fn is_of(self, stores: StoreKind) -> bool {
        match self {
            Self::Load | Self::Add => true,
            Self::Store | Self::StoreLoaded => matches!(stores, StoreKind::Plain(_)),
            Self::NtStore | Self::NtStoreLoaded => matches!(stores, StoreKind::NonTemporal),
            Self::FillLine => matches!(stores, StoreKind::ByString),
        }
    }
}

/// The kind of a mix's stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// It has none.
    None,
    /// Plain ones, which may read the line first. To see whether they do, they are compared with this mix of as many loads, whose stores go
    /// around the caches; `None` where no mix has them.
    Plain(Option<Mix>),
    /// They go around the caches.
    NonTemporal,
    /// A string instruction decides.
    ByString,
}

/// Operations on the same lines of their streams.
struct Step {
    operations: &'static [Operation],
    lines: usize,
}

/// A row of the list.
struct Properties {
    chunk: &'static [Step],
    stores: StoreKind,
    name: &'static str,
    other_name: Option<&'static str>,
    description: &'static str,
    suite: bool,
}

macro_rules! define {
    (() $(
        $(#[$attribute:meta])*
        $mix:ident {
            chunk: { $($($operation:ident $stream:ident),+ at $lines:tt;)+ }, stores: $stores:ident $(($compared:expr))?,
            kernel: $head:literal $tail:literal, name: $name:literal $(or $other:literal)?, does: $does:literal, suite: $suite:literal
        }
    )+) => {
        /// A mix of traffic, named by the reads and writes that a memory controller sees when plain stores first read
        /// the line they write (read for ownership).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Mix {
            $($(#[$attribute])* #[serde(rename = $name $(, alias = $other)?)] $mix,)+
        }

        impl Mix {
            /// Every mix, in the order of output.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$mix),+];

            const fn properties(self) -> Properties {
                match self {
                    $(Self::$mix => Properties {
                        chunk: const { &[$(Step { operations: &[$(Operation::$operation),+], lines: $lines.len() }),+] },
                        stores: StoreKind::$stores $(($compared))?,
                        name: $name,
                        other_name: [$(Some($other),)? None][0],
                        description: $does,
                        suite: $suite,
                    },)+
                }
            }
        }
    };
}
mixes!(define());

impl Mix {
    /// The mixes that the suite and `--peak` measure.
    pub const PEAK: [Self; Self::in_suite::<{ Self::ALL.len() }>().1] = Self::in_suite().0;

    /// An array that begins with the mixes that the suite measures, and how many they are.
    const fn in_suite<const N: usize>() -> ([Self; N], usize) {
        let (mut mixes, mut found, mut n) = ([Self::AllReads; N], 0, 0);
        while n < Self::ALL.len() {
            if Self::ALL[n].properties().suite {
                mixes[found] = Self::ALL[n];
                found += 1;
            }
            n += 1;
        }
        (mixes, found)
    }

    /// The name used on the command line and in results.
    pub const fn name(self) -> &'static str {
        self.properties().name
    }

    /// Its traffic in words.
    pub const fn description(self) -> &'static str {
        self.properties().description
    }

    /// The kind of its stores.
    pub const fn stores(self) -> StoreKind {
        self.properties().stores
    }

    /// Whether its stores go around the caches.
    pub const fn non_temporal(self) -> bool {
        matches!(self.stores(), StoreKind::NonTemporal)
    }

    /// The mix that its plain stores are compared with to see whether they read lines first: as many loads, and stores that cannot.
    pub const fn compared_with(self) -> Option<Self> {
        if let StoreKind::Plain(with) = self.stores() { with } else { None }
    }

    /// Lines that kernels load and lines that they store in a chunk.
    pub const fn chunk_lines(self) -> (u32, u32) {
        let (chunk, mut loads, mut stores) = (self.properties().chunk, 0, 0);
        let mut step = 0;
        while step < chunk.len() {
            let (mut n, operations) = (0, chunk[step].operations);
            while n < operations.len() {
                if operations[n].loads() {
                    loads += chunk[step].lines as u32;
                } else {
                    stores += chunk[step].lines as u32;
                }
                n += 1;
            }
            step += 1;
        }
        (loads, stores)
    }

    /// Lines loaded and lines stored by the program, as a ratio of the smallest numbers.
    pub const fn lines(self) -> (u32, u32) {
        let (loads, stores) = self.chunk_lines();
        let (mut divisor, mut rest) = (loads, stores);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        (loads / divisor, stores / divisor)
    }

    /// Lines that cross the memory bus, as a ratio, if plain stores read their lines first; `None` where that depends on the instruction.
    pub const fn bus_lines(self) -> Option<(u32, u32)> {
        let (loads, stores) = self.lines();
        match self.stores() {
            StoreKind::None | StoreKind::NonTemporal => Some((loads, stores)),
            StoreKind::Plain(_) => Some((loads + stores, stores)),
            StoreKind::ByString => None,
        }
    }

    /// Streams that it loads from.
    fn read_streams(self) -> usize {
        self.properties().chunk.iter().flat_map(|step| step.operations).filter(|operation| operation.loads()).count()
    }

    /// The mix with the same loads and stores but with one read stream. In random order two streams look like one, so there are
    /// kernels for one stream only.
    pub fn with_one_read_stream(self) -> Self {
        let same = |mix: &Self| mix.read_streams() == 1 && mix.lines() == self.lines() && mix.non_temporal() == self.non_temporal();
        if self.read_streams() > 1 { Self::ALL.into_iter().find(same).unwrap_or(self) } else { self }
    }

    /// Another name that is understood.
    pub const fn other_name(self) -> Option<&'static str> {
        self.properties().other_name
    }

    /// Its name, and the other one in brackets.
    fn spelled(self) -> String {
        self.other_name().map_or_else(|| self.name().to_owned(), |other| format!("{self} ({other})"))
    }

    /// Every name, separated by commas, with `and` before the last.
    pub fn list(and: &str) -> String {
        let [others @ .., last] = Self::ALL.map(Self::spelled);
        format!("{}{and}{last}", others.join(", "))
    }
}

// A row's operations agree with its kind of stores, and a mix whose plain stores can be compared names the other mix.
const _: () = {
    let mut n = 0;
    while n < Mix::ALL.len() {
        Mix::ALL[n].check();
        n += 1;
    }
};

impl Mix {
    #[allow(dead_code, reason = "Rust 1.88 does not see the constant that uses it")]
    const fn check(self) {
        let Properties { chunk, stores, .. } = self.properties();
        assert!(matches!(stores, StoreKind::None) == (self.lines().1 == 0), "a mix stores lines, or has StoreKind::None");
        let mut step = 0;
        while step < chunk.len() {
            let mut n = 0;
            while n < chunk[step].operations.len() {
                assert!(chunk[step].operations[n].is_of(stores), "an operation stores as the mix does");
                n += 1;
            }
            step += 1;
        }
        match stores {
            StoreKind::Plain(Some(with)) => {
                assert!(with.can_show(self), "plain stores are compared with non-temporal ones beside as many loads")
            }
            StoreKind::Plain(None) => {
                let mut n = 0;
                while n < Self::ALL.len() {
                    assert!(
                        !Self::ALL[n].can_show(self),
                        "plain stores are compared where a mix has non-temporal ones beside as many loads"
                    );
                    n += 1;
                }
            }
            _ => {}
        }
    }

    /// Whether comparing with this mix shows what plain stores of the other one do.
    #[allow(dead_code, reason = "Rust 1.88 does not see the constant that uses it")]
    const fn can_show(self, plain: Self) -> bool {
        let ((loads, stores), (other_loads, other_stores)) = (self.lines(), plain.lines());
        self.non_temporal() && loads == other_loads && stores == other_stores
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The message where a mix was expected.
static EXPECTED: LazyLock<String> = LazyLock::new(|| format!("a mix: {}", Mix::list(" or ")));

impl FromStr for Mix {
    type Err = ParseError;
    /// Also takes `reads`, `read`, `writes` and `write`, and what a mix was called by earlier versions.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let lower = text.trim().to_ascii_lowercase();
        let name = match lower.as_str() {
            "reads" | "read" => "all-reads",
            "writes" | "write" => "1:1",
            other => other,
        };
        let called = |mix: &Self| mix.name() == name || mix.other_name() == Some(name);
        Self::ALL.into_iter().find(called).ok_or_else(|| ParseError::new(text, &EXPECTED))
    }
}
