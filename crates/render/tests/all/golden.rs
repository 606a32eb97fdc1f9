//! Saved results in every format, as checked in. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes them anew.

use std::path::PathBuf;

use memgauge_analysis::conclusions::summary::summarise;
use memgauge_analysis::reference::references;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{ChaseOrder, Experiment, MemoryPlace, Metric};
use memgauge_model::integrity::TestPattern;
use memgauge_model::note::{Code, Note, NoteCode};
use memgauge_model::result::{
    CauseEvidence, Compared, ComparedWith, Finding, Health, HealthStatus, Incomplete, LikelyCause, Mismatch, Quality, QualityLevel,
    QualityReason, Report,
};
use memgauge_model::traffic::Mix;
use memgauge_render::{Appearance, Document, Format, PlannedRun, mlc_scan};

use crate::goldens::{check, compare};
use crate::samples;
use crate::shown::{format, plan_text};

fn saved(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/results").join(format!("{name}.json"))
}

fn text(report: &Report, width: usize) -> String {
    String::from_utf8(report.render(Format::TEXT, &Appearance { width, colour: false, verbose: true, ..Appearance::default() }).unwrap())
        .unwrap()
}

#[test]
fn saved_results_are_the_samples() {
    for (name, report) in samples::all() {
        let json = String::from_utf8(report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
        assert_eq!(memgauge_render::read(json.as_bytes()).unwrap(), report, "{name} does not survive JSON");
        compare(&saved(name), json);
    }
}

#[test]
fn text_of_saved_results() {
    for (name, report) in samples::all() {
        check(&format!("{name}.txt"), &text(&report, 100));
    }
}

fn short(report: &Report, width: usize) -> String {
    let report = Report { summary: Some(summarise(report)), ..report.clone() };
    String::from_utf8(report.render(Format::TEXT, &Appearance { width, colour: false, verbose: false, ..Appearance::default() }).unwrap())
        .unwrap()
}

/// A machine that others use: a third of the numbers is unreliable, and one in seven is missing.
fn busy(mut report: Report) -> Report {
    for (i, m) in report.results.iter_mut().enumerate() {
        if i % 7 == 6 {
            m.estimate = Estimate { not_measured: Some(NotMeasured::OutOfTime), ..Estimate::default() };
            m.quality = Quality { level: QualityLevel::None, reasons: vec![] };
        } else {
            let level = if i % 3 == 0 { QualityLevel::Unreliable } else { QualityLevel::Degraded };
            m.quality = Quality { level, reasons: vec![QualityReason::NotConverged, QualityReason::BurstsDisturbed] };
            (m.evidence.noise.bursts, m.evidence.noise.bursts_disturbed) = (Some(12), Some(9));
        }
    }
    let message = "others used the CPUs during the run: rustc 93 %, chrome 41 % of a CPU";
    let note = Note::warning(NoteCode::MachineBusy, message).advise("run again when they are idle, or wait for that with --wait-quiet 60s");
    report.notes.push(note);
    report
}

#[test]
fn a_short_page_answers_first() {
    let pages = [
        ("short-quiet-80", short(&samples::vm(), 80), 45),
        ("short-quiet-120", short(&samples::vm(), 120), 45),
        ("short-busy-80", short(&busy(samples::vm()), 80), 60),
        // What a pipe gets.
        ("short-busy-100", short(&busy(samples::vm()), 100), 60),
        ("short-server-80", short(&samples::machines::server(), 80), 45),
        ("short-server-busy-80", short(&busy(samples::machines::server()), 80), 60),
        ("short-two-nodes-80", short(&samples::two_nodes(), 80), 85),
        ("short-two-nodes-100", short(&samples::two_nodes(), 100), 85),
        ("short-two-nodes-120", short(&samples::two_nodes(), 120), 85),
        ("short-two-nodes-busy-80", short(&busy(samples::two_nodes()), 80), 95),
        ("short-eight-nodes-80", short(&samples::eight_nodes(), 80), 45),
        ("short-eight-nodes-120", short(&samples::eight_nodes(), 120), 45),
        ("short-eight-nodes-busy-80", short(&busy(samples::eight_nodes()), 80), 70),
        ("short-c2c-matrix-80", short(&samples::machines::two_times_64(), 80), 24),
    ];
    for (name, page, most) in pages {
        let lines = page.lines().count();
        assert!(lines <= most, "{name}: {lines} lines\n{page}");
        let width: usize = name.rsplit('-').next().unwrap().parse().unwrap();
        assert!(page.lines().all(|line| line.chars().count() <= width), "{page}");
        check(&format!("{name}.txt"), &page);
    }
}

#[test]
fn a_page_of_one_measurement_says_first_how_far_to_trust_it() {
    let only = |mut report: Report, experiment: Experiment| {
        report.results.retain(|m| m.experiment == experiment);
        report
    };
    let loaded = only(samples::vm(), Experiment::LoadedLatency);
    let sweep = samples::sweeps::counted(&[], 1000);
    for (name, report) in [("loaded", loaded), ("sweep", sweep)] {
        let page = short(&report, 80);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        let (trust, first) =
            (page.find("\nTrust  ").unwrap(), page.find("by working set").or_else(|| page.find("Latency under load")).unwrap());
        assert!(trust < first && page.contains(" good\n"), "{page}");
        check(&format!("short-{name}-80.txt"), &page);
        let page = short(&busy(report), 80);
        let (trust, why) = (page.find("\nUNRELIABLE  ").unwrap(), page.find("  ! others used the CPUs").unwrap());
        assert!(trust < why && why < page.find("by working set").or_else(|| page.find("Latency under load")).unwrap(), "{page}");
        assert_eq!(page.matches("others used the CPUs").count(), 1, "{page}");
        check(&format!("short-{name}-busy-80.txt"), &page);
    }
}

#[test]
fn a_page_and_a_line_say_the_same_of_the_numbers() {
    let line = |report: &Report| {
        String::from_utf8(report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() }).unwrap()).unwrap()
    };
    let quiet = samples::vm();
    assert!(short(&quiet, 100).contains("Trust               35 of 36 good, 1 degraded; ±"), "{}", short(&quiet, 100));
    assert!(line(&quiet).ends_with(" · 35 of 36 good, 1 degraded\n"), "{}", line(&quiet));
    let busy = busy(quiet);
    assert!(line(&busy).starts_with("UNRELIABLE: 0 of 36 good, 21 degraded, 10 unreliable (~), 5 missing (—) · latency ~104.3 ns ±0.3"));
    let page = short(&busy, 100);
    let order =
        ["UNRELIABLE          0 of 36 good", "  ! others used the CPUs", "Idle latency        ~104.3 ns ±0.3 · 147.6 ns ±0.5 random"];
    let at: Vec<usize> = order.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"))).collect();
    assert!(at.is_sorted(), "{page}");
    // One mark with one meaning.
    assert!(!page.contains('*') && !page.contains("not reliable"), "{page}");
}

