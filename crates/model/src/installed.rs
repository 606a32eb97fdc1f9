//! The memory devices that firmware says are installed, and what they could transfer at most.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod device;
mod population;
pub mod smbios;

pub use device::MemoryDevice;
use device::MemoryFamily;

/// Memory devices as SMBIOS lists them. This is a claim of firmware; in a virtual machine, of the hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstalledMemory {
    /// Populated devices of system memory, in the order of the table.
    pub devices: Vec<MemoryDevice>,
    /// Number of slots for devices, including empty ones.
    pub slots: u32,
    /// Why nothing is known; absent if the table was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The peak bandwidth of all channels together.
#[derive(Debug, Clone, PartialEq)]
pub struct InstalledPeak {
    /// In 10^9 bytes a second.
    pub gbs: f64,
    /// Populated channels.
    pub channels: u32,
    /// The lowest and the highest configured speed of a channel, in millions of transfers a second.
    pub mts: (u32, u32),
    /// Whether names identify the channels. If not, each device counts as a channel, which is too many if two devices
    /// share one.
    pub channels_known: bool,
    /// The smallest and the largest number of bytes that a channel transfers at a time.
    pub bytes: (f64, f64),
    /// Whether they are channels of DIMMs. For these, published figures say how much of the peak CPUs reach. Low-power DRAM and stacked
    /// memory also serve devices other than CPUs, and CPUs cannot use all of their bandwidth.
    pub dimms: bool,
}

impl InstalledMemory {
    /// An empty list with the reason why nothing is known.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Whether it is empty, without a reason.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    /// Populated channels x configured transfers x 8 bytes. For memory other than DIMMs, the bytes that the devices state.
    ///
    /// # Errors
    /// Why it does not follow from what firmware states.
    pub fn peak(&self) -> Result<InstalledPeak, String> {
        if let Some(reason) = &self.reason {
            return Err(reason.clone());
        }
        if self.devices.is_empty() {
            return Err("firmware's table (SMBIOS) states no memory device".into());
        }
        let (mut keys, mut first) = (Vec::new(), None);
        for device in &self.devices {
            let name = device.locator.as_deref().or(device.bank.as_deref()).unwrap_or("a device");
            let (family, bytes) = device::transfer(device, name)?;
            if *first.get_or_insert(family) != family {
                return Err("firmware's table (SMBIOS) does not state which node has which of the kinds of memory".into());
            }
            let Some(mts) = device.configured_mts else {
                return Err(format!("firmware's table (SMBIOS) does not state the configured speed of {name}"));
            };
            keys.push((device.channel(), mts, bytes));
        }
        let channels_known = keys.iter().all(|(channel, ..)| channel.is_some());
        let mut channels: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        for (index, (channel, mts, bytes)) in keys.into_iter().enumerate() {
            let key = channel.filter(|_| channels_known).unwrap_or_else(|| index.to_string());
            // Devices of one channel share its clock. If firmware states two speeds, the slower one counts.
            channels.entry(key).and_modify(|known| known.0 = mts.min(known.0)).or_insert((mts, bytes));
        }
        let mts = || channels.values().map(|(mts, _)| *mts);
        let bytes = || channels.values().map(|(_, bytes)| *bytes);
        Ok(InstalledPeak {
            gbs: channels.values().map(|(mts, bytes)| f64::from(*mts) * bytes / 1e3).sum(),
            channels: channels.len() as u32,
            mts: (mts().min().unwrap_or(0), mts().max().unwrap_or(0)),
            channels_known,
            bytes: (bytes().fold(f64::MAX, f64::min), bytes().fold(0.0, f64::max)),
            dimms: first == Some(MemoryFamily::Ddr),
        })
    }
}

