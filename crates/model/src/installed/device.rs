//! A memory device as firmware lists it: its channel, and how much its kind transfers.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Bytes in one transfer of a DDR channel: 64 data bits, or two subchannels of 32 bits with DDR5.
const CHANNEL_BYTES: f64 = 8.0;

/// A populated memory device (SMBIOS type 17).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryDevice {
    /// The name of its slot, such as `DIMM_A1`.
    pub locator: Option<String>,
    /// The name of its bank, such as `P0 CHANNEL A`.
    pub bank: Option<String>,
    /// Its size; `null` when not stated.
    pub size: Option<Bytes>,
    /// Such as `DDR5`; `null` if not stated or not informative.
    pub kind: Option<String>,
    /// Width of its data bus in bits; `null` if not stated.
    pub data_bits: Option<u32>,
    /// Configured speed, in millions of transfers a second.
    pub configured_mts: Option<u32>,
    /// Rated speed, in millions of transfers a second.
    pub rated_mts: Option<u32>,
    /// Its ranks; absent if not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
}

impl MemoryDevice {
    /// The names of its bank and its slot together, as firmware has them.
    pub fn name(&self) -> String {
        let names: Vec<&str> = [&self.bank, &self.locator].into_iter().flatten().map(String::as_str).collect();
        if names.is_empty() { "a device without a name".to_owned() } else { names.join(" ") }
    }

    /// The identity of its channel: package, controller and channel as its names state them. `None` if they do not name a channel. The
    /// names differ between vendors: `P0 CHANNEL A`, `CPU1_DIMM_A1`, `DIMM_P0_A0`, `Controller0-ChannelA-DIMM0`, `_Node1_Channel0_Dimm1`. A
    /// number alone (`DIMM 7`, `A7`) numbers slots, and a channel has one or two slots.
    pub(super) fn channel(&self) -> Option<String> {
        let names = self.names();
        let channel = names.iter().find_map(|words| named_channel(words)).or_else(|| names.iter().find_map(|words| lettered(words)))?;
        let mut place: Vec<String> = names.iter().flat_map(|words| places(words)).collect();
        place.sort_unstable();
        place.dedup();
        place.push(channel);
        Some(place.join(" "))
    }

    /// The package that its names state, such as `CPU1`; one common word if they state none.
    pub(super) fn socket(&self) -> String {
        let names = self.names();
        let package = |word: &&str| names.iter().find_map(|words| Some(format!("{word}{}", after(words, word, is_number)?)));
        ["CPU", "PROC", "SOCKET", "P", "S", "NODE"].iter().find_map(package).unwrap_or_else(|| "the socket".into())
    }

    /// The words of the names of its bank and its slot: runs of letters and digits, in upper case.
    fn names(&self) -> Vec<Vec<String>> {
        let words = |name: &String| -> Vec<String> {
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_ascii_uppercase).collect()
        };
        [&self.bank, &self.locator].into_iter().flatten().map(words).collect()
    }
}

/// The channel that follows the word `channel`.
fn named_channel(words: &[String]) -> Option<String> {
    ["CHANNEL", "CHAN", "CH"].into_iter().find_map(|word| after(words, word, is_channel)).map(|c| format!("CHANNEL {c}"))
}

/// The letter of `DIMM_A1`, `DIMMA1` and `DIMM_P0_A0`.
fn lettered(words: &[String]) -> Option<String> {
    let slot = |text: &str| {
        let number = text.strip_prefix(|c: char| c.is_ascii_uppercase())?;
        (number.is_empty() || is_number(number)).then(|| text[..1].to_owned())
    };
    let first = words.iter().position(|w| w.starts_with("DIMM"))?;
    let rest = words[first].strip_prefix("DIMM").filter(|rest| !rest.is_empty());
    let after = words[first + 1..].iter().map(String::as_str).filter(|w| !is_place(w));
    rest.into_iter().chain(after).find_map(slot).map(|letter| format!("CHANNEL {letter}"))
}

/// Words that name a package, node or controller, followed by a number.
const PLACES: [&str; 8] = ["CPU", "PROC", "SOCKET", "NODE", "CONTROLLER", "MC", "P", "S"];

fn places(words: &[String]) -> Vec<String> {
    PLACES.iter().filter_map(|place| Some(format!("{place}{}", after(words, place, is_number)?))).collect()
}

