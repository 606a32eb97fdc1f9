//! A fleet as text: which hosts are slower than their siblings, and what hosts of each kind measure.

use memgauge_analysis::fleet::{
    BaselineNumber, Duplicate, FleetBaseline, FleetField, FleetOutliers, GroupBaseline, HostGroup, Populations, SlowHost, SlowNumber,
    SlowPlace, UnknownHost, UnknownReason,
};
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::wording::{ids, number_of, spelled};

use super::block::Block;
use super::comparison::{change, changes, field, place, quantity};
use super::grid::{Cell, Column};
use super::page::{Page, Style};
use crate::number::{number, percent, unit};

/// Rows of a table on a page that does not show everything.
const BRIEF_ROWS: usize = 20;
/// Names in a list on such a page.
const BRIEF_NAMES: usize = 8;

/// Which hosts are slower than their siblings, in words and tables. `verbose`: every host and every number.
pub(crate) fn fleet_outliers_blocks(found: &FleetOutliers, verbose: bool) -> Vec<Block> {
    let mut page = Page::new(verbose);
    headline(&mut page, found);
    slow_hosts(&mut page, found);
    populations(&mut page, &found.populations);
    unknown_hosts(&mut page, &found.unknown);
    duplicates(&mut page, &found.duplicates);
    not_judged(&mut page, found);
    groups(&mut page, &found.groups);
    page.into_blocks()
}

fn headline(page: &mut Page, found: &FleetOutliers) {
    let slow = found.slow.len();
    let unknown = if found.unknown.is_empty() { String::new() } else { format!(", {} unknown", found.unknown.len()) };
    let are = if slow == 1 { "is slower than its siblings" } else { "are slower than their siblings" };
    let style = match (slow, found.unknown.len(), found.populations.len()) {
        (0, 0, 0) => Style::Bold,
        (0, ..) => Style::Warning,
        _ => Style::Error,
    };
    page.text(style, "", "  ", &format!("{slow} of {} {are}{unknown}", number_of(u64::from(found.hosts), "host", "hosts")));
    if !found.measured_from.is_empty() {
        let (from, to) = (day(&found.measured_from), day(&found.measured_to));
        let when = if from == to { format!("measured on {from}") } else { format!("measured from {from} to {to}") };
        let as_siblings = format!("{} as their siblings", found.as_siblings);
        page.text(Style::Dim, "", "  ", &format!("{as_siblings} · {when} · the latest value of each host and number"));
    }
}

/// The day of an RFC 3339 time.
pub(crate) fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or(time)
}

fn slow_hosts(page: &mut Page, found: &FleetOutliers) {
    if found.slow.is_empty() {
        return;
    }
    page.heading("Slower than their siblings", "worst first; the worst number against the median of the group, with its 95 % interval");
    let shown = page.shown(found.slow.len(), BRIEF_ROWS);
    let rows = || found.slow.iter().take(shown);
    let worst = |host: &SlowHost| host.numbers.first().cloned();
    let columns = [
        Column::text("host", rows().map(|host| host.name.host.as_str())),
        Column::text("what", rows().map(pattern)),
        Column::numbers("change", rows().map(|host| worst(host).map(|n| change(n.ratio)))),
        Column::text("interval", rows().map(|host| worst(host).and_then(|n| interval(&n)))),
        Column::numbers("group", rows().map(|host| Cell::number((host.group + 1).to_string()))).optional(),
        Column::text("measured", rows().map(|host| worst(host).map(|n| day(&n.measured).to_owned()))).optional(),
    ];
    page.table_or_lines(columns, rows().map(two_lines));
    page.and_more(found.slow.len(), shown);
    if page.verbose {
        rows().for_each(|host| slow_numbers(page, host));
    }
    page.paragraph(
        Style::Detail,
        "Flagged: a robust z-score above 3.5, more than 3 % and more than both intervals worse, and at most 5 % of those named by chance if numbers are normally distributed.",
    );
}

/// A host where the table does not fit.
fn two_lines(host: &SlowHost) -> [String; 2] {
    let worst = host.numbers.first().map(|worst| {
        let interval = interval(worst).map(|ends| format!(" ({ends})")).unwrap_or_default();
        format!("{}{interval} · group {} · measured {}", change(worst.ratio), host.group + 1, day(&worst.measured))
    });
    [format!("{}: {}", host.name.host, pattern(host)), worst.unwrap_or_default()]
}

