//! Results and comparisons as pages: everything is in them, nothing else gets in, and browsers show them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use memgauge_analysis::comparison::{Comparison, ComparisonOptions, ComparisonVerdict, compare};
use memgauge_analysis::conclusions::summary::summarise;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{ChaseOrder, Experiment};
use memgauge_model::note::{Code, Note, NoteCode};
use memgauge_model::result::{Compared, ComparedWith, Finding, Health, HealthStatus, Host, Incomplete, Quality, QualityLevel, Report};
use memgauge_model::traffic::Mix;
use memgauge_render::{Appearance, Document, Format, Named, PageOptions};
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::samples;
use crate::shown::{comparison_html, format};

/// What an attacker would put where a result takes any text.
const HOSTILE: &str = "</style></title><script>document.title='owned'</script><img src=x onerror=\"alert(1)\">'&quot;";

fn html(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn page(report: &Report) -> String {
    html(report.render(Format::HTML, &Appearance::default()).unwrap())
}

fn page_of(results: &[(&str, Report)]) -> String {
    let named: Vec<Named<'_>> = results.iter().map(|(name, report)| Named { name, report }).collect();
    html(named.render(Format::HTML, &Appearance::default()).unwrap())
}

fn summed_up(report: Report) -> Report {
    Report { summary: Some(summarise(&report)), ..report }
}

/// A health check that found something.
fn health() -> Report {
    let mut report = summed_up(samples::two_nodes());
    let finding = |code: &str, severity, message: &str, advice: &'static str| Finding {
        code: Code::from_word(code),
        severity,
        message: message.into(),
        advice: Some(advice.into()),
    };
    report.health = Some(Health {
        status: HealthStatus::Warning,
        findings: vec![
            finding("slower-than-siblings", HealthStatus::Warning, "node 1 reads 12 % slower than node 0", "look for a missing DIMM"),
            finding("limit-unknown", HealthStatus::Ok, "the limit is not known", "name it with --limit"),
        ],
        compared_with: vec!["siblings".into()],
        compared: vec![Compared { numbers: 6, worst: Some(0.12), ..Compared::new(ComparedWith::Siblings) }],
        measured_again: 2,
        causes: Vec::new(),
    });
    report
}

/// A run that measured nothing.
fn failed() -> Report {
    let mut report = samples::vm();
    for m in &mut report.results {
        m.estimate = Estimate { not_measured: Some(NotMeasured::OutOfTime), ..Estimate::default() };
        m.quality = Quality { level: QualityLevel::None, reasons: vec![] };
    }
    report.curves.clear();
    report.complete = false;
    report.incomplete = Some(Incomplete::Signal { name: "SIGINT".into() });
    summed_up(report)
}

/// Hostile text wherever a result takes any.
fn hostile() -> Report {
    let mut report = samples::vm();
    report.run.host = Some(Host { hostname: Some(HOSTILE.into()), machine_id_hash: None });
    report.run.labels.insert(HOSTILE.into(), HOSTILE.into());
    report.argv = vec!["memgauge".into(), HOSTILE.into()];
    report.machine.identity.model_name = Some(HOSTILE.into());
    report.machine.identity.kernel = Some(HOSTILE.into());
    report.tool.version = HOSTILE.into();
    report.tool.commit = Some(HOSTILE.into());
    report.run.id = HOSTILE.into();
    report.started.utc = HOSTILE.into();
    report.notes.push(Note::warning(NoteCode::SmallPages, HOSTILE).advise(HOSTILE));
    for m in &mut report.results {
        m.at.memory_dir = Some(HOSTILE.into());
        m.evidence.kernel = HOSTILE.into();
    }
    summed_up(report)
}

/// Every kind of page by name.
fn pages() -> &'static [(String, String)] {
    static PAGES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    PAGES.get_or_init(make_pages)
}