#[test]
fn a_median_over_places_does_not_look_like_an_interval() {
    let page = short(&samples::eight_nodes(), 100);
    assert!(page.contains("98.4 ns (98.1–98.9 over 8 nodes) · remote 203.8 ns (114.4–210.8 over 56 pairs)"), "{page}");
    let page = short(&samples::vm(), 100);
    assert!(page.contains("Latency under load  146.2 ns ±0.6 at full load, up to 27.9 GB/s ±0.1"), "{page}");
}

#[test]
fn legends_are_for_those_who_ask() {
    let report = samples::eight_nodes();
    for legend in ["random within a window", "loads only", "10⁹ bytes"] {
        assert!(!short(&report, 100).contains(legend) && text(&report, 100).contains(legend), "{legend}");
    }
    let page = short(&samples::vm(), 100);
    for legend in ["with the reads that stores cause", "as in MLC"] {
        assert!(!page.contains(legend), "{legend}: {page}");
    }
    // Nobody knows it by the name.
    assert!(page.contains("2:1         1 load : 1 store") && page.contains("1:1         stores only"), "{page}");
}

#[test]
fn translation_that_the_intervals_do_not_show_is_not_a_number() {
    let mut report = samples::vm();
    let shown = |report: &Report| text(report, 100).lines().find(|line| line.contains("CPU 0   node 0")).map(str::to_owned).unwrap();
    assert!(shown(&report).ends_with(" +43.3"), "{}", shown(&report));
    let full = report.results.iter_mut().find(|m| m.at.order == Some(ChaseOrder::FullRandom)).unwrap();
    full.quality.level = QualityLevel::Unreliable;
    assert!(shown(&report).ends_with(" ~+43.3"), "{}", shown(&report));
    let full = report.results.iter_mut().find(|m| m.at.order == Some(ChaseOrder::FullRandom)).unwrap();
    full.evidence.translation_ns = Some(0.0);
    assert!(shown(&report).ends_with(" not seen"), "{}", shown(&report));
}

