//! The power plan, and what it says about the frequency of cores.

use std::ptr::{null, null_mut};

use memgauge_model::note::{Note, NoteCode};
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, LocalFree};
use windows_sys::Win32::System::Power::{
    GetSystemPowerStatus, PowerGetActiveScheme, PowerReadACValueIndex, PowerReadDCValueIndex, PowerReadFriendlyName, SYSTEM_POWER_STATUS,
};
use windows_sys::Win32::System::SystemServices::{
    GUID_MAX_POWER_SAVINGS, GUID_PROCESSOR_PERF_BOOST_MODE, GUID_PROCESSOR_PERF_ENERGY_PERFORMANCE_PREFERENCE,
    GUID_PROCESSOR_SETTINGS_SUBGROUP, GUID_PROCESSOR_THROTTLE_MAXIMUM,
};
use windows_sys::core::GUID;

/// Units of the longest name of a plan that is read.
const NAME_UNITS: usize = 256;

/// The power plan in use. A value that the system does not report is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Power {
    /// Its name, in the language of the system.
    pub(super) plan: Option<String>,
    /// It is the plan of the system that saves most power.
    saves_power: bool,
    /// The machine runs on its battery.
    on_battery: bool,
    /// `PERFBOOSTMODE`: 0 turns the boost off.
    boost: Option<u32>,
    /// `PROCTHROTTLEMAX`: the highest frequency in percent of the nominal one. Below 100 the CPU does not boost either.
    maximum: Option<u32>,
    /// `PERFEPP`: from 0, which favours performance, to 100, which favours saving energy.
    preference: Option<u32>,
}

impl Power {
    /// Asks the system (`PowerGetActiveScheme`, `PowerReadFriendlyName`, `PowerReadACValueIndex` or, on battery, `PowerReadDCValueIndex`).
    pub(super) fn read() -> Self {
        let on_battery = is_on_battery();
        let mut active: *mut GUID = null_mut();
        // SAFETY: the first argument is reserved. The function writes one pointer, to memory that is ours to free.
        let status = unsafe { PowerGetActiveScheme(null_mut(), &raw mut active) };
        if status != ERROR_SUCCESS || active.is_null() {
            return Self { on_battery, ..Self::default() };
        }
        // SAFETY: the function has succeeded and made one GUID with `LocalAlloc`, to which nothing else refers.
        let scheme = unsafe {
            let scheme = *active;
            LocalFree(active.cast());
            scheme
        };
        let setting = |id: GUID| setting(&scheme, &id, on_battery);
        Self {
            plan: name(&scheme),
            saves_power: same(&scheme, &GUID_MAX_POWER_SAVINGS),
            on_battery,
            boost: setting(GUID_PROCESSOR_PERF_BOOST_MODE),
            maximum: setting(GUID_PROCESSOR_THROTTLE_MAXIMUM),
            preference: setting(GUID_PROCESSOR_PERF_ENERGY_PERFORMANCE_PREFERENCE),
        }
    }

    /// Whether the plan allows boost. Firmware may still switch it off.
    pub(super) fn turbo(&self) -> Option<bool> {
        match (self.boost, self.maximum) {
            (Some(0), _) => Some(false),
            (_, Some(maximum)) if maximum < 100 => Some(false),
            (boost, _) => boost.map(|_| true),
        }
    }

    /// The preference between energy and performance, in words.
    pub(super) fn preference(&self) -> Option<String> {
        self.preference.map(|percent| format!("{percent} % energy"))
    }