fn make_pages() -> Vec<(String, String)> {
    let curves = || summed_up(samples::machines::curves(&[Mix::AllReads, Mix::R2W1]));
    let mut pages: Vec<(String, String)> = samples::all().into_iter().map(|(name, report)| (name.to_owned(), page(&report))).collect();
    let single = [
        ("health", health()),
        ("failed", failed()),
        ("hostile", hostile()),
        ("curves", curves()),
        ("sweep", samples::sweeps::counted(&[], 100)),
        ("prefetch", samples::sweeps::prefetch(2)),
        ("distributed", samples::sweeps::distributed()),
        ("node-pairs", samples::sweeps::node_pairs(4)),
        ("loops", samples::sweeps::loops()),
        ("pairs-96", samples::machines::pairs(96)),
        ("cpus-64", samples::machines::cpus(64)),
    ];
    pages.extend(single.map(|(name, report)| (name.to_owned(), page(&report))));
    let (vm, two) = (summed_up(samples::vm()), summed_up(samples::two_nodes()));
    let eight = summed_up(samples::eight_nodes());
    pages.push(("before-after".into(), page_of(&[("before", curves()), ("after", summed_up(samples::machines::scaled(1.1)))])));
    pages.push(("unlike".into(), page_of(&[("vm", vm.clone()), ("two-nodes", two.clone()), ("eight-nodes", eight.clone())])));
    let five = [("a", vm.clone()), ("b", two), ("c", health()), ("d", failed()), ("e", hostile())];
    pages.push(("five".into(), page_of(&five)));
    pages.push(("comparison".into(), comparison()));
    pages
}

fn comparison() -> String {
    html(comparison_html(&compared(1.2)).unwrap())
}

/// Two sides, of which the second has values `factor` times as high.
fn compared(factor: f64) -> Comparison {
    let runs = |factor: f64| -> Vec<Report> { (0..5).map(|n| samples::machines::scaled(factor * (1.0 + 0.002 * f64::from(n)))).collect() };
    let sides = (runs(1.0), runs(factor));
    let name = format!("before {HOSTILE}");
    compare((&name, &sides.0), ("after", &sides.1), ComparisonOptions::default())
}

/// The text between tags, and what stands in attributes is left out; entities as their characters.
fn visible(page: &str) -> String {
    let body = &page[page.find("<body>").unwrap()..page.find("<script>").unwrap()];
    let mut out = String::new();
    for piece in body.split('<').skip(1) {
        out.push_str(piece.split_once('>').map_or("", |(_, text)| text));
        out.push(' ');
    }
    out.replace("&#60;", "<").replace("&#62;", ">").replace("&#38;", "&").replace("&#34;", "\"").replace("&#39;", "'")
}

