//! What people type: parsers never panic, and what is printed parses back to the same value.
#![allow(clippy::unwrap_used, reason = "a panic is a test's report, in its helpers too")]

use std::collections::BTreeSet;
use std::time::Duration;

use memgauge_model::traffic::{Mix, Width};
use memgauge_model::units::{Bytes, IdSet, MAX_ID, excerpt, parse_duration};
use proptest::prelude::*;

/// Text made of the characters that these parsers know, so that much of it nearly parses.
fn near_miss() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(b"0123456789,-:. kKmMgGiIbBtTsn+eE\0".to_vec()), 0..16)
            .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    ]
}

proptest! {
    #[test]
    fn no_text_panics(text in near_miss()) {
        if let Ok(size) = text.parse::<Bytes>() {
            prop_assert_eq!(size.to_string().parse::<Bytes>(), Ok(size));
        }
        if let Ok(set) = text.parse::<IdSet>() {
            prop_assert_eq!(set.to_string().parse::<IdSet>(), Ok(set));
        }
        if let Ok(mix) = text.parse::<Mix>() {
            prop_assert_eq!(mix.to_string().parse::<Mix>(), Ok(mix));
        }
        if let Ok(duration) = parse_duration(&text) {
            prop_assert!(!duration.is_zero() && duration <= Duration::from_secs(86_400), "{:?}", duration);
        }
    }

    #[test]
    fn sizes_round_trip(bytes: u64, shift in 0u32..64) {
        let size = Bytes(bytes >> shift << (shift / 2));
        prop_assert_eq!(size.to_string().parse::<Bytes>(), Ok(size));
        prop_assert_eq!(serde_json::from_str::<Bytes>(&serde_json::to_string(&size).unwrap()).unwrap(), size);
    }

    #[test]
    fn sizes_are_numbers_times_units(n in 0u64..1 << 20, unit in 0usize..13, space: bool, upper: bool) {
        let (name, factor) = [
            ("", 1), ("b", 1), ("k", 1 << 10), ("kib", 1 << 10), ("m", 1 << 20), ("mib", 1 << 20), ("g", 1 << 30), ("gib", 1 << 30),
            ("t", 1 << 40), ("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("tb", 1_000_000_000_000u64),
        ][unit];
        let text = format!("{n}{}{}", if space { " " } else { "" }, if upper { name.to_uppercase() } else { name.to_owned() });
        prop_assert_eq!(text.parse::<Bytes>(), Ok(Bytes(n * factor)));
    }

    #[test]
    fn id_sets_round_trip(ids in prop::collection::btree_set(0u32..300, 0..40), far in prop::option::of(0..MAX_ID)) {
        let ids: BTreeSet<u32> = ids.into_iter().chain(far).collect();
        let set: IdSet = ids.iter().copied().collect();
        let text = set.to_string();
        prop_assert_eq!(text.parse::<IdSet>(), Ok(set.clone()));
        prop_assert_eq!(serde_json::from_str::<IdSet>(&serde_json::to_string(&set).unwrap()).unwrap(), set.clone());
        prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), ids);
        // Ranges are as long as can be: no range ends where the next begins.
        let ends: Vec<(u32, u32)> = text
            .split(',')
            .filter(|part| !part.is_empty())
            .map(|part| part.split_once('-').unwrap_or((part, part)))
            .map(|(low, high)| (low.parse().unwrap(), high.parse().unwrap()))
            .collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{}", text);
    }

    #[test]
    fn id_lists_are_unions_of_their_parts(parts in prop::collection::vec((0u32..200, 0u32..50, 1u32..5), 1..6)) {
        let text: Vec<String> = parts.iter().map(|(low, more, step)| format!("{low}-{}:{step}", low + more)).collect();
        let expected: IdSet = parts.iter().flat_map(|(low, more, step)| (*low..=low + more).step_by(*step as usize)).collect();
        prop_assert_eq!(text.join(",").parse::<IdSet>(), Ok(expected));
    }

    #[test]
    fn sets_are_sets(a in prop::collection::btree_set(0u32..40, 0..20), b in prop::collection::btree_set(0u32..40, 0..20)) {
        let (x, y): (IdSet, IdSet) = (a.iter().copied().collect(), b.iter().copied().collect());
        prop_assert_eq!(x.union(&y).iter().collect::<BTreeSet<_>>(), &a | &b);
        prop_assert_eq!(x.intersection(&y).iter().collect::<BTreeSet<_>>(), &a & &b);
        prop_assert_eq!(x.difference(&y).iter().collect::<BTreeSet<_>>(), &a - &b);
        prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert!((0..42).all(|id| x.contains(id) == a.contains(&id)));
        let mut inserted = x.clone();
        b.iter().for_each(|&id| inserted.insert(id));
        prop_assert_eq!(inserted, x.union(&y));
        prop_assert_eq!((x.first(), x.last(), x.len()), (a.first().copied(), a.last().copied(), a.len()));
    }

    #[test]
    fn excerpts_are_short_and_print_nothing_odd(text: String) {
        let quoted = excerpt(&text);
        prop_assert!(!quoted.chars().any(char::is_control) && quoted.chars().count() <= 81 * 8, "{:?}", quoted);
    }

    #[test]
    fn durations_are_numbers_times_units(ms in 1u64..86_400_000) {
        let expected = Duration::from_millis(ms);
        for text in [format!("{ms}ms"), format!("{ms} ms"), format!("{}.{:03}s", ms / 1000, ms % 1000), format!("{}.{:03}", ms / 1000, ms % 1000)] {
            let parsed = parse_duration(&text).unwrap();
            prop_assert!(parsed.abs_diff(expected) < Duration::from_micros(1), "{} is {:?}", text, parsed);
        }
    }
}