/// A region with words of each kind of error, which others like it do not have.
fn corrupted(words: Vec<Mismatch>) -> Report {
    let mut report = samples::scan();
    let integrity = report.results[3].evidence.integrity.as_mut().unwrap();
    integrity.mismatches = words.len() as u64;
    integrity.first = words;
    memgauge_analysis::conclusions::scan::judge(&mut report.results[..20]);
    report.notes = memgauge_analysis::conclusions::scan::notes(&report.results, report.machine.identity.system);
    report
}

#[test]
fn words_that_were_wrong() {
    let word = |offset: u64, second_read, rewritten_read| Mismatch {
        offset,
        address: Some(0x7f12_4000_0000 + offset),
        physical: Some((228 << 30) + offset),
        node: Some(0),
        devices: vec![],
        devices_unknown: None,
        pattern: Some(TestPattern::Random),
        written: 0x0123_4567_89ab_cdef,
        read: 0x0123_4567_89ab_cdcf,
        second_read,
        rewritten_read,
        cpu: 5,
    };
    let (right, wrong) = (0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdcf);
    let devices = vec!["DIMM_A1 bank 0".to_owned(), "DIMM_B1 bank 0".to_owned()];
    let stuck = Mismatch { devices, ..word(0x1000, wrong, Some(wrong)) };
    let unseen = Mismatch { physical: None, node: None, address: None, pattern: None, ..word(0x20_0000, wrong, None) };
    let words = vec![stuck.clone(), word(0x1040, wrong, Some(right)), word(0x1_2348, right, None), unseen];
    check("scan-faults.txt", &text(&corrupted(words), 200));
    let one = text(&corrupted(vec![stuck]), 140);
    assert!(one.contains("1 word was wrong, over all comparisons, in 1 result; 1 word is listed, each once"), "{one}");
}