impl InstalledPeak {
    /// The product in words: `12 channels × 4800 MT/s × 8 B`.
    pub fn formula(&self) -> String {
        let mts = if self.mts.0 == self.mts.1 { self.mts.0.to_string() } else { format!("{}–{}", self.mts.0, self.mts.1) };
        let channels = if self.channels == 1 { "channel" } else { "channels" };
        let bytes = if self.bytes.0 == self.bytes.1 { self.bytes.0.to_string() } else { format!("{}–{}", self.bytes.0, self.bytes.1) };
        format!("{} {channels} × {mts} MT/s × {bytes} B", self.channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(bank: &str, locator: &str, mts: u32) -> MemoryDevice {
        let text = |t: &str| (!t.is_empty()).then(|| t.to_owned());
        MemoryDevice {
            bank: text(bank),
            locator: text(locator),
            kind: Some("DDR5".into()),
            configured_mts: Some(mts),
            ..MemoryDevice::default()
        }
    }

    fn peak(devices: Vec<MemoryDevice>) -> Result<InstalledPeak, String> {
        InstalledMemory { slots: devices.len() as u32, devices, reason: None }.peak()
    }

    #[test]
    fn twelve_channels_of_ddr5_4800_are_460_gbs() {
        let devices = ('A'..='L').map(|c| device(&format!("P0 CHANNEL {c}"), "DIMM 0", 4800)).collect();
        let peak = peak(devices).unwrap();
        assert_eq!((peak.channels, peak.channels_known), (12, true));
        assert!((peak.gbs - 460.8).abs() < 1e-9);
        assert_eq!(peak.formula(), "12 channels × 4800 MT/s × 8 B");
    }

    #[test]
    fn two_devices_of_a_channel_count_once() {
        for names in [
            [("P0 CHANNEL A", "DIMM 0"), ("P0 CHANNEL A", "DIMM 1"), ("P1 CHANNEL A", "DIMM 0")],
            [("", "CPU1_DIMM_A1"), ("", "CPU1_DIMM_A2"), ("", "CPU2_DIMM_A1")],
            [("", "DIMM_P0_A0"), ("", "DIMM_P0_A1"), ("", "DIMM_P0_B0")],
            [("", "P1-DIMMA1"), ("", "P1-DIMMA2"), ("", "P2-DIMMA1")],
            [("BANK 0", "Controller0-ChannelA-DIMM0"), ("BANK 0", "Controller0-ChannelA-DIMM1"), ("BANK 0", "Controller1-ChannelA-DIMM0")],
            [("_Node0_Channel0_Dimm0", "A1"), ("_Node0_Channel0_Dimm1", "A9"), ("_Node1_Channel0_Dimm0", "B1")],
            [("Channel A", "CPU0 DIMM 1"), ("Channel A", "CPU0 DIMM 2"), ("Channel A", "CPU1 DIMM 1")],
        ] {
            let peak = peak(names.iter().map(|(bank, locator)| device(bank, locator, 3200)).collect()).unwrap();
            assert_eq!((peak.channels, peak.channels_known), (2, true), "{names:?}");
        }
    }

    #[test]
    fn numbered_slots_are_no_channels() {
        for names in [["PROC 1 DIMM 1", "PROC 1 DIMM 2"], ["A1", "A9"], ["DIMM 0", "DIMM 1"]] {
            let peak = peak(names.iter().map(|locator| device("", locator, 3200)).collect()).unwrap();
            assert_eq!((peak.channels, peak.channels_known), (2, false), "{names:?}");
        }
        // One name that tells nothing makes all channels doubtful.
        assert!(!peak(vec![device("P0 CHANNEL A", "", 3200), device("", "DIMM 3", 3200)]).unwrap().channels_known);
    }

    #[test]
    fn the_slower_device_sets_its_channels_clock() {
        let peak = peak(vec![device("", "DIMM_A1", 3200), device("", "DIMM_A2", 2933), device("", "DIMM_B1", 3200)]).unwrap();
        assert!((peak.gbs - (2933.0 + 3200.0) * 8.0 / 1e3).abs() < 1e-9);
        assert_eq!(peak.formula(), "2 channels × 2933–3200 MT/s × 8 B");
    }

    fn soldered(kind: &str, channel: &str, bits: u32, mts: u32) -> MemoryDevice {
        MemoryDevice { kind: Some(kind.into()), data_bits: Some(bits), ..device("", &format!("Controller0-Channel{channel}"), mts) }
    }

    #[test]
    fn low_power_devices_and_stacks_count_the_bits_that_they_state() {
        // A notebook's bus of 128 bits, listed by 16.
        let peak = peak(["A", "B", "C", "D", "E", "F", "G", "H"].map(|c| soldered("LPDDR5", c, 16, 6400)).into()).unwrap();
        assert!((peak.gbs - 102.4).abs() < 1e-9 && !peak.dimms && peak.channels_known);
        assert_eq!(peak.formula(), "8 channels × 6400 MT/s × 2 B");
        // Four stacks of HBM2E at 3.2 GT/s.
        let peak = self::peak(["A", "B", "C", "D"].map(|c| soldered("HBM2", c, 1024, 3200)).into()).unwrap();
        assert!((peak.gbs - 1638.4).abs() < 1e-9);
        let dimms = self::peak(vec![device("", "DIMM_A1", 4800)]).unwrap();
        assert!(dimms.dimms && dimms.bytes == (8.0, 8.0));
    }

    #[test]
    fn two_kinds_and_impossible_speeds_are_not_added_up() {
        let both = peak(vec![soldered("HBM2", "A", 1024, 3200), device("", "DIMM_A1", 4800)]).unwrap_err();
        assert!(both.contains("which node has which"), "{both}");
        let fast = peak(vec![soldered("LPDDR4", "A", 32, 8533)]).unwrap_err();
        assert!(fast.contains("8533 MT/s") && fast.contains("JESD209-4"), "{fast}");
    }

    #[test]
    fn what_cannot_be_told_says_why() {
        let without = |change: fn(&mut MemoryDevice)| {
            let mut device = device("", "DIMM 0", 3200);
            change(&mut device);
            peak(vec![device]).unwrap_err()
        };
        assert!(without(|d| d.configured_mts = None).contains("configured speed of DIMM 0"));
        assert!(without(|d| d.kind = None).contains("type of DIMM 0"));
        assert!(without(|d| d.kind = Some("LPDDR5".into())).contains("DIMM 0 is LPDDR5, and firmware"));
        assert!(without(|d| (d.kind, d.data_bits) = (Some("HBM2".into()), Some(72))).contains("how many bits"));
        assert!(without(|d| d.kind = Some("SDRAM".into())).contains("not known"));
        assert!(peak(vec![]).unwrap_err().contains("no memory device"));
        assert_eq!(InstalledMemory::unknown("only root may read it").peak().unwrap_err(), "only root may read it");
    }
}