/// The measured quantity, and its place.
pub(crate) fn number_words(experiment: Experiment, metric: Metric, at: &Coordinates) -> String {
    format!("{}, {}", quantity(experiment, metric), spot(at))
}

/// The coordinates, and the state of the line for transfers between caches.
pub(crate) fn spot(at: &Coordinates) -> String {
    let state = at.state.map(|state| format!(", {}", spelled(&state))).unwrap_or_default();
    format!("{}{state}", place(at))
}

/// The digits of a machine id that `--host` takes.
fn short_id(id: &str) -> String {
    id.chars().take(12).collect()
}

fn slow_numbers(page: &mut Page, host: &SlowHost) {
    let name = &host.name;
    let id = name.machine_id_hash.as_ref().map(|id| format!(", machine id {}", short_id(id))).unwrap_or_default();
    page.heading(&name.host, &format!("run {}{id}", name.run_id));
    let rows = || host.numbers.iter();
    let lines = |n: &SlowNumber| {
        let values = format!("{} against {} {}", number(n.value), number(n.siblings_median), unit(n.unit));
        let interval = interval(n).map(|ends| format!(" ({ends})")).unwrap_or_default();
        [number_words(n.experiment, n.metric, &n.at), format!("{}{interval} · {values}", change(n.ratio))]
    };
    let columns = [
        Column::text("what", rows().map(|n| quantity(n.experiment, n.metric))),
        Column::text("where", rows().map(|n| spot(&n.at))),
        Column::numbers("here", rows().map(|n| n.value)),
        Column::numbers("siblings", rows().map(|n| n.siblings_median)),
        Column::text("", rows().map(|n| unit(n.unit))),
        Column::numbers("change", rows().map(|n| change(n.ratio))),
        Column::text("interval", rows().map(interval)).optional(),
        Column::text("pages", rows().map(|n| n.pages.as_ref().map(spelled))).optional(),
        Column::numbers("z", rows().map(|n| Cell::number(format!("{:.1}", n.robust_z)))).optional(),
        Column::numbers("hosts", rows().map(|n| Cell::number(n.siblings.to_string()))).optional(),
    ];
    page.table_or_lines(columns, rows().map(lines));
    if host.unknown_numbers > 0 {
        page.paragraph(Style::Warning, format!("{} could not be judged.", number_of(u64::from(host.unknown_numbers), "number", "numbers")));
    }
}

/// `node 1, bandwidth (6 of 7)`; a single number is named itself.
pub(crate) fn pattern(host: &SlowHost) -> String {
    if let [only] = &host.numbers[..] {
        return number_words(only.experiment, only.metric, &only.at);
    }
    let metric = match host.metric {
        Some(Metric::Bandwidth) => ", bandwidth",
        Some(Metric::Latency) => ", latency",
        None => "",
    };
    format!("{}{metric} ({} of {})", place_words(&host.place), host.slow_numbers, host.numbers_there)
}

fn place_words(place: &SlowPlace) -> String {
    match place {
        SlowPlace::WholeHost => "the whole host".to_owned(),
        SlowPlace::Node { node } => format!("node {node}"),
        SlowPlace::Link { from, to } => format!("from node {from} to node {to}"),
        SlowPlace::CacheDomain { cpus } => format!("CPUs {} behind one cache", ids(cpus)),
        SlowPlace::Cpu { cpu } => format!("CPU {cpu}"),
        SlowPlace::Regions { node, regions } => format!("regions {} of node {node}'s memory", ids(regions)),
        SlowPlace::Numbers => "single numbers".to_owned(),
    }
}

fn interval(number: &SlowNumber) -> Option<String> {
    changes(number.ratio_low, number.ratio_high)
}

