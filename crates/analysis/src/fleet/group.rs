//! Hosts that are alike.

use serde::{Deserialize, Serialize};

use memgauge_model::result::DifferentField;

/// Hosts that are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostGroup {
    /// How much they have in common.
    pub level: GroupLevel,
    /// The properties that they have in common, the most important first.
    pub fields: Vec<GroupField>,
    /// How many they are.
    pub hosts: u32,
}

/// A property that all hosts of a group have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupField {
    /// Which.
    pub field: DifferentField,
    /// Its value; `null` where none of them states it.
    pub value: Option<String>,
}

/// How much hosts of a group have in common, from the most to the least. A host is compared with the first of these groups that has
/// eight hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GroupLevel {
    /// Hardware, microcode, firmware and kernel.
    Kernel,
    /// Hardware, microcode and firmware.
    Firmware,
    /// Hardware: the CPU's model and stepping, hypervisor, CPUs, nodes, channels and their speed.
    Hardware,
}

impl GroupLevel {
    /// Every level, the one with the most in common first.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Firmware, Self::Hardware];

    /// A description of what hosts of a group have in common.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Kernel => "the same hardware, firmware and kernel",
            Self::Firmware => "the same hardware and firmware, with any kernel",
            Self::Hardware => "the same hardware, with any firmware and kernel",
        }
    }

    /// Why they have no more in common.
    pub const fn why_no_more(self) -> Option<&'static str> {
        match self {
            Self::Kernel => None,
            Self::Firmware => Some("fewer than eight have one kernel"),
            Self::Hardware => Some("fewer than eight have one firmware"),
        }
    }
}

/// A field that hosts can differ in: a property, or one of the user's labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FleetField {
    /// A property.
    Property(DifferentField),
    /// A label, from `--label KEY=VALUE`.
    Label {
        /// Its key.
        label: String,
    },
}