#[test]
fn what_is_no_size_says_what_is() {
    for text in [
        "",
        " ",
        "-1",
        "1.5",
        "1.5B",
        "1.5.2G",
        ".G",
        "0.0001K",
        "64 Q",
        "G",
        "99999999999999999999",
        "18446744073709551615K",
        "1 k i b",
        "0x10",
    ] {
        let message = text.parse::<Bytes>().unwrap_err().to_string();
        assert!(message.contains(&format!("'{text}'")) && message.contains("512M"), "{message}");
    }
    assert_eq!(" 64 KiB ".parse(), Ok(Bytes::kib(64)));
    for (text, bytes) in [("1.5G", 3 << 29), ("4.7GB", 4_700_000_000), ("0.5 KiB", 512), ("8.1MB", 8_100_000)] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
}

#[test]
fn what_is_no_list_says_what_is() {
    for text in ["a", "1-", "-1", "3-1", "1,,2", ",", "1-2:0", "1-2-3", "1:2:3", "+1", "65536", "4294967296", "0-4294967295", "1 ,2"] {
        let message = text.parse::<IdSet>().unwrap_err().to_string();
        assert!(message.contains(&format!("'{text}'")) && message.contains("0-3,8"), "{message}");
    }
    assert_eq!("\n".parse(), Ok(IdSet::new()), "an empty sysfs file");
    assert_eq!("0-3,8\n".parse(), Ok(IdSet::from_iter([0, 1, 2, 3, 8])));
}

