//! Memgauge's own names for what a user can set, and how every front end makes sentences of such names.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::{Argument, Command, Join, Knob, Part, Problem, Verb, Way, Ways, Words};

/// A front end's names of options.
pub trait FrontEnd {
    /// The name of a knob, if this front end has it.
    fn knob(&self, knob: Knob) -> Option<Cow<'static, str>>;

    /// A command line, if this front end can say it.
    fn command(&self, command: &Command) -> Option<String>;

    /// A way in other words than those of all front ends.
    fn own_words(&self, way: &Way) -> Option<String> {
        let _ = way;
        None
    }

    /// What stands in a sentence for a knob that this front end does not have.
    fn unnamed(&self, knob: Knob) -> &'static str {
        option(knob)
    }

    /// A way in words; `None` if this front end has no name for something in it.
    fn way(&self, way: &Way) -> Option<String> {
        if let Some(own) = self.own_words(way) {
            return Some(own);
        }
        let of = |knob: &Knob| self.knob(*knob);
        Some(match way {
            Way::Smaller(knob) => format!("give a smaller {}", of(knob)?),
            Way::Larger(knob) => format!("give a larger {}", of(knob)?),
            Way::Give(knob) => format!("give {}", of(knob)?),
            Way::Use(knob, value) => format!("use {} {value}", of(knob)?),
            Way::LeaveOut(knob) => format!("leave {} out", of(knob)?),
            Way::Name(what, knob) => format!("name {what} with {}", of(knob)?),
            Way::Choose(what, knob) => format!("choose {what} with {}", of(knob)?),
            Way::Outside(text) => text.to_string(),
            Way::Say(words) => words.0.iter().map(|part| self.part(part)).collect::<Option<String>>()?,
            Way::To(way, what) => format!("{} to {what}", self.way(way)?),
        })
    }

    /// A part of a sentence; `None` if this front end has no name for it.
    fn part(&self, part: &Part) -> Option<Cow<'static, str>> {
        match part {
            Part::Text(text) => Some(text.clone()),
            Part::Knob(knob) => self.knob(*knob),
            Part::Run(command) => self.command(command).map(Cow::Owned),
        }
    }

    /// A sentence.
    fn words(&self, words: &Words) -> String {
        let unnamed = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Knob(knob) => self.unnamed(*knob).into(),
            Part::Run(command) => command.to_string().into(),
        };
        words.0.iter().map(|part| self.part(part).unwrap_or_else(|| unnamed(part))).collect()
    }

    /// The ways that this front end can say; `None` if it can say none.
    fn ways(&self, ways: &Ways) -> Option<String> {
        let said: Vec<(Join, String)> = ways.0.iter().filter_map(|(join, way)| Some((*join, self.way(way)?))).collect();
        let joined = said.iter().enumerate().map(|(i, (join, way))| {
            let last = said.get(i + 1).is_none_or(|(next, _)| *next != Join::Or);
            let before = match join {
                _ if i == 0 => "",
                Join::Or if last => ", or ",
                Join::Or => ", ",
                Join::EitherOr => " or ",
                Join::OrElse => "; or ",
                Join::And => ", and ",
                Join::Then => "; ",
            };
            format!("{before}{way}")
        });
        (!said.is_empty()).then(|| joined.collect())
    }

    /// A problem and its ways out.
    fn problem(&self, problem: &Problem) -> String {
        self.advised(&problem.what, problem.advice.as_ref())
    }

    /// A sentence, and what to do about it.
    fn advised(&self, what: &Words, advice: Option<&Ways>) -> String {
        let what = self.words(what);
        advice.and_then(|advice| self.ways(advice)).map_or_else(|| what.clone(), |advice| format!("{what}; {advice}"))
    }
}

/// Memgauge's own command line, in which `Display` writes everything.
#[derive(Debug, Clone, Copy)]
pub struct Native;

impl FrontEnd for Native {
    fn knob(&self, knob: Knob) -> Option<Cow<'static, str>> {
        Some(option(knob).into())
    }

    fn command(&self, command: &Command) -> Option<String> {
        let words = command.arguments.iter().map(|argument| match argument {
            Argument::Set(Knob::Output, Some(file)) => format!(" -o {file}"),
            Argument::Set(knob, None) => format!(" {}", option(*knob)),
            Argument::Set(knob, Some(value)) => format!(" {} {value}", option(*knob)),
            Argument::Word(word) => format!(" {word}"),
        });
        let root = if command.privileged { "sudo " } else { "" };
        Some(format!("{root}{}{}", subcommand(command.verb), words.collect::<String>()))
    }
}

