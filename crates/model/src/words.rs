//! Sentences and advice that name what a user can set, as data: each front end has its own names for that. [`crate::wording::native`] has
//! memgauge's, and `src/mlc/messages.rs` the drop-in's.

use std::borrow::Cow;
use std::fmt;

/// Declares an enumeration without data, with a list of all of it.
macro_rules! enumeration {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $item:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $item,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$item),*];
        }
    };
}

enumeration! {
    /// An option.
    Knob {
        /// Comparing runs of unlike machines, or in different states of one.
        Across,
        /// The order in which lines are visited.
        Access,
        /// A result that this one is compared with.
        Against,
        /// A fleet, or a result of one, that this machine is compared with.
        Baseline,
        /// How long a cell is measured at most.
        Budget,
        /// How narrow intervals must be.
        Confidence,
        /// Hardware counters.
        Counters,
        /// The CPUs that measure.
        Cpus,
        /// The injection delay: cycles that a loader waits after every four lines.
        Delay,
        /// Which group of hosts of a fleet.
        Fingerprint,
        /// The format of what is printed.
        Format,
        /// The CPU that has lines of a transfer in its cache.
        Holder,
        /// The length of a chase in hops.
        Hops,
        /// A host of a fleet.
        Host,
        /// CPUs that are kept from sleeping.
        KeepAwake,
        /// That a sweep measures latency.
        Latency,
        /// The limit of the memory's bandwidth.
        Limit,
        /// The use of a line by traffic: all of it, or a part.
        Line,
        /// The nodes whose memory is loaded.
        LoadNode,
        /// All pairs of CPUs or nodes.
        Matrix,
        /// The largest working set of a sweep.
        Max,
        /// A directory whose files serve as memory.
        MemoryDir,
        /// That prices of accesses are measured.
        Measure,
        /// The smallest working set of a sweep.
        Min,
        /// The size of a language model.
        ModelBytes,
        /// The nodes whose memory is measured.
        Node,
        /// All pairs of nodes, with lines of each.
        NodeMatrix,
        /// The order of a chase.
        Order,
        /// The file of a result.
        Output,
        /// The kind of pages.
        Pages,
        /// How often a scan reads.
        Passes,
        /// Test patterns.
        Patterns,
        /// That only the plan is shown.
        Plan,
        /// The state of prefetchers.
        Prefetch,
        /// A result with prices of accesses.
        Prices,
        /// The node of the chase's memory.
        ProbeNode,
        /// Numbers of CPUs in turn.
        Ramp,
        /// The CPU that reads lines of a transfer.
        Reader,
        /// The size of a scan's region.
        Region,
        /// What a health check demands.
        Rules,
        /// The search for the highest bandwidth.
        Search,
        /// One buffer for all loaders.
        SharedBuffer,
        /// The CPU that has lines of a transfer in its cache as well.
        Sharer,
        /// The size of a buffer.
        Size,
        /// The sources of what is known of CPUs.
        Sources,
        /// The distance between lines that are chased.
        Stride,
        /// How long is measured.
        Time,
        /// The CPU that touches the chase's memory first.
        TouchCpu,
        /// How long is waited for an idle machine.
        WaitQuiet,
        /// The width of loads and stores.
        Width,
        /// The window of a random order.
        Window,
        /// The time for the whole run.
        Within,
    }
}

enumeration! {
    /// A command of this program.
    Verb {
        /// The suite: what it does without a command.
        Suite,
        /// Bandwidth.
        Bandwidth,
        /// Transfers between caches.
        C2c,
        /// Comparing results.
        Compare,
        /// Counting events of a program.
        Count,
        /// A fleet's baseline.
        FleetBaseline,
        /// Adding results to a fleet.
        FleetIngest,
        /// Hosts that are slower than the others.
        FleetOutliers,
        /// The machine as it is.
        Info,
        /// Interleave weights.
        Interleave,
        /// Idle latency.
        Latency,
        /// Latency under load.
        Loaded,
        /// The state of prefetchers.
        Prefetch,
        /// Measuring with prefetchers on and off.
        PrefetchCompare,
        /// Switching prefetchers off for good.
        PrefetchOff,
        /// Switching prefetchers on for good.
        PrefetchOn,
        /// Putting prefetchers back.
        PrefetchRestore,
        /// A health check.
        Quick,
        /// What is published of CPUs.
        Reference,
        /// Showing a result.
        Render,
        /// Memory region by region.
        Scan,
        /// Latency and bandwidth of growing working sets.
        Sweep,
        /// Where the memory of programs lies.
        Where,
    }
}