/// A guest with CPUs of a generation, and what was published about it.
fn referenced(family: &str, model: &str) -> Report {
    let mut report = samples::vm();
    report.machine.identity.model = [("family", family), ("model", model)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let references = references(&report);
    Report { references: references.spans, no_reference: references.none, ..report }
}

#[test]
fn published_values_stand_beside_the_results() {
    let (zen4, unknown) = (referenced("25", "17"), referenced("99", "1"));
    let (shown, without) = (text(&zen4, 400), text(&unknown, 400));
    let span = "Zen 4, DDR5, virtual machines, idle latency, random chase over the whole buffer: 114.0–133.0 ns (n = 5, 5 corrected for cache hits, ";
    assert!(shown.contains(span) && shown.contains("; here 147.6 ns, above that"), "{shown}");
    assert!(shown.contains("Sources: memgauge reference 'zen 4' --sources"), "{shown}");
    assert!(without.contains("no published reference: memgauge does not know this CPU's generation ("), "{without}");
    assert!(!without.contains("Sources:"), "{without}");
    let json = String::from_utf8(unknown.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    assert!(json.contains("\"reason\": \"generation-unknown\""), "{json}");
    assert_eq!(memgauge_render::read(json.as_bytes()).unwrap(), unknown);
    for report in [&zen4, &unknown] {
        let page = String::from_utf8(report.render(Format::HTML, &Appearance::default()).unwrap()).unwrap();
        assert!(page.contains("idle latency, random chase over the whole buffer"), "the page has what the text has");
    }
}

#[test]
fn every_report_has_a_line() {
    let line = |report: &Report| {
        String::from_utf8(report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() }).unwrap()).unwrap()
    };
    let mut shown = String::new();
    for (name, report) in samples::all().into_iter().chain([("busy", busy(samples::vm())), ("loops", samples::sweeps::loops())]) {
        let text = line(&report);
        assert!(text.ends_with('\n') && (name == "loops" || text.lines().count() == 1), "{name}: {text}");
        shown.push_str(&format!("{name}: {text}"));
        if let Some(plan) = &report.plan {
            shown.push_str(&format!("{name}, planned: {}", PlannedRun { plan, machine: &report.machine }.line(&Appearance::default())));
        }
    }
    check("lines.txt", &shown);
}

#[test]
fn text_of_a_narrow_and_of_a_wide_terminal() {
    check("two-nodes-80.txt", &text(&samples::two_nodes(), 80));
    check("cxl-hmat-120.txt", &text(&samples::cxl(), 120));
}

#[test]
fn tiers_of_memory_in_a_narrow_terminal() {
    let report = samples::tiers();
    let page = text(&report, 80);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    check("tiers-80.txt", &page);
    let plan = plan_text(report.plan.as_ref().unwrap(), &report.machine, 80);
    assert!(plan.contains("Tiers of memory") && plan.lines().all(|line| line.chars().count() <= 80), "{plan}");
    let info = text(&samples::info(), 80);
    assert!(info.lines().all(|line| line.chars().count() <= 80), "{info}");
}

#[test]
fn text_of_sweeps_and_of_loops() {
    check("sweep-counters.txt", &text(&samples::sweeps::counted(&[], 1000), 100));
    let narrow = text(&samples::sweeps::counted(&[], 1000), 60);
    let sketch = narrow.lines().find(|line| line.contains('▁') && line.contains("KiB")).unwrap_or_else(|| panic!("{narrow}"));
    assert!(sketch.chars().count() <= 60 && sketch.ends_with("GiB"), "a sketch fits: {sketch}");
    check("loops.txt", &text(&samples::sweeps::loops(), 100));
    let mut disturbed = samples::sweeps::loops();
    for (m, level) in disturbed.results.iter_mut().zip([QualityLevel::Unreliable, QualityLevel::Degraded]) {
        m.quality = Quality { level, reasons: vec![QualityReason::BusyMachine, QualityReason::Steal] };
    }
    let shown = text(&disturbed, 100);
    assert!(shown.starts_with("chase 512 MiB: ~104.3 ±0.3 ns, UNRELIABLE (busy machine, steal), 9 passes"), "{shown}");
    assert!(shown.contains("\nstream 512 MiB: 104.3 ±0.3 GB/s, degraded (busy machine, steal), 3 passes"), "{shown}");
}

#[test]
fn a_scan_as_that_tool_prints_it() {
    let shown = mlc_scan(&samples::scan());
    check("scan-mlc.txt", &shown);
    for line in shown.lines() {
        let table = line.starts_with("0x");
        assert!(!table || line.split('\t').count() == 3, "scripts take the third column: {line}");
        assert!(table || !line.trim_start().starts_with(|c: char| c.is_ascii_digit()), "{line}");
    }
    assert_eq!(mlc_scan(&samples::vm()), "");
}

