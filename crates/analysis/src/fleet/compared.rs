//! The values of every host of a group for one number, for figures. They are not part of the contracts.

use super::baseline::BaselineNumber;

/// A number, and the latest value of every host that is compared by it.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedNumber {
    /// The index of the group in [`FleetOutliers::groups`](super::FleetOutliers::groups).
    pub group: u32,
    /// The number, its median, and the value beyond which a host is flagged.
    pub number: BaselineNumber,
    /// The hosts that have a value, by name.
    pub hosts: Vec<ComparedHost>,
}

/// One of these hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedHost {
    /// Its name.
    pub host: String,
    /// Its latest value.
    pub value: f64,
    /// The 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Whether the value has good quality, so that the host is judged by it.
    pub good: bool,
    /// Whether the host was named as slower by this number.
    pub slow: bool,
}