/// A command line of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub verb: Verb,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
    /// Whether only root may do it.
    pub privileged: bool,
}

/// One argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A knob, with its value if it has one.
    Set(Knob, Option<Cow<'static, str>>),
    /// Any other word, such as a file.
    Word(Cow<'static, str>),
}

impl Command {
    /// A command without arguments.
    pub const fn new(verb: Verb) -> Self {
        Self { verb, arguments: Vec::new(), privileged: false }
    }

    /// Run by root.
    #[must_use]
    pub const fn as_root(mut self) -> Self {
        self.privileged = true;
        self
    }

    /// With a knob that has no value.
    #[must_use]
    pub fn with(mut self, knob: Knob) -> Self {
        self.arguments.push(Argument::Set(knob, None));
        self
    }

    /// With a knob at a value.
    #[must_use]
    pub fn set(mut self, knob: Knob, value: impl Into<Cow<'static, str>>) -> Self {
        self.arguments.push(Argument::Set(knob, Some(value.into())));
        self
    }

    /// With a word.
    #[must_use]
    pub fn word(mut self, word: impl Into<Cow<'static, str>>) -> Self {
        self.arguments.push(Argument::Word(word.into()));
        self
    }

    /// Writes its result to this file.
    #[must_use]
    pub fn to(self, file: &'static str) -> Self {
        self.set(Knob::Output, file)
    }
}

/// A part of a sentence.
#[derive(Debug, Clone)]
pub enum Part {
    /// Words that every front end uses.
    Text(Cow<'static, str>),
    /// An option.
    Knob(Knob),
    /// A command line.
    Run(Command),
}

impl Part {
    /// Text that is still to be formatted, as [`words!`](crate::words!) makes it.
    pub fn formatted(text: fmt::Arguments<'_>) -> Self {
        Self::Text(text.as_str().map_or_else(|| text.to_string().into(), Cow::Borrowed))
    }
}

impl From<Knob> for Part {
    fn from(knob: Knob) -> Self {
        Self::Knob(knob)
    }
}

impl From<Command> for Part {
    fn from(command: Command) -> Self {
        Self::Run(command)
    }
}

impl From<Verb> for Part {
    fn from(verb: Verb) -> Self {
        Self::Run(Command::new(verb))
    }
}

impl From<&'static str> for Part {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// A sentence, or a part of one. Two are equal if memgauge's words for them are.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<Part>);

impl<T: Into<Part>> From<T> for Words {
    fn from(part: T) -> Self {
        Self(vec![part.into()])
    }
}

impl Words {
    /// This, and what to do about it.
    pub fn advise(self, advice: impl Into<Ways>) -> Problem {
        Problem { what: self, advice: Some(advice.into()) }
    }

    /// With other words in front.
    #[must_use]
    pub fn after(self, words: impl Into<Self>) -> Self {
        words.into().followed_by(self)
    }

    /// With other words behind.
    #[must_use]
    pub fn followed_by(mut self, words: impl Into<Self>) -> Self {
        self.0.extend(words.into().0);
        self
    }
}

/// Makes [`Words`](crate::words::Words) of literals, which may have `{names}` to format, of knobs and of commands:
/// `words![Knob::Node, " names no node; nodes with memory are {nodes}"]`.
#[macro_export]
macro_rules! words {
    (@after [$($part:expr,)*]) => {
        $crate::words::Words(vec![$($part),*])
    };
    (@after [$($part:expr,)*] $text:literal $(, $($rest:tt)*)?) => {
        $crate::words!(@after [$($part,)* $crate::words::Part::formatted(format_args!($text)),] $($($rest)*)?)
    };
    (@after [$($part:expr,)*] $next:expr $(, $($rest:tt)*)?) => {
        $crate::words!(@after [$($part,)* $crate::words::Part::from($next),] $($($rest)*)?)
    };
    ($($parts:tt)+) => {
        $crate::words!(@after [] $($parts)+)
    };
}

/// One thing that a user can do.
#[derive(Debug, Clone)]
pub enum Way {
    /// Set this to less.
    Smaller(Knob),
    /// Set this to more.
    Larger(Knob),
    /// Set this.
    Give(Knob),
    /// Set this to a value, which is another one than now.
    Use(Knob, Cow<'static, str>),
    /// Do not set this.
    LeaveOut(Knob),
    /// Name some of what there is, such as `fewer CPUs`.
    Name(Cow<'static, str>, Knob),
    /// Choose another of what there is, such as `an allowed node`.
    Choose(Cow<'static, str>, Knob),
    /// Do something outside of this program.
    Outside(Cow<'static, str>),
    /// Something else that is done with what a user can set.
    Say(Words),
    /// To reach something.
    To(Box<Self>, Cow<'static, str>),
}

impl Way {
    /// A value of a knob.
    pub fn set(knob: Knob, value: impl Into<Cow<'static, str>>) -> Self {
        Self::Use(knob, value.into())
    }

    /// Names some of what there is.
    pub fn name(what: impl Into<Cow<'static, str>>, knob: Knob) -> Self {
        Self::Name(what.into(), knob)
    }

    /// Its purpose, as in `leave it out to measure memory`.
    #[must_use]
    pub fn to(self, what: impl Into<Cow<'static, str>>) -> Self {
        Self::To(Box::new(self), what.into())
    }

    /// Or another.
    pub fn or(self, other: impl Into<Self>) -> Ways {
        Ways::from(self).or(other)
    }

    /// Either this or another: alternatives that are short.
    pub fn either_or(self, other: impl Into<Self>) -> Ways {
        Ways::from(self).either_or(other)
    }

    /// Or, if that is too much, another.
    pub fn or_else(self, other: impl Into<Self>) -> Ways {
        Ways::from(self).or_else(other)
    }

    /// And another thing.
    pub fn and(self, other: impl Into<Self>) -> Ways {
        Ways::from(self).and(other)
    }

    /// And beside it another thing.
    pub fn then(self, other: impl Into<Self>) -> Ways {
        Ways::from(self).then(other)
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Way {
    fn from(text: T) -> Self {
        Self::Outside(text.into())
    }
}

impl From<Words> for Way {
    fn from(words: Words) -> Self {
        Self::Say(words)
    }
}

/// How a way is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// `a, b, or c`
    Or,
    /// `a or b`
    EitherOr,
    /// `a; or b`
    OrElse,
    /// `a, and b`
    And,
    /// `a; b`
    Then,
}

/// One thing that a user can do, or several, each joined to the one before it. A front end leaves out things that it has no name for. Two
/// are equal if memgauge's words for them are.
#[derive(Debug, Clone)]
pub struct Ways(pub Vec<(Join, Way)>);

impl<T: Into<Way>> From<T> for Ways {
    fn from(way: T) -> Self {
        Self(vec![(Join::Or, way.into())])
    }
}

impl Ways {
    fn join(mut self, join: Join, other: Way) -> Self {
        self.0.push((join, other));
        self
    }

    /// Or another.
    #[must_use]
    pub fn or(self, other: impl Into<Way>) -> Self {
        self.join(Join::Or, other.into())
    }

    /// Or another, where all are short.
    #[must_use]
    pub fn either_or(self, other: impl Into<Way>) -> Self {
        self.join(Join::EitherOr, other.into())
    }

    /// Or, if that is too much, another.
    #[must_use]
    pub fn or_else(self, other: impl Into<Way>) -> Self {
        self.join(Join::OrElse, other.into())
    }

    /// And another thing.
    #[must_use]
    pub fn and(self, other: impl Into<Way>) -> Self {
        self.join(Join::And, other.into())
    }

    /// And beside it another thing.
    #[must_use]
    pub fn then(self, other: impl Into<Way>) -> Self {
        self.join(Join::Then, other.into())
    }
}

/// A problem and its ways out.
#[derive(Debug, Clone, Default)]
pub struct Problem {
    /// What is wrong.
    pub what: Words,
    /// What to do about it.
    pub advice: Option<Ways>,
}

impl Problem {
    /// A problem and its ways out.
    pub fn new(what: impl Into<Words>, advice: impl Into<Ways>) -> Self {
        what.into().advise(advice)
    }
}

impl<T: Into<Words>> From<T> for Problem {
    fn from(what: T) -> Self {
        Self { what: what.into(), advice: None }
    }
}