#[test]
fn a_scan_that_was_interrupted_says_what_is_missing() {
    let mut report = samples::scan();
    for m in report.results.iter_mut().take(20) {
        m.estimate = Estimate { not_measured: Some(NotMeasured::Interrupted), ..Estimate::default() };
    }
    let shown = text(&report, 100);
    assert!(shown.contains("not measured: interrupted before it was measured"), "{shown}");
    assert!(mlc_scan(&report).contains("0x3840000000\t225\tnan\n"));
}

#[test]
fn a_run_that_was_interrupted_before_its_first_number_has_no_tables() {
    let mut report = samples::vm();
    for m in &mut report.results {
        m.estimate = Estimate { not_measured: Some(NotMeasured::Interrupted), ..Estimate::default() };
    }
    (report.complete, report.incomplete) = (false, Some(Incomplete::Signal { name: "SIGINT".into() }));
    let page = short(&report, 80);
    assert!(page.contains("\nINCOMPLETE: interrupted by SIGINT\nNothing was measured until then.\n"), "{page}");
    assert!(page.lines().count() <= 9 && !page.contains('—'), "{page}");
    assert!(text(&report, 80).contains("Peak bandwidth by mix"), "whoever asks for everything gets it");
}

#[test]
fn likely_causes_stand_behind_the_verdict() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    report.curves.clear();
    let cause = |code: &str, what: &str, evidence: &[(i32, &str)]| LikelyCause {
        code: Code::from_word(code),
        what: what.to_owned(),
        points: evidence.iter().map(|(points, _)| points).sum(),
        evidence: evidence.iter().map(|(points, text)| CauseEvidence { points: *points, text: (*text).to_owned() }).collect(),
        check: Some("look at the list of modules".into()),
    };
    let message = "node 1, own memory, all-reads, bandwidth: 150.2 GB/s, 22 % worse than in 4 earlier checks";
    let finding =
        Finding { code: Code::from_word("slower-than-before"), severity: HealthStatus::Failure, message: message.into(), advice: None };
    let others = ["2:1", "1:1"].map(|mix| Finding {
        message: format!("node 1, own memory, {mix}"),
        advice: Some("not beside causes".into()),
        ..finding.clone()
    });
    report.health = Some(Health {
        status: HealthStatus::Failure,
        findings: [finding].into_iter().chain(others).collect(),
        causes: vec![
            cause(
                "empty-channel",
                "memory modules are missing: P1 CHANNEL C DIMM 0",
                &[
                    (4, "firmware listed P1 CHANNEL C DIMM 0 in the check of 2026-02-12, and does not now"),
                    (1, "bandwidth is 22 % less and idle latency as it should be, as with fewer channels"),
                ],
            ),
            cause(
                "kernel-or-firmware-changed",
                "an update: other firmware settings, or mitigations of CPU vulnerabilities",
                &[
                    (2, "since then: kernel 6.12.1 → 6.12.2"),
                    (-1, "other parts of the machine are as they should be"),
                    (0, "never shown behind the two strongest"),
                ],
            ),
        ],
        ..Health::default()
    });
    let page = short(&report, 80);
    assert!(!page.contains("not beside causes") && text(&report, 80).contains("not beside causes"), "{page}");
    check("short-causes-80.txt", &page);
}