/// Digits as the program shows them.
fn shown(value: f64) -> String {
    let digits = match value.abs() {
        v if v > 0.0 && v < 0.9995 => (2.0 - v.log10().floor()) as usize,
        v if v < 9.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[test]
fn every_number_and_every_reason_is_in_the_page() {
    for (name, report) in samples::all().into_iter().chain([("failed", failed()), ("health", health())]) {
        let text = visible(&page(&report));
        let words: std::collections::BTreeSet<&str> = text.split_whitespace().collect();
        for m in &report.results {
            match m.estimate.value {
                Some(v) if v.abs() < 1e7 => assert!(words.contains(shown(v).as_str()), "{name}: {v} of {:?}", m.at),
                Some(_) => {}
                None => assert!(text.contains("not measured: "), "{name}"),
            }
        }
        for note in &report.notes {
            assert!(text.contains(&note.message.to_string()), "{name}: {}", note.message);
        }
        assert!(report.results.is_empty() || text.contains(&format!("Every number ({})", report.results.len())), "{name}");
        assert!(!text.contains("NaN"), "{name}");
    }
}

#[test]
fn text_from_results_stays_text() {
    for (name, page) in pages() {
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert_eq!(page.matches("</script").count(), 1, "{name}");
        assert_eq!(page.matches("</style").count(), 1, "{name}");
        assert!(!page.contains("<img") && !page.contains("onerror=\""), "{name}");
    }
    assert!(visible(&page(&hostile())).contains(HOSTILE), "it is shown as it is");
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for (name, page) in pages() {
        let policy = "content=\"default-src 'none'; style-src 'sha256-";
        assert!(page.contains(policy) && page.contains("script-src 'sha256-"), "{name}");
        for attribute in [" src=", " srcset=", "@import", "url(", "http://", "https://", " style=", " onclick="] {
            // Results may say anything in their data and in their text.
            let own = page.split("href='data:").next().unwrap();
            assert!(name == "hostile" || name == "five" || name == "comparison" || !own.contains(attribute), "{name}: {attribute}");
        }
    }
}

#[test]
fn pages_are_small() {
    for (name, page) in pages() {
        // Data is as large as the result is.
        let data: usize = page.split("href='data:").skip(1).map(|rest| rest.find('\'').unwrap()).sum();
        let most = if data > 1_000_000 { data + 700_000 } else { 1_000_000 };
        assert!(page.len() < most, "{name}: {} bytes, of which {data} are data", page.len());
    }
}

/// The bytes of a `data:` address.
fn decoded(address: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = address.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    bytes
}

#[test]
fn the_data_is_in_the_page_unless_it_is_left_out() {
    for (name, report) in [("vm", samples::vm()), ("hostile", hostile()), ("failed", failed())] {
        let page = page(&report);
        let (_, rest) = page.split_once("href='data:application/json;charset=utf-8,").unwrap();
        let saved = decoded(rest.split_once('\'').unwrap().0);
        assert_eq!(memgauge_render::read(&saved).unwrap(), report, "{name}");
    }
    let without = PageOptions { title: Some("A <title>".into()), data: false };
    let page = html(samples::vm().render(Format::HTML, &Appearance { page: without, ..Appearance::default() }).unwrap());
    assert!(!page.contains("href='data:") && page.contains("<title>A &#60;title&#62;</title>"), "{}", &page[..400]);
}

#[test]
fn results_stand_beside_each_other() {
    let before = summed_up(samples::machines::scaled(1.0));
    let after = summed_up(samples::machines::scaled(1.1));
    let page = page_of(&[("before", before), ("after", after)]);
    assert!(page.contains("<th scope=\"col\" class=\"n\">before</th>") && page.contains(">change</th>"), "no columns");
    assert!(visible(&page).contains("+10.0 %"), "no change");
    let unlike = page_of(&[("vm", summed_up(samples::vm())), ("two", summed_up(samples::two_nodes()))]);
    assert!(unlike.contains("What differs besides the numbers") && unlike.contains("AMD EPYC 9R14"));
}

#[test]
fn a_comparison_says_first_what_became_worse_and_folds_the_rest() {
    for (factor, verdict, title) in [(1.2, ComparisonVerdict::Worse, Some("Worse")), (1.0, ComparisonVerdict::Same, None)] {
        let comparison = compared(factor);
        assert_eq!(comparison.verdict, verdict);
        let page = html(comparison_html(&comparison).unwrap());
        let (open, folded) = page.split_once("<details").unwrap();
        let rows = |part: &str| part.matches("<th scope=\"row\"").count();
        let decisive = if title.is_some() { comparison.count(verdict) } else { 0 };
        // A few more than fit are not worth a click.
        let shown = if decisive > 7 { 6 } else { decisive };
        assert_eq!(rows(open), shown, "{verdict:?}: of {decisive}");
        if let Some(title) = title {
            assert!(open.find("of ").unwrap() < open.find(&format!("<h3>{title}")).unwrap(), "the verdict, then the numbers behind it");
            assert_eq!(folded.contains(&format!("<summary>{title}, smaller changes ({})", decisive - shown)), decisive > shown);
        }
        // The runs of both sides are a table, too.
        assert_eq!(rows(open) + rows(folded), comparison.cells.len() + 10, "every number is in the page");
        let count = comparison.count(ComparisonVerdict::Same);
        assert_eq!(folded.contains(&format!("<details class=\"all\"><summary>The same ({count})")), count > 0, "folded on any screen");
        assert!(
            !page.contains("<details open") && folded.starts_with(" class=\"all wide\"><summary>As a figure"),
            "script unfolds where there is room"
        );
    }
}

#[test]
fn missing_and_unreliable_numbers_are_marked() {
    let mut report = samples::vm();
    let m = report.results.iter_mut().find(|m| m.at.order == Some(ChaseOrder::WindowLocal)).unwrap();
    m.quality.level = QualityLevel::Unreliable;
    let value = format!("~{}", shown(m.estimate.value.unwrap()));
    assert!(visible(&page(&summed_up(report))).contains(&value));
    let text = visible(&page(&failed()));
    assert!(text.contains("INCOMPLETE") && text.contains("SIGINT") && !text.contains(" 0.00 "), "{text}");
}

#[test]
fn the_ending_of_a_file_chooses_the_page() {
    for name in ["a.html", "A.HTM"] {
        assert_eq!(format(name), Format::HTML);
    }
}

#[test]
fn tables_are_called_as_their_headings() {
    for (name, page) in pages() {
        assert!(!page.contains("aria-label=\"Table\"") && !page.contains("aria-label=\"Numbers\""), "{name}: a table without a name");
        let tables = page.matches("<table").count();
        assert_eq!(tables, page.matches("class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"").count(), "{name}");
        assert!(name != "vm-2-cpus" || page.contains("role=\"region\" aria-label=\"Every number\""), "{name}");
    }
}

/// Where pages and screenshots stay; empty is as absent.
fn wanted_folder() -> Option<PathBuf> {
    env::var_os("MEMGAUGE_PAGES").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Writes all pages to a folder.
fn write_pages(folder: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let write = |(name, page): &(String, String)| {
        let path = folder.join(name).with_extension("html");
        fs::write(&path, page).unwrap();
        path
    };
    pages().iter().map(write).collect()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a script over all pages, and returns what it says.
fn read_pages(name: &str, wanted: impl Fn(&str) -> bool) -> String {
    let folder = wanted_folder();
    let temporary = env::temp_dir().join(format!("memgauge-{name}-{}-{:?}", std::process::id(), std::thread::current().id()));
    let mut files = write_pages(folder.as_ref().unwrap_or(&temporary));
    files.retain(|file| wanted(&file.file_stem().unwrap().to_string_lossy()));
    let output = Command::new("python3").arg(script(name)).args(&files).output().unwrap();
    if folder.is_none() {
        fs::remove_dir_all(temporary).unwrap();
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn pages_are_valid_html_with_a_policy_that_fits() {
    if !runs("python3") {
        not_tested!("the HTML of pages: no python3");
    }
    let said = read_pages("read_html.py", |_| true);
    assert_eq!(said.trim().parse::<usize>().unwrap(), pages().len());
}

/// Opens some pages in a browser. With MEMGAUGE_PAGES=FOLDER, all of them, and pages and screenshots stay there to be looked at.
fn browser_reads(some: &[&str]) {
    if !runs("python3") || !runs("chromedriver") || !runs("chromium") {
        not_tested!("pages in a browser: needs python3, chromium and chromedriver (Debian: chromium-driver)");
    }
    if Command::new("pdftotext").arg("-v").output().is_err() {
        not_tested_in_part!("what is on paper: no pdftotext (Debian: poppler-utils)");
    }
    let said = read_pages("browser.py", |name| wanted_folder().is_some() || some.contains(&name));
    assert!(said.trim().parse::<usize>().unwrap() > 8 * some.len(), "{said} checks");
}

#[test]
fn browsers_show_pages_of_runs_without_errors_and_keys_work() {
    browser_reads(&["vm-2-cpus", "eight-nodes", "failed"]);
}

#[test]
fn browsers_show_doubts_and_verdicts_without_errors_and_keys_work() {
    browser_reads(&["degraded", "hostile", "health", "scan"]);
}

#[test]
fn browsers_show_comparisons_without_errors_and_keys_work() {
    browser_reads(&["before-after", "unlike", "comparison"]);
}

#[test]
fn a_page_states_one_share_of_the_limit() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::Bandwidth && m.at.mix == Some(Mix::R2W1));
    let m = &mut report.results[0];
    let (value, limit) = (m.estimate.value.unwrap(), m.verdict.limit.unwrap());
    m.evidence.traffic.as_mut().unwrap().bus_estimate_gbs = Some(value * 1.5);
    let text = visible(&page(&summed_up(report)));
    assert!(text.contains(&format!(" {:.0} %", 150.0 * value / limit)), "{text}");
    assert!(!text.contains(&format!(" {:.0} %", 100.0 * value / limit)), "{text}");
}