/// The word after `prefix`, or the rest of the word that begins with it.
fn after<'w>(words: &'w [String], prefix: &str, fits: impl Fn(&str) -> bool) -> Option<&'w str> {
    words.iter().enumerate().find_map(|(i, word)| {
        let rest = word.strip_prefix(prefix)?;
        let rest = if rest.is_empty() { words.get(i + 1)?.as_str() } else { rest };
        fits(rest).then_some(rest)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_channel(text: &str) -> bool {
    is_number(text) || (text.len() == 1 && text.bytes().all(|b| b.is_ascii_uppercase()))
}

fn is_place(word: &str) -> bool {
    PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(is_number))
}

/// The family of a memory device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryFamily {
    /// DIMMs: a channel has 64 data bits, whatever its devices state (JESD79).
    Ddr,
    /// Low-power DRAM next to the processor: a device states its part of the bus, 16 to 128 bits.
    LowPower,
    /// Stacked memory in the processor's package: 1024 bits per stack (JESD235, JESD238), stated as a whole or as channels of 64 or 128
    /// bits.
    Stacked,
}

/// A kind as SMBIOS names it.
struct Kind {
    name: &'static str,
    family: MemoryFamily,
    /// The highest speed that its standard and successors of the same name allow, in millions of transfers a second per pin. A higher value
    /// is a mistake of firmware, mostly a wrong unit.
    fastest_mts: u32,
    /// The standard.
    source: &'static str,
}

/// Kinds other than DDR. Wrong speeds of DDR devices are not known.
const KINDS: [Kind; 8] = [
    Kind { name: "LPDDR", family: MemoryFamily::LowPower, fastest_mts: 400, source: "JESD209" },
    Kind { name: "LPDDR2", family: MemoryFamily::LowPower, fastest_mts: 1066, source: "JESD209-2" },
    Kind { name: "LPDDR3", family: MemoryFamily::LowPower, fastest_mts: 2133, source: "JESD209-3" },
    // Includes LPDDR4X, which SMBIOS does not distinguish.
    Kind { name: "LPDDR4", family: MemoryFamily::LowPower, fastest_mts: 4267, source: "JESD209-4" },
    // Includes LPDDR5X, up to 10,667 in its later grades.
    Kind { name: "LPDDR5", family: MemoryFamily::LowPower, fastest_mts: 10_667, source: "JESD209-5" },
    // 128 GB/s a stack.
    Kind { name: "HBM", family: MemoryFamily::Stacked, fastest_mts: 1000, source: "JESD235" },
    // Includes HBM2E: 256 to 461 GB/s a stack.
    Kind { name: "HBM2", family: MemoryFamily::Stacked, fastest_mts: 3600, source: "JESD235D" },
    // 819 GB/s a stack; HBM3E has up to 1.2 TB/s.
    Kind { name: "HBM3", family: MemoryFamily::Stacked, fastest_mts: 9800, source: "JESD238" },
];

/// The family of a device, and the bytes of one transfer.
///
/// # Errors
/// Why it is not known.
pub(super) fn transfer(device: &MemoryDevice, name: &str) -> Result<(MemoryFamily, f64), String> {
    let stated = device.kind.as_deref().ok_or_else(|| format!("firmware's table (SMBIOS) does not state the type of {name}"))?;
    if stated.starts_with("DDR") {
        return Ok((MemoryFamily::Ddr, CHANNEL_BYTES));
    }
    let Some(kind) = KINDS.iter().find(|k| k.name == stated) else {
        return Err(format!("{name} is {stated}, whose channels are not known"));
    };
    let sensible: &[u32] = match kind.family {
        MemoryFamily::Stacked => &[64, 128, 1024],
        _ => &[16, 32, 64, 128],
    };
    let Some(bits) = device.data_bits.filter(|bits| sensible.contains(bits)) else {
        return Err(format!("{name} is {stated}, and firmware's table (SMBIOS) does not state how many bits it transfers at a time"));
    };
    if let Some(mts) = device.configured_mts.filter(|mts| *mts > kind.fastest_mts) {
        return Err(format!("firmware's table (SMBIOS) states {mts} MT/s for {name}, more than {stated} has ({})", kind.source));
    }
    Ok((kind.family, f64::from(bits) / 8.0))
}