fn populations(page: &mut Page, all: &[Populations]) {
    for found in all {
        let about = format!("among {} of one kind", number_of(u64::from(found.group.hosts), "host", "hosts"));
        page.heading(if found.populations.len() == 2 { "Two populations" } else { "Several populations" }, &about);
        let fields: Vec<String> = found.fields.iter().map(field_words).collect();
        let by = match fields.len() {
            0 => "no known property tells them apart".to_owned(),
            1 => format!("told apart by {}", fields[0]),
            _ => format!("told apart by {}, which go together", fields.join(" and ")),
        };
        let besides = found.besides.iter().map(field_words).collect::<Vec<_>>().join(" and ");
        let by = if besides.is_empty() { by } else { format!("{by}, besides {besides}") };
        let differ = format!("{} of {} differ", found.numbers.len(), number_of(u64::from(found.of_numbers), "number", "numbers"));
        page.text(Style::Warning, "  ! ", "    ", &format!("{differ}; {by}"));
        let worst = found.numbers.first();
        let median = |i: usize| worst.and_then(|n| n.medians.get(i).copied().flatten());
        let rows = || found.populations.iter().enumerate();
        page.table([
            Column::text("population", rows().map(|(_, p)| p.values.join(", "))),
            Column::numbers("hosts", rows().map(|(_, p)| Cell::number(p.hosts.to_string()))),
            Column::numbers("median", rows().map(|(i, _)| median(i))),
            Column::text("", rows().map(|_| worst.map(|n| unit(n.unit)))),
            Column::text("such as", rows().map(|(_, p)| names(p.some.iter().map(String::as_str), p.hosts as usize, 3))).optional(),
        ]);
        if let Some(worst) = worst {
            let text = format!("{}: {}", change(worst.ratio), number_words(worst.experiment, worst.metric, &worst.at));
            let without = if besides.is_empty() { String::new() } else { format!("without what {besides} explains, ") };
            page.paragraph(Style::Dim, format!("the number that differs most, {without}{text}"));
        }
    }
}

fn field_words(of: &FleetField) -> String {
    match of {
        FleetField::Property(property) => field(*property).to_owned(),
        FleetField::Label { label } => format!("the label {label}"),
    }
}

/// `a, b, c and 5 more`.
fn names<'a>(names: impl Iterator<Item = &'a str>, all: usize, most: usize) -> String {
    let shown: Vec<&str> = names.take(most).collect();
    let more = all.saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The name of a reason, without its numbers, so that hosts can be listed by it.
const fn reason(reason: &UnknownReason) -> &'static str {
    match reason {
        UnknownReason::TooFewSiblings { .. } => "fewer than eight hosts with its hardware",
        UnknownReason::NothingToCompare => "none of its numbers is one that eight siblings have",
        UnknownReason::Incomplete => "the latest run did not measure everything that was planned",
        UnknownReason::NotMeasured { .. } => "numbers without a value",
        UnknownReason::Missing { .. } => "numbers that siblings have were never measured",
        UnknownReason::OtherPages { .. } => "numbers were last measured with other kinds of pages than the siblings'",
        UnknownReason::Degraded { look_slow: 0, .. } => "numbers are degraded",
        UnknownReason::Degraded { .. } => "numbers are degraded, and look slow: measure these hosts again",
        UnknownReason::SlowerPopulation { .. } => "of the slower of two populations",
    }
}

fn unknown_hosts(page: &mut Page, unknown: &[UnknownHost]) {
    if unknown.is_empty() {
        return;
    }
    page.heading("Unknown", "by the weightiest reason; these hosts did not pass");
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for host in unknown {
        let why = host.reasons.first().map_or("no reason given", reason);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, hosts)) => hosts.push(&host.name.host),
            None => reasons.push((why, vec![&host.name.host])),
        }
    }
    reasons.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let most = if page.verbose { usize::MAX } else { BRIEF_NAMES };
    for (why, hosts) in reasons {
        let list = names(hosts.iter().copied(), hosts.len(), most);
        page.text(Style::Plain, "  ", "    ", &format!("{}: {why}: {list}", number_of(hosts.len() as u64, "host", "hosts")));
    }
}

fn duplicates(page: &mut Page, all: &[Duplicate]) {
    if all.is_empty() {
        return;
    }
    page.heading("Names and machine ids", "names with several ids, and ids with several names");
    let shown = page.shown(all.len(), BRIEF_ROWS);
    for duplicate in &all[..shown] {
        let text = match duplicate {
            Duplicate::OneIdManyNames { hosts, .. } => {
                let list = names(hosts.iter().map(String::as_str), hosts.len(), BRIEF_NAMES);
                format!("{list}: one machine id under {} names; one host renamed, or hosts installed from one image", hosts.len())
            }
            Duplicate::OneNameManyIds { host, machine_id_hashes } => {
                let digits: Vec<String> = machine_id_hashes.iter().map(|id| short_id(id)).collect();
                let list = names(digits.iter().map(String::as_str), digits.len(), if page.verbose { usize::MAX } else { BRIEF_NAMES });
                let ids = digits.len();
                format!("{host}: one name with {ids} machine ids, {list}; installed again, or several hosts of one name; judged apart")
            }
        };
        page.text(Style::Plain, "  ", "    ", &text);
    }
    page.and_more(all.len(), shown);
}

