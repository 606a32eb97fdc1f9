//! Whether devices are spread evenly over sockets and channels.

use std::collections::{BTreeMap, BTreeSet};

use crate::installed::InstalledMemory;
use crate::units::Bytes;

/// A channel's devices.
#[derive(Default)]
struct Channel {
    bytes: u64,
    mts: BTreeSet<u32>,
}

impl InstalledMemory {
    /// Channels that are empty in one socket and have a module in another, such as `channel C of P1`. Empty where names do not identify channels.
    pub fn empty_channels(&self) -> Vec<String> {
        let Some(sockets) = self.sockets() else { return Vec::new() };
        // The last word is the channel, the others its place.
        let letters = |channels: &BTreeMap<String, Channel>| -> BTreeSet<String> {
            channels.keys().filter_map(|name| name.rsplit(' ').next()).map(str::to_owned).collect()
        };
        let all: BTreeSet<String> = sockets.values().flat_map(letters).collect();
        let empty = sockets.iter().flat_map(|(socket, channels)| {
            let own = letters(channels);
            all.iter().filter(move |letter| !own.contains(*letter)).map(move |letter| format!("channel {letter} of {socket}"))
        });
        empty.collect()
    }

    /// The channels with modules of each socket; `None` where a name does not identify its channel, or a size is not stated.
    fn sockets(&self) -> Option<BTreeMap<String, BTreeMap<String, Channel>>> {
        let mut sockets: BTreeMap<String, BTreeMap<String, Channel>> = BTreeMap::new();
        for device in &self.devices {
            let channel = sockets.entry(device.socket()).or_default().entry(device.channel()?).or_default();
            channel.bytes += device.size?.0;
            channel.mts.extend(device.configured_mts);
        }
        Some(sockets)
    }

    /// The ways that devices are uneven, in words: sockets with different numbers of populated channels, or channels of different sizes or
    /// speeds. Empty if they are even, if their names do not identify the channels, or if sizes are not stated.
    ///
    /// Memory is interleaved over channels of equal size only, so the extra memory of a larger channel is interleaved over fewer channels.
    /// A slower device slows down all devices that run at the same clock.
    pub fn uneven(&self) -> Vec<String> {
        let Some(sockets) = self.sockets() else { return Vec::new() };
        let mut found = Vec::new();
        let counts: BTreeMap<&str, usize> = sockets.iter().map(|(socket, channels)| (socket.as_str(), channels.len())).collect();
        if counts.values().collect::<BTreeSet<_>>().len() > 1 {
            let list: Vec<String> = counts.iter().map(|(socket, n)| format!("{socket} {n}")).collect();
            found.push(format!("sockets have different numbers of populated channels ({})", list.join(", ")));
        }
        let channels = || sockets.values().flat_map(BTreeMap::values);
        let sizes: BTreeSet<u64> = channels().map(|c| c.bytes).collect();
        if let (Some(&least), Some(&most)) = (sizes.first(), sizes.last())
            && least < most
        {
            let small = channels().filter(|c| c.bytes < most).count();
            let (least, most) = (Bytes(least), Bytes(most));
            found.push(format!("{small} of {} channels have less memory than others ({least} against {most})", channels().count()));
        }
        let mts: BTreeSet<u32> = channels().flat_map(|c| c.mts.iter().copied()).collect();
        if let (Some(slow), Some(fast)) = (mts.first(), mts.last())
            && slow < fast
        {
            found.push(format!("devices are configured for different speeds ({slow} and {fast} MT/s)"));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installed::MemoryDevice;

    fn installed(devices: &[(&str, &str, u64, u32)]) -> InstalledMemory {
        let device = |&(bank, locator, gib, mts): &(&str, &str, u64, u32)| MemoryDevice {
            bank: Some(bank.into()),
            locator: Some(locator.into()),
            size: Some(Bytes::gib(gib)),
            kind: Some("DDR5".into()),
            configured_mts: Some(mts),
            ..MemoryDevice::default()
        };
        InstalledMemory { slots: 24, devices: devices.iter().map(device).collect(), reason: None }
    }

    #[test]
    fn even_devices_are_well_also_two_to_a_channel() {
        let even = installed(&[
            ("P0 CHANNEL A", "DIMM 0", 32, 4800),
            ("P0 CHANNEL A", "DIMM 1", 32, 4800),
            ("P0 CHANNEL B", "DIMM 0", 64, 4800),
            ("P1 CHANNEL A", "DIMM 0", 64, 4800),
            ("P1 CHANNEL B", "DIMM 0", 64, 4800),
        ]);
        assert_eq!(even.uneven(), Vec::<String>::new());
        assert!(installed(&[]).uneven().is_empty());
    }

    #[test]
    fn a_missing_device_shows_as_a_socket_with_fewer_channels() {
        let missing =
            installed(&[("P0 CHANNEL A", "DIMM 0", 32, 4800), ("P0 CHANNEL B", "DIMM 0", 32, 4800), ("P1 CHANNEL A", "DIMM 0", 32, 4800)]);
        assert_eq!(missing.uneven(), ["sockets have different numbers of populated channels (P0 2, P1 1)"]);
        assert_eq!(missing.empty_channels(), ["channel B of P1"]);
        let letters = installed(&[("", "CPU1_DIMM_A1", 32, 4800), ("", "CPU1_DIMM_B1", 32, 4800), ("", "CPU2_DIMM_A1", 32, 4800)]);
        assert_eq!(letters.uneven(), ["sockets have different numbers of populated channels (CPU1 2, CPU2 1)"]);
    }

    #[test]
    fn channels_of_other_sizes_and_speeds_are_told() {
        let sizes = installed(&[("P0 CHANNEL A", "DIMM 0", 32, 4800), ("P0 CHANNEL B", "DIMM 0", 16, 4800)]);
        assert_eq!(sizes.uneven(), ["1 of 2 channels have less memory than others (16 GiB against 32 GiB)"]);
        let speeds = installed(&[("P0 CHANNEL A", "DIMM 0", 32, 4800), ("P0 CHANNEL B", "DIMM 0", 32, 4400)]);
        assert_eq!(speeds.uneven(), ["devices are configured for different speeds (4400 and 4800 MT/s)"]);
    }

    #[test]
    fn what_names_do_not_tell_accuses_nobody() {
        let numbered = installed(&[("", "DIMM 0", 32, 4800), ("", "DIMM 1", 16, 4800)]);
        assert!(numbered.uneven().is_empty());
        let mut silent = installed(&[("P0 CHANNEL A", "DIMM 0", 32, 4800), ("P0 CHANNEL B", "DIMM 0", 16, 4800)]);
        silent.devices[0].size = None;
        assert!(silent.uneven().is_empty());
    }
}