#[test]
fn a_health_check_begins_with_its_verdict() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    report.curves.clear();
    let finding = |code: &str, severity, message: &str, advice: Option<&'static str>| Finding {
        code: Code::from_word(code),
        severity,
        message: message.into(),
        advice: advice.map(Into::into),
    };
    report.health = Some(Health {
        status: HealthStatus::Failure,
        findings: vec![
            finding(
                "slower-than-siblings",
                HealthStatus::Failure,
                "node 1, own memory, all-reads, bandwidth: 150.2 GB/s, 22 % worse than node 0, own memory, all-reads, bandwidth (192.6 GB/s)",
                Some("compare its memory devices with those of the others (memgauge info, as root)"),
            ),
            finding("node-memory-differs", HealthStatus::Warning, "node 1 has 192.0 GiB, and others have up to 256.0 GiB", None),
            finding(
                "not-confirmed",
                HealthStatus::Ok,
                "CPU 0, own memory, idle latency: 120.0 ns; not so when it was measured again",
                None,
            ),
        ],
        compared_with: vec!["siblings".into(), "history".into()],
        compared: vec![
            Compared { numbers: 6, absent: 2, worst: Some(0.22), ..Compared::new(ComparedWith::Siblings) },
            Compared {
                numbers: 5,
                unreliable: 1,
                absent: 2,
                worst: Some(-0.004),
                count: Some(7),
                since: Some("2026-02-12T03:00:00.000Z".into()),
                ..Compared::new(ComparedWith::History)
            },
        ],
        measured_again: 2,
        causes: Vec::new(),
    });
    check("health.txt", &text(&report, 100));
    // The verdict, its findings and the headline; tables and what disturbed each number are evidence.
    let page = short(&report, 80);
    assert!(page.lines().count() <= 24 && page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains("Reliability"), "{page}");
    check("short-health-80.txt", &page);
    let line = |report: &Report| {
        String::from_utf8(report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() }).unwrap()).unwrap()
    };
    assert!(line(&report).starts_with("FAILURE: node 1, own memory, all-reads, bandwidth: 150.2 GB/s"), "{}", line(&report));
    assert!(line(&report).ends_with("(192.6 GB/s); and 1 more finding\n"), "{}", line(&report));
    for (status, word) in [
        (HealthStatus::Ok, "NO FAULT FOUND"),
        (HealthStatus::Unknown, "NOT JUDGED"),
        (HealthStatus::Warning, "WARNING"),
        (HealthStatus::CouldNotMeasure, "COULD NOT MEASURE"),
        (HealthStatus::Incident, "INCIDENT"),
    ] {
        report.health = Some(Health { status, ..Health::default() });
        assert!(text(&report, 100).lines().any(|line| line == word), "{word}");
    }
    let good = |compared: Compared| {
        let health = Health { compared: vec![Compared { numbers: 4, worst: Some(0.021), ..compared }], ..Health::default() };
        line(&Report { health: Some(health), ..report.clone() })
    };
    let since = |with, count| Compared { count, since: Some("2026-02-12T03:00:00.000Z".into()), ..Compared::new(with) };
    for (compared, sentence) in [
        (since(ComparedWith::History, Some(7)), "NO FAULT FOUND: as fast as in 7 earlier checks since 12 February"),
        (since(ComparedWith::History, Some(1)), "NO FAULT FOUND: as fast as in an earlier check of 12 February"),
        (
            Compared { file: Some("a.json".into()), ..since(ComparedWith::Baseline, None) },
            "NO FAULT FOUND: as fast as in a.json of 12 February",
        ),
        (
            Compared { undecided: 3, ..since(ComparedWith::History, Some(7)) },
            "NO FAULT FOUND: 4 of 7 numbers as fast as in 7 earlier checks since 12 February",
        ),
        (
            Compared { undecided: 1, ..Compared::new(ComparedWith::Siblings) },
            "NO FAULT FOUND: 4 of 5 numbers alike in similar parts of the machine",
        ),
        (since(ComparedWith::Fleet, Some(12)), "NO FAULT FOUND: as fast as 12 hosts like it"),
        (since(ComparedWith::Limit, None), "NO FAULT FOUND: at least 98 % of what its memory can transfer"),
    ] {
        assert_eq!(good(compared).trim_end(), sentence);
    }
    let extent = |numbers, worst, undecided| {
        let compared = Compared { numbers, undecided, worst: Some(worst), ..since(ComparedWith::History, Some(2)) };
        let page = text(&Report { health: Some(Health { compared: vec![compared], ..Health::default() }), ..report.clone() }, 200);
        page.lines().find_map(|line| Some(line.split_once("earlier checks: ")?.1.to_owned())).unwrap()
    };
    assert_eq!(extent(2, 0.0, 0), "2 of 2 numbers, none slower");
    assert_eq!(extent(1, 0.0, 0), "1 of 1 numbers, as fast");
    assert_eq!(extent(1, 0.012, 0), "1 of 1 numbers, 1.2 % slower");
    assert_eq!(extent(1, -0.012, 0), "1 of 1 numbers, 1.2 % faster");
    let undecided = "2 of 3 numbers, at most 1.2 % slower; not compared: 1 undecided (slower by 10 % or more, but within the scatter)";
    assert_eq!(extent(2, 0.012, 1), undecided);
}