#[test]
fn what_is_no_duration_is_refused() {
    for text in ["", "0", "0s", "0.0000000001s", "-1s", "nan", "inf", "25h", "1e3", "86401", "..", "1.2.3s", "s", "99999999999999999999m"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    assert_eq!(parse_duration("1m").unwrap(), Duration::from_secs(60));
    for (text, seconds) in [("1m30s", 90), ("1m 30s", 90), ("2h", 7200), ("1h30m", 5400), ("1.5min", 90)] {
        assert_eq!(parse_duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
    }
    assert_eq!(parse_duration("250us").unwrap(), Duration::from_micros(250));
    for text in ["1m30", "30s1", "1 2", "s", "1mm", "1m30s x"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    assert_eq!(parse_duration("0.000000001s").unwrap(), Duration::from_nanos(1));
    assert_eq!(parse_duration("86400").unwrap(), Duration::from_secs(86_400));
}

#[test]
fn names_of_mixes_and_widths_are_those_of_results() {
    for mix in Mix::ALL {
        assert_eq!(mix.name().to_uppercase().parse(), Ok(mix));
        assert_eq!(serde_json::to_value(mix).unwrap(), mix.name());
    }
    for width in Width::ALL {
        assert_eq!(serde_json::to_value(width).unwrap(), width.name());
    }
    for (alias, mix) in [("reads", Mix::AllReads), ("write", Mix::R1W1), ("Triad", Mix::R2W1Nt)] {
        assert_eq!(alias.parse(), Ok(mix));
    }
    for name in ["triad", "2:1-nt"] {
        assert_eq!(name.parse::<Mix>().unwrap().to_string(), "triad", "shown by the name that people know, whichever was given");
        assert_eq!(serde_json::from_value::<Mix>(name.into()).unwrap(), Mix::R2W1Nt, "{name} in a file");
    }
    let unknown = "1:9".parse::<Mix>().unwrap_err().to_string();
    assert!(Mix::ALL.iter().all(|mix| unknown.contains(mix.name())) && unknown.contains("triad (2:1-nt)"), "{unknown}");
}

#[test]
fn mixes_named_by_their_ratio_have_it_on_the_bus() {
    // With plain stores the line is read first: reads are loads plus stores.
    for mix in [Mix::R9W1, Mix::R4W1, Mix::R3W1, Mix::R2W1, Mix::R3W2, Mix::R1W1] {
        let (loads, stores) = mix.lines();
        assert_eq!(mix.name(), format!("{}:{}", loads + stores, stores));
        assert!(!mix.non_temporal());
    }
    // Non-temporal stores do not.
    for mix in [Mix::R3W1Nt, Mix::R1W1Nt] {
        let (loads, stores) = mix.lines();
        assert_eq!(mix.name(), format!("{loads}:{stores}-nt"));
        assert!(mix.non_temporal());
    }
    assert_eq!((Mix::R2W1Nt.name(), Mix::R2W1Nt.lines(), Mix::R2W1Nt.non_temporal()), ("triad", (2, 1), true));
    // The suffix is the number of streams loaded where the plain name has another.
    for (mix, plain, ratio) in [(Mix::R3W1X2, Mix::R3W1, "3:1"), (Mix::R2W1NtX1, Mix::R2W1Nt, "2:1-nt")] {
        assert!(mix.name().strip_prefix(ratio).is_some_and(|suffix| suffix.starts_with("-x")), "{mix}");
        assert_eq!((mix.lines(), mix.non_temporal()), (plain.lines(), plain.non_temporal()));
        assert_eq!(mix.with_one_read_stream(), plain.with_one_read_stream());
    }
}

#[test]
fn a_survey_has_each_mix_once() {
    let mut seen = BTreeSet::new();
    assert!(Mix::PEAK.into_iter().all(|mix| seen.insert(mix)));
    assert!(Mix::ALL.into_iter().all(|mix| seen.insert(mix) || Mix::PEAK.contains(&mix)));
    assert_eq!(seen.len(), Mix::ALL.len());
}

#[test]
fn long_lists_take_little_time() {
    // With a set of single numbers, either took minutes.
    let begin = std::time::Instant::now();
    assert_eq!(vec!["0-65535"; 12_000].join(",").parse::<IdSet>().unwrap().len(), 65_536);
    assert!(vec!["0-65535:2"; 12_000].join(",").parse::<IdSet>().is_err(), "393 million numbers");
    assert_eq!("0-65535:2".parse::<IdSet>().unwrap().len(), 32_768);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(serde_json::from_str::<IdSet>("\"0-65535:2\"").is_err(), "results have no steps");
}
