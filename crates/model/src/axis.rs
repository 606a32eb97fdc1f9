//! The axes of coordinates: the fields of [`Coordinates`] as values, for code that asks which of them a result has.

use crate::experiment::Coordinates;

/// Declares an axis for each field of [`Coordinates`], in the same order.
macro_rules! axes {
    ($($axis:ident = $field:ident,)*) => {
        /// One of the things that can be stated of a result's place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Axis {
            $(#[doc = concat!("[`Coordinates::", stringify!($field), "`]")] $axis,)*
        }

        impl Axis {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$axis),*];

            /// Its name in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$axis => stringify!($field),)*
                }
            }

            /// Whether these coordinates state it.
            pub const fn is_in(self, at: &Coordinates) -> bool {
                // Without `..`, so that a new field needs an axis.
                let Coordinates { $($field),* } = at;
                match self {
                    $(Self::$axis => $field.is_some(),)*
                }
            }
        }

        impl Coordinates {
            /// The same without an axis: where the curve is that a point of it belongs to, for example.
            #[must_use]
            pub fn without(&self, axis: Axis) -> Self {
                let mut at = self.clone();
                match axis {
                    $(Axis::$axis => at.$field = None,)*
                }
                at
            }
        }
    };
}

axes! {
    CpuNode = cpu_node,
    Memory = memory,
    MemoryDir = memory_dir,
    Cpu = cpu,
    HolderCpu = holder_cpu,
    HolderNode = holder_node,
    SharerCpu = sharer_cpu,
    State = state,
    Cpus = cpus,
    LoadNodes = load_nodes,
    Order = order,
    Mix = mix,
    Access = access,
    DelayCycles = delay_cycles,
    Region = region,
    Prefetch = prefetch,
    Block = block,
    Line = line,
    Weights = weights,
    WorkingSet = working_set,
}

impl Coordinates {
    /// The axes that are stated.
    pub fn axes(&self) -> impl Iterator<Item = Axis> {
        Axis::ALL.iter().copied().filter(|axis| axis.is_in(self))
    }
}

/// What the results of an experiment state of their place.
#[derive(Debug)]
pub struct Axes {
    /// What each result with a value states.
    pub always: &'static [Axis],
    /// Others that depend on the request.
    pub sometimes: &'static [Axis],
}

impl Axes {
    /// The axes that the place of a result lacks or has too many of.
    pub fn wrong(&self, at: &Coordinates, has_value: bool) -> Vec<Axis> {
        let lacking = self.always.iter().copied().filter(|axis| has_value && !axis.is_in(at));
        lacking.chain(at.axes().filter(|axis| !self.always.contains(axis) && !self.sometimes.contains(axis))).collect()
    }
}