fn not_judged(page: &mut Page, found: &FleetOutliers) {
    if found.not_judged.is_empty() {
        return;
    }
    page.gap();
    let text = "are good on fewer than eight hosts of a group, so no host was judged by them.";
    page.paragraph(Style::Dim, format!("{} {text}", number_of(found.not_judged.len() as u64, "number", "numbers")));
    if page.verbose {
        for number in &found.not_judged {
            let pages = number.pages.as_ref().map(|pages| format!(", {} pages", spelled(pages))).unwrap_or_default();
            let what = format!("{}{pages}", number_words(number.experiment, number.metric, &number.at));
            page.text(
                Style::Dim,
                "    ",
                "      ",
                &format!("group {}: {what}: {}", number.group + 1, number_of(u64::from(number.hosts), "host", "hosts")),
            );
        }
    }
}

fn groups(page: &mut Page, groups: &[HostGroup]) {
    if groups.is_empty() {
        return;
    }
    page.heading("Groups", "of hosts that were compared with each other");
    for (i, group) in groups.iter().enumerate() {
        page.text(Style::Plain, "  ", "     ", &format!("{}: {}", i + 1, group_words(group)));
    }
}

/// `412 hosts with the same hardware, firmware and kernel: …`.
pub(crate) fn group_words(group: &HostGroup) -> String {
    let why = group.level.why_no_more().map(|why| format!(" ({why})")).unwrap_or_default();
    let level = group.level.in_words();
    let fields = group.fields.iter().filter_map(|f| Some(format!("{} {}", field(f.field), f.value.as_ref()?)));
    let fields: Vec<String> = fields.collect();
    format!("{} with {level}{why}: {}", number_of(u64::from(group.hosts), "host", "hosts"), fields.join(" · "))
}

/// Tables of the numbers that hosts of each kind measure. `verbose`: every number.
pub(crate) fn fleet_baseline_blocks(baseline: &FleetBaseline, verbose: bool) -> Vec<Block> {
    let mut page = Page::new(verbose);
    let hosts = number_of(u64::from(baseline.hosts), "host", "hosts");
    let groups = number_of(baseline.groups.len() as u64, "group", "groups");
    page.text(Style::Bold, "", "  ", &format!("Baseline of {hosts} in {groups} of eight and more"));
    if baseline.hosts_without_group > 0 {
        let text = format!("{} in none of them", number_of(u64::from(baseline.hosts_without_group), "host is", "hosts are"));
        page.text(Style::Warning, "  ! ", "    ", &text);
    }
    baseline.groups.iter().for_each(|group| group_baseline(&mut page, group));
    page.into_blocks()
}

fn group_baseline(page: &mut Page, group: &GroupBaseline) {
    page.heading(&number_of(group.numbers.len() as u64, "number", "numbers"), "");
    page.paragraph(Style::Dim, group_words(&group.group));
    let shown = page.shown(group.numbers.len(), BRIEF_ROWS);
    let rows = || group.numbers.iter().take(shown);
    let lines = |n: &BaselineNumber| {
        let values = format!("{} {} · flagged {}", number(n.median), unit(n.unit), flagged(n));
        [number_words(n.experiment, n.metric, &n.at), format!("{values} · {}", number_of(u64::from(n.hosts), "host", "hosts"))]
    };
    let columns = [
        Column::text("what", rows().map(|n| quantity(n.experiment, n.metric))),
        Column::text("where", rows().map(|n| spot(&n.at))),
        Column::numbers("median", rows().map(|n| n.median)),
        Column::text("", rows().map(|n| unit(n.unit))),
        Column::numbers("spread", rows().map(|n| percent(n.spread))).optional(),
        Column::numbers("flagged", rows().map(flagged)),
        Column::numbers("hosts", rows().map(|n| Cell::number(n.hosts.to_string()))).optional(),
        Column::text("pages", rows().map(|n| n.pages.as_ref().map(spelled))).optional(),
    ];
    page.table_or_lines(columns, rows().map(lines));
    page.and_more(group.numbers.len(), shown);
}

fn flagged(of: &BaselineNumber) -> String {
    let sign = if of.metric == Metric::Bandwidth { '<' } else { '>' };
    format!("{sign} {}", number(of.flagged_beyond))
}
