//! Groups of hosts in words.

use crate::fleet::GroupLevel;

/// What hosts of a group have in common.
pub const fn group_level(level: GroupLevel) -> &'static str {
    match level {
        GroupLevel::Kernel => "the same hardware, firmware and kernel",
        GroupLevel::Firmware => "the same hardware and firmware, with any kernel (fewer than eight have one kernel)",
        GroupLevel::Hardware => "the same hardware, with any firmware and kernel (fewer than eight have one firmware)",
    }
}
