//! A memory device as firmware lists it.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Bytes in one transfer of a DDR channel: 64 data bits, or two subchannels of 32 bits with DDR5.
pub(super) const CHANNEL_BYTES: f64 = 8.0;

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
}

impl MemoryDevice {
    /// The identity of its channel: package, controller and channel as its names state them. `None` if they do not name a channel. The
    /// names differ between vendors: `P0 CHANNEL A`, `CPU1_DIMM_A1`, `DIMM_P0_A0`, `Controller0-ChannelA-DIMM0`, `_Node1_Channel0_Dimm1`. A
    /// number alone (`DIMM 7`, `A7`) numbers slots, of which a channel has one or two.
    pub(super) fn channel(&self) -> Option<String> {
        let names: Vec<Vec<String>> = [&self.bank, &self.locator].into_iter().flatten().map(|name| words(name)).collect();
        let channel = names.iter().find_map(|words| named_channel(words)).or_else(|| names.iter().find_map(|words| lettered(words)))?;
        let mut place: Vec<String> = names.iter().flat_map(|words| places(words)).collect();
        place.sort_unstable();
        place.dedup();
        place.push(channel);
        Some(place.join(" "))
    }
}

/// A name's words: runs of letters and digits, in upper case.
pub(super) fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_ascii_uppercase).collect()
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
pub(super) fn after<'w>(words: &'w [String], prefix: &str, fits: impl Fn(&str) -> bool) -> Option<&'w str> {
    words.iter().enumerate().find_map(|(i, word)| {
        let rest = word.strip_prefix(prefix)?;
        let rest = if rest.is_empty() { words.get(i + 1)?.as_str() } else { rest };
        fits(rest).then_some(rest)
    })
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_channel(text: &str) -> bool {
    is_number(text) || (text.len() == 1 && text.bytes().all(|b| b.is_ascii_uppercase()))
}

fn is_place(word: &str) -> bool {
    PLACES.iter().any(|place| word.strip_prefix(place).is_some_and(is_number))
}