#[test]
fn a_headline_says_which_cores_and_whose_memory_gave_a_bandwidth() {
    let mut report = samples::eight_nodes();
    report.results.retain(|m| m.metric == Metric::Bandwidth);
    report.results.truncate(1);
    let m = &mut report.results[0];
    let line = |report: &Report| {
        String::from_utf8(report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() }).unwrap()).unwrap()
    };
    (m.at.cpus, m.at.memory, m.at.mix) = (Some("0-3".parse().unwrap()), Some(MemoryPlace::Node(0)), Some(Mix::AllReads));
    assert!(line(&report).contains(" by 4 of 32 cores ·"), "{}", line(&report));
    report.results[0].at.memory = Some(MemoryPlace::Node(5));
    assert!(line(&report).contains(" by 4 of 32 cores, on memory of node 5 ·"), "{}", line(&report));
    (report.results[0].at.memory, report.results[0].at.load_nodes) = (None, Some("4-5".parse().unwrap()));
    assert!(line(&report).contains(" by 4 of 32 cores, on memory of nodes 4-5 ·"), "{}", line(&report));
    report.results[0].at.cpus = Some(report.machine.default_cpus());
    assert!(!line(&report).contains(" cores"), "{}", line(&report));
}

#[test]
fn plans() {
    for (name, report) in samples::all() {
        if let Some(plan) = &report.plan {
            check(&format!("plan-{name}.txt"), &plan_text(plan, &report.machine, 100));
        }
    }
}

#[test]
fn a_device_that_does_not_state_its_node_is_on_none() {
    let mut report = samples::pmem();
    for m in &mut report.results {
        m.at.memory = Some(MemoryPlace::Device { node: None });
    }
    let plan = report.plan.as_mut().unwrap();
    plan.directories[0].file.device_node = None;
    plan.steps.iter_mut().flat_map(|s| &mut s.cells).for_each(|c| c.at.memory = Some(MemoryPlace::Device { node: None }));
    let figure = String::from_utf8(report.render(format("x.svg"), &Appearance::default()).unwrap()).unwrap();
    assert!(figure.contains("CPU 0, device") && !figure.contains("own"), "{figure}");
    for shown in [text(&report, 100), plan_text(report.plan.as_ref().unwrap(), &report.machine, 100)] {
        assert!(shown.contains("device") && !shown.contains("own node"), "{shown}");
    }
}

#[test]
fn results_of_memory_and_of_files_are_tables_apart() {
    let mut report = samples::pmem();
    let memory = samples::two_nodes()
        .results
        .into_iter()
        .filter(|m| matches!(m.experiment, Experiment::IdleLatency | Experiment::BandwidthMatrix | Experiment::CacheToCache));
    report.results.extend(memory);
    let shown = text(&report, 100);
    let of_files = shown.lines().filter(|l| l.contains(", files in /mnt/pmem")).count();
    assert_eq!(of_files, 3, "latency, bandwidth by mix, curve: {shown}");
    assert!(shown.lines().any(|l| l.starts_with("Idle latency  ")) && shown.contains("112.7") && shown.contains("173.2"), "{shown}");
}
