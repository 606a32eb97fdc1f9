//! No argument and no file ends the program by a panic.

use std::ffi::OsString;

use memgauge_planner::plan;
use proptest::prelude::*;

use super::super::letters::{LETTERS, MODES};
use super::*;

fn some_argument() -> impl Strategy<Value = OsString> {
    let letter = (0..LETTERS.len(), prop_oneof!["", "[0-9]{1,12}", "[0-9a-z,./:-]{0,6}", "\\PC{0,6}"])
        .prop_map(|(i, value)| OsString::from(format!("-{}{value}", LETTERS[i].letter)));
    let mode = (0..MODES.len()).prop_map(|i| OsString::from(MODES[i].0));
    prop_oneof![6 => letter, 3 => mode, 1 => "\\PC{0,8}".prop_map(OsString::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_argument_vector_panics(args in prop::collection::vec(some_argument(), 0..8)) {
        if let Ok(CommandLine::Measure { mode, letters, .. }) = parse(&args)
            && let Ok(translation) = translate(mode, &letters, &inputs(&KERNELS))
        {
            prop_assert!(!translation.sections.is_empty());
            for spec in translation.sections.iter().flat_map(|s| &s.specs) {
                // Refusals are fine; panics are not.
                let _ = plan(spec, &MACHINE, &KERNELS);
            }
        }
    }

    #[test]
    fn no_file_panics(text in "([0-9a-zRW#, .-]{0,12}[ \n]){0,8}", bytes in "\\PC{0,80}") {
        for text in [text, bytes] {
            let _ = super::super::files::threads(&text, Some(0), &pmem);
            let _ = super::super::files::delays(&text);
            let _ = crate::contents::parse(&text);
        }
    }
}