/// The option that sets a knob.
pub const fn option(knob: Knob) -> &'static str {
    match knob {
        Knob::Access => "--access",
        Knob::Against => "--against",
        Knob::Baseline => "--baseline",
        Knob::Budget => "--budget",
        Knob::Confidence => "--confidence",
        Knob::Counters => "--counters",
        Knob::Cpus => "--cpu",
        Knob::Delay => "--delay",
        Knob::Fingerprint => "--fingerprint",
        Knob::Format => "--format",
        Knob::Holder => "--holder",
        Knob::Hops => "--hops",
        Knob::Host => "--host",
        Knob::KeepAwake => "--keep-awake",
        Knob::Latency => "--latency",
        Knob::Limit => "--limit",
        Knob::Line => "--line",
        Knob::LoadNode => "--load-node",
        Knob::Matrix => "--matrix",
        Knob::Max => "--max",
        Knob::MemoryDir => "--memory-dir",
        Knob::Measure => "--measure",
        Knob::Min => "--min",
        Knob::ModelBytes => "--model-bytes",
        Knob::Node => "--node",
        Knob::NodeMatrix => "--node-matrix",
        Knob::Order => "--order",
        Knob::Output => "--output",
        Knob::Pages => "--pages",
        Knob::Passes => "--passes",
        Knob::Patterns => "--patterns",
        Knob::Plan => "--plan",
        Knob::Prefetch => "--prefetch",
        Knob::Prices => "--prices",
        Knob::ProbeNode => "--probe-node",
        Knob::Ramp => "--ramp",
        Knob::Reader => "--reader",
        Knob::Region => "--region",
        Knob::Rules => "--rules",
        Knob::Search => "--search",
        Knob::SharedBuffer => "--shared-buffer",
        Knob::Sharer => "--sharer",
        Knob::Size => "--size",
        Knob::Sources => "--sources",
        Knob::Stride => "--stride",
        Knob::Time => "--time",
        Knob::TouchCpu => "--touch-cpu",
        Knob::WaitQuiet => "--wait-quiet",
        Knob::Width => "--width",
        Knob::Window => "--window",
        Knob::Across => "--across",
        Knob::Within => "--within",
    }
}

/// The program with its command.
const fn subcommand(verb: Verb) -> &'static str {
    match verb {
        Verb::Suite => "memgauge",
        Verb::Bandwidth => "memgauge bandwidth",
        Verb::C2c => "memgauge c2c",
        Verb::Compare => "memgauge compare",
        Verb::Count => "memgauge count",
        Verb::FleetBaseline => "memgauge fleet baseline",
        Verb::FleetIngest => "memgauge fleet ingest",
        Verb::FleetOutliers => "memgauge fleet outliers",
        Verb::Info => "memgauge info",
        Verb::Interleave => "memgauge interleave",
        Verb::Latency => "memgauge latency",
        Verb::Loaded => "memgauge loaded",
        Verb::Prefetch => "memgauge prefetch",
        Verb::PrefetchCompare => "memgauge prefetch compare",
        Verb::PrefetchOff => "memgauge prefetch off",
        Verb::PrefetchOn => "memgauge prefetch on",
        Verb::PrefetchRestore => "memgauge prefetch restore",
        Verb::Quick => "memgauge quick",
        Verb::Reference => "memgauge reference",
        Verb::Render => "memgauge render",
        Verb::Scan => "memgauge scan",
        Verb::Sweep => "memgauge sweep",
        Verb::Where => "memgauge where",
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(option(*self))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Native.command(self).unwrap_or_default())
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(subcommand(*self))
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Native.words(self))
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Native.ways(self).unwrap_or_default())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Native.problem(self))
    }
}

/// Results hold memgauge's words, and what is read from a result is those words.
macro_rules! as_native_words {
    ($($type:ty),*) => {$(
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.to_string() == other.to_string()
            }
        }

        impl Eq for $type {}

        impl Hash for $type {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.to_string().hash(state);
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    )*};
}

as_native_words!(Words, Ways, Problem);

impl std::error::Error for Problem {}