    /// What of this holds results down.
    pub(super) fn notes(&self) -> Vec<Note> {
        let advice = "choose the plan 'High performance': powercfg /setactive SCHEME_MIN";
        let mut notes = Vec::new();
        if self.saves_power {
            notes.push(
                Note::warning(NoteCode::GovernorPowersave, "the power plan saves power: CPUs may stay at low frequencies").advise(advice),
            );
        }
        if let Some(maximum) = self.maximum.filter(|maximum| *maximum < 100) {
            let message = format!("the power plan limits CPUs to {maximum} % of their nominal frequency");
            notes.push(Note::warning(NoteCode::FrequencyLimited, message).advise(advice));
        } else if self.turbo() == Some(false) {
            notes.push(Note::info(NoteCode::TurboOff, "turbo (boost) is switched off: results hold for the lower frequencies"));
        }
        if self.on_battery {
            notes.push(
                Note::warning(NoteCode::OnBattery, "the machine runs on its battery: CPUs and memory may be slower").advise("plug it in"),
            );
        }
        notes
    }
}

fn is_on_battery() -> bool {
    let mut status = SYSTEM_POWER_STATUS::default();
    // SAFETY: the function writes one structure. `ACLineStatus` is 0 on battery, 1 on mains and 255 where it is unknown.
    unsafe { GetSystemPowerStatus(&raw mut status) != 0 && status.ACLineStatus == 0 }
}

fn name(scheme: &GUID) -> Option<String> {
    let mut name = [0u16; NAME_UNITS];
    let mut bytes = size_of_val(&name) as u32;
    // SAFETY: the scheme is read. Without a setting the function writes the name of the scheme, at most `bytes` bytes, which `name` has.
    let status = unsafe { PowerReadFriendlyName(null_mut(), scheme, null(), null(), name.as_mut_ptr().cast(), &raw mut bytes) };
    let text = String::from_utf16_lossy(name.split(|&unit| unit == 0).next().unwrap_or_default());
    (status == ERROR_SUCCESS && !text.is_empty()).then_some(text)
}

/// A setting of processors.
fn setting(scheme: &GUID, id: &GUID, on_battery: bool) -> Option<u32> {
    let mut value = 0;
    // SAFETY: the functions read three GUIDs and write one number.
    let status = unsafe {
        match on_battery {
            true => PowerReadDCValueIndex(null_mut(), scheme, &GUID_PROCESSOR_SETTINGS_SUBGROUP, id, &raw mut value),
            false => PowerReadACValueIndex(null_mut(), scheme, &GUID_PROCESSOR_SETTINGS_SUBGROUP, id, &raw mut value),
        }
    };
    (status == ERROR_SUCCESS).then_some(value)
}

fn same(a: &GUID, b: &GUID) -> bool {
    (a.data1, a.data2, a.data3, a.data4) == (b.data1, b.data2, b.data3, b.data4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_holds_frequencies_down_or_does_not() {
        let turbo = |boost, maximum| Power { boost, maximum, ..Power::default() }.turbo();
        assert_eq!([turbo(Some(0), Some(100)), turbo(Some(2), Some(99)), turbo(None, Some(50))], [Some(false); 3]);
        assert_eq!((turbo(Some(2), Some(100)), turbo(Some(1), None)), (Some(true), Some(true)));
        assert_eq!((turbo(None, Some(100)), turbo(None, None)), (None, None));
    }

    #[test]
    fn notes_say_what_holds_results_down() {
        let codes = |power: Power| power.notes().into_iter().map(|note| note.code.word().to_owned()).collect::<Vec<_>>();
        assert!(codes(Power { boost: Some(2), maximum: Some(100), ..Power::default() }).is_empty());
        assert_eq!(codes(Power { boost: Some(0), on_battery: true, ..Power::default() }), ["turbo-off", "on-battery"]);
        assert_eq!(codes(Power { saves_power: true, maximum: Some(60), ..Power::default() }), ["governor-powersave", "frequency-limited"]);
        assert_eq!(Power { preference: Some(33), ..Power::default() }.preference().unwrap(), "33 % energy");
    }

    #[test]
    fn the_plan_of_this_machine_has_a_name_or_is_unknown() {
        let power = Power::read();
        assert!(power.plan.as_ref().is_none_or(|name| !name.is_empty() && !name.contains('\0')), "{power:?}");
        assert!(power.maximum.is_none_or(|percent| percent <= 100), "{power:?}");
        assert_eq!(power, Power::read());
    }
}
