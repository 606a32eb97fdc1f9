//! Tables in the shape of Intel MLC's text, for the scripts and parsers that read it.
//!
//! Each section has the lines that one mode prints after its header lines. Parsers rely on all of these: tabs and widths to the byte, rows of
//! matrices and of mixes that end with a tab, no other line that begins with a digit, a column for each node with memory and a row for each
//! node with CPUs. Bytes are counted as that tool counts them: a plain store is a read and a write, 1 MB is 10^6 bytes.
//!
//! A number that was not measured is `nan`: parsers of numbers take it, and none can mistake it for one.

use std::collections::BTreeMap;
use std::fmt::Write;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState, Method, Metric};
use memgauge_model::plan::{LoadCurve, Loading, Work};
use memgauge_model::result::{Measurement, Report, TrafficRates};
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::IdSet;

use crate::pivot::Pivot;

/// All sections that a report has results for, in the order of a full run.
pub fn all_sections(report: &Report) -> String {
    type Section = fn(&Report) -> String;
    let sections: [(Experiment, Section); 6] = [
        (Experiment::IdleLatency, latency_matrix),
        (Experiment::Bandwidth, |report| peak(report, Wording::default())),
        (Experiment::BandwidthSearch, |report| peak(report, Wording { searched: true, ..Wording::default() })),
        (Experiment::BandwidthMatrix, |report| bandwidth_matrix(report, Wording::default())),
        (Experiment::LoadedLatency, |report| loaded(report, Wording::default())),
        (Experiment::CacheToCache, cache_to_cache),
    ];
    let measured = sections.into_iter().filter(|(experiment, _)| results(report, *experiment).next().is_some());
    measured.map(|(_, section)| section(report)).collect::<Vec<_>>().join("\n")
}

/// How it was measured, for the header lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wording {
    /// One hardware thread of each core was used.
    pub one_thread_per_core: bool,
    /// Pages of a pool were asked for.
    pub large_pages: bool,
    /// Several injection rates were tried for each mix.
    pub searched: bool,
    /// Only loads were measured where several mixes have rows.
    pub only_reads: bool,
    /// Mixes other than the five usual ones have rows where they were measured.
    pub more_mixes: bool,
    /// Each thread's bandwidth is printed as well.
    pub per_thread: bool,
    /// A histogram is printed as well, with buckets of 2 to this power clocks.
    pub bucket_log2: Option<u32>,
}

impl Wording {
    fn threads(self) -> String {
        let which = if self.one_thread_per_core { "only one thread" } else { "all the threads" };
        format!("Using {which} from each core if Hyper-threading is enabled")
    }
}

const TRANSFERS: &str = "Measuring cache-to-cache transfer latency (in ns)...";
const MEGABYTES: &str = "Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)";

/// The mixes of the peak table, with their rows' names, in its order. Those after the fifth have rows only when
/// they were asked for.
const RATIOS: [(Mix, &str); 8] = [
    (Mix::AllReads, "ALL Reads        :"),
    (Mix::R3W1, "3:1 Reads-Writes :"),
    (Mix::R2W1, "2:1 Reads-Writes :"),
    (Mix::R1W1, "1:1 Reads-Writes :"),
    (Mix::R2W1Nt, "Stream-triad like:"),
    (Mix::NtWrite, "All NT writes    :"),
    (Mix::R4W1, "4:1 Reads-Writes :"),
    (Mix::R3W2, "3:2 Reads-Writes :"),
];
const RATIOS_ALWAYS: usize = 5;

/// Idle latencies by node, in ns.
pub fn latency_matrix(report: &Report) -> String {
    let cells: Vec<&Measurement> = results(report, Experiment::IdleLatency).collect();
    let order = chase_order(&cells);
    let access = if order == Some(ChaseOrder::Sequential) { "sequential" } else { "random" };
    let mut text = format!("Measuring idle latencies for {access} access (in ns)...\n");
    let cells: Vec<&Measurement> = cells.into_iter().filter(|m| m.at.order == order).collect();
    matrix(&mut text, report, &cells, |m| m.estimate.value, 6);
    text
}

/// Idle latencies by CPU and node, in ns: a row for each CPU.
pub fn latency_per_cpu(report: &Report) -> String {
    let cells: Vec<&Measurement> = results(report, Experiment::IdleLatencyPerCpu).collect();
    let order = chase_order(&cells);
    let mut text = String::from("Measuring idle latencies (in ns) for all cores...\n\t\tNuma node\nCPU\t");
    let columns: IdSet = cells.iter().filter_map(|m| m.at.memory_node()).collect();
    let cpus: IdSet = cells.iter().filter_map(|m| m.at.cpu).collect();
    let table = Pivot::new(&cells, |m| ((m.at.cpu, m.at.order), m.at.memory_node()));
    rows(&mut text, &cpus, &columns, 6, |cpu, node| {
        number(table.get(&(Some(cpu), order), &Some(node)).and_then(|m| m.estimate.value), 6, 1)
    });
    text
}

/// One idle latency: base-frequency clocks and ns.
pub fn idle_latency(report: &Report) -> String {
    let ns = idle_latencies(report).next().flatten();
    format!("Each iteration took {} base frequency clocks (\t{}\tns)\n", number(clocks(report, ns), 0, 1), number(ns, 0, 1))
}

/// Idle latencies in the order that is printed.
fn idle_latencies(report: &Report) -> impl Iterator<Item = Option<f64>> {
    let cells: Vec<&Measurement> = by_method(report, Method::IdleLatency).collect();
    let order = chase_order(&cells);
    cells.into_iter().filter(move |m| m.at.order == order).map(|m| m.estimate.value)
}

/// Counts of latencies by their clocks. `buckets`: (clocks at which a bucket begins, count); each bucket has 2^`log2` clocks. Stands before a
/// result; brackets keep its lines from being taken for rows.
pub fn histogram(buckets: &[(u64, u64)], log2: u32) -> String {
    let mut text = String::from("Latency histogram (in base frequency clocks)\n");
    for (from, count) in buckets {
        let _ = writeln!(text, "[{from}-{}]\t{count}", from.saturating_add((1u64 << log2.min(63)) - 1));
    }
    text
}

/// Bandwidth by mix, of all CPUs to their own nodes. If a mix was measured with several numbers of CPUs or delays, its best result counts.
pub fn peak(report: &Report, wording: Wording) -> String {
    let mut text = String::new();
    if wording.searched {
        text.push_str("Measuring Maximum Memory Bandwidths for the system\n");
        text.push_str("Will take several minutes to complete as multiple injection rates will be tried to get the best bandwidth\n");
    } else {
        text.push_str("Measuring Peak Injection Memory Bandwidths for the system\n");
    }
    let threads = wording.threads();
    let _ = writeln!(text, "{MEGABYTES}\n{threads}\nUsing traffic with the following read-write ratios");
    for (i, (mix, name)) in RATIOS.iter().enumerate() {
        let cells = bandwidths(report).filter(|m| m.at.mix.is_some_and(|m| m == *mix || m == mix.with_one_read_stream()));
        let tried = cells.clone().next().is_some();
        let best = cells.filter_map(megabytes).max_by(f64::total_cmp);
        let always = if wording.only_reads { 1 } else { RATIOS_ALWAYS };
        if i < always || (tried && wording.more_mixes) {
            let _ = writeln!(text, "{name}\t{}\t", number(best, 7, if wording.searched { 2 } else { 1 }));
        }
    }
    text
}

/// Bandwidth by node of CPUs and node of memory.
pub fn bandwidth_matrix(report: &Report, wording: Wording) -> String {
    let cells: Vec<&Measurement> = results(report, Experiment::BandwidthMatrix).collect();
    let traffic = traffic(cells.first().and_then(|m| m.at.mix));
    let threads = wording.threads();
    let mut text = format!("Measuring Memory Bandwidths between nodes within system \n{MEGABYTES}\n{threads}\n{traffic}");
    matrix(&mut text, report, &cells, megabytes, 7);
    text
}

/// Latency under load by injection delay, heaviest load first.
pub fn loaded(report: &Report, wording: Wording) -> String {
    // Without a chase (bandwidth only) there are loaders' results alone.
    let mut cells: Vec<&Measurement> = results(report, Experiment::LoadedLatency).collect();
    if cells.is_empty() {
        cells = bandwidths(report).collect();
    }
    let mix = cells.first().and_then(|m| m.at.mix);
    let traffic = match mix {
        None if wording.per_thread => "Using traffic types given for each thread\n",
        mix => traffic(mix),
    };
    let mut text = loaded_heading(wording, traffic);
    if wording.per_thread {
        text.push_str(&per_thread(report, &cells));
    }
    text.push_str(LOADED_COLUMNS);
    // In the order of measurement, which is the order of the delays asked for. One that is asked for twice has two rows.
    let results = |metric: Metric| cells.iter().filter(move |m| m.at.mix == mix && m.metric == metric).copied();
    for (row, bandwidth) in results(Metric::Bandwidth).enumerate() {
        let delay = delay_of(bandwidth);
        let before = results(Metric::Bandwidth).take(row).filter(|m| delay_of(m) == delay).count();
        let latency = results(Metric::Latency).filter(|m| delay_of(m) == delay).nth(before);
        let ns = if latency.is_some() { latency.and_then(|m| m.estimate.value) } else { Some(0.0) };
        text.push_str(&loaded_row(delay, ns, megabytes(bandwidth)));
    }
    text
}

/// The cell's injection delay in cycles; without one, bursts follow each other at once.
fn delay_of(m: &Measurement) -> u32 {
    m.at.delay_cycles.unwrap_or(0)
}

/// The bandwidth of each loader, by CPU, at each delay: its share of the table's bandwidth. The rest of that bandwidth is the chase's. Nothing
/// may follow a table, so this stands before it. Delays have no leading zeros here; only those of rows do.
fn per_thread(report: &Report, cells: &[&Measurement]) -> String {
    let own_delays = own_delays(report);
    let mut text = String::from("Bandwidth of each thread (in MB/sec)\n");
    for m in cells.iter().filter(|m| m.metric == Metric::Bandwidth) {
        let by_cpu = &m.evidence.gbs_by_cpu;
        // Rates of threads are means of all the time, and the table's is the median of windows: the same basis for both, so that they add up.
        let all: f64 = by_cpu.values().sum();
        let loaders = m.evidence.traffic.map(|t| moved(m, t)).or(m.estimate.value);
        for (cpu, gbs) in by_cpu {
            let mbs = loaders.filter(|_| all > 0.0).map(|loaders| gbs / all * loaders * 1e3);
            let delay = own_delays.get(cpu).copied().unwrap_or_else(|| delay_of(m));
            let _ = writeln!(text, "CPU {cpu}, delay {delay}:\t{}", number(mbs, 0, 1));
        }
    }
    text
}

/// Injection delays of loaders that have one of their own, by CPU.
fn own_delays(report: &Report) -> BTreeMap<u32, u32> {
    let works = report.plan.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells).map(|c| &c.work);
    let loaders = works.flat_map(|work| match work {
        Work::Bandwidth(Loading { loaders, .. }) | Work::Curve(LoadCurve { loaders, .. }) => loaders.as_slice(),
        _ => &[],
    });
    loaders.filter_map(|l| Some((l.cpu, l.own.as_ref()?.delay?))).collect()
}

/// A curve without load, measured once for each of these delays: idle latencies, and the bandwidths of their chases alone.
pub fn unloaded(report: &Report, wording: Wording, delays: &[u32]) -> String {
    let line = report.machine.topology.line().0 as f64;
    let row = |(&delay, ns): (&u32, Option<f64>)| loaded_row(delay, ns, ns.map(|ns| line / ns * 1e3));
    let rows: String = delays.iter().zip(idle_latencies(report)).map(row).collect();
    format!("{}{LOADED_COLUMNS}{rows}", loaded_heading(wording, traffic(None)))
}

fn loaded_heading(wording: Wording, traffic: &str) -> String {
    let pages = if wording.large_pages { "Using large pages for buffers\n" } else { "" };
    format!("Measuring Loaded Latencies for the system\n{}\n{traffic}{pages}", wording.threads())
}

const LOADED_COLUMNS: &str = "Inject\tLatency\tBandwidth\nDelay\t(ns)\tMB/sec\n==========================\n";

fn loaded_row(delay: u32, ns: Option<f64>, mbs: Option<f64>) -> String {
    format!(" {delay:05}\t{}\t{}\n", number(ns, 6, 2), number(mbs, 9, 1))
}

/// Cache-to-cache transfers: within a package, and between nodes.
pub fn cache_to_cache(report: &Report) -> String {
    let cells: Vec<&Measurement> = by_method(report, Method::CacheToCache).collect();
    let mut text = format!("{TRANSFERS}\n");
    for (state, name) in [(LineState::Hit, "HIT "), (LineState::Hitm, "HITM")] {
        let near = cells.iter().filter(|m| m.at.state == Some(state)).filter_map(|m| Some((nearness(report, &m.at)?, m.estimate.value)));
        if let Some((_, ns)) = near.min_by_key(|(nearness, _)| *nearness) {
            let _ = writeln!(text, "Local Socket L2->L2 {name} latency\t{}", number(ns, 0, 1));
        }
    }
    let topology = &report.machine.topology;
    let node = |cpu: Option<u32>| cpu.and_then(|c| topology.cpu(c)).map(|c| c.node);
    // Modified lines, or clean ones where only these were asked for.
    let modified = cells.iter().any(|m| m.at.state == Some(LineState::Hitm));
    let (state, name_of_state) = if modified { (LineState::Hitm, "HITM") } else { (LineState::Hit, "HIT") };
    for (homed, name) in [(true, "writer"), (false, "reader")] {
        let shown = |m: &&Measurement| {
            let (writer, reader) = (node(m.at.holder_cpu), node(m.at.cpu));
            let home = m.at.memory_node().filter(|_| writer.is_some() && reader.is_some() && writer != reader);
            m.at.state == Some(state) && home.is_some() && home == if homed { writer } else { reader }
        };
        let remote: Vec<&Measurement> = cells.iter().copied().filter(shown).collect();
        if remote.is_empty() {
            continue;
        }
        let table = Pivot::new(&remote, |m| (node(m.at.holder_cpu), node(m.at.cpu)));
        let _ =
            writeln!(text, "Remote Socket L2->L2 {name_of_state} latency (data address homed in {name} socket)\n\t\t\tReader Numa Node");
        text.push_str("Writer Numa Node");
        let nodes: IdSet = table.rows.iter().chain(&table.columns).copied().flatten().collect();
        rows(&mut text, &nodes, &nodes, 13, |writer, reader| {
            table.get(&Some(writer), &Some(reader)).map_or_else(|| "     -".to_owned(), |m| number(m.estimate.value, 6, 1))
        });
    }
    text
}

/// One transfer between two CPUs that were named.
pub fn one_transfer(report: &Report) -> String {
    let ns = by_method(report, Method::CacheToCache).next().and_then(|m| m.estimate.value);
    // Number and bracket touch in the original.
    format!("{TRANSFERS}\nLatency = {} base frequency clocks ({} ns)\n", number(clocks(report, ns), 0, 1), number(ns, 0, 1))
}

/// How near two CPUs of a package are, for the two lines about one socket: another core at the same last-level cache first. `None`: not of
/// one package, or threads of one core, whose caches are the same.
fn nearness(report: &Report, at: &Coordinates) -> Option<u32> {
    let topology = &report.machine.topology;
    let (reader, holder) = (topology.cpu(at.cpu?)?, topology.cpu(at.holder_cpu?)?);
    if reader.package != holder.package || reader.siblings.contains(holder.id) {
        return None;
    }
    let shares = topology.last_level_cache(reader.id).is_some_and(|llc| llc.cpus.contains(holder.id));
    Some(if shares { 0 } else { 1 })
}

/// Results of an experiment.
fn results(report: &Report, experiment: Experiment) -> impl Iterator<Item = &Measurement> {
    report.results.iter().filter(move |m| m.experiment == experiment)
}

/// Results of all experiments that measure in one way.
fn by_method(report: &Report, method: Method) -> impl Iterator<Item = &Measurement> + Clone {
    report.results.iter().filter(move |m| m.method() == method)
}

/// The order whose latency is printed: sequential when that was asked for, else random within windows.
fn chase_order(cells: &[&Measurement]) -> Option<ChaseOrder> {
    let has = |order| cells.iter().any(|m| m.at.order == Some(order));
    [ChaseOrder::Sequential, ChaseOrder::WindowLocal, ChaseOrder::FullRandom].into_iter().find(|&order| has(order))
}

/// Results of loaders alone, but for those between nodes.
fn bandwidths(report: &Report) -> impl Iterator<Item = &Measurement> + Clone {
    by_method(report, Method::Bandwidth).filter(|m| m.experiment != Experiment::BandwidthMatrix)
}

/// MB/s at the memory, plain stores counted as a read and a write. A chase's share, which the value has and the loaders' rates have not, are reads.
fn megabytes(m: &Measurement) -> Option<f64> {
    let value = m.estimate.value?;
    let Some(rates) = m.evidence.traffic else { return Some(value * 1e3) };
    Some((value - rates.app_read_gbs - rates.app_write_gbs + moved(m, rates)) * 1e3)
}

/// GB/s that loaders move at the memory.
fn moved(m: &Measurement, rates: TrafficRates) -> f64 {
    let plain_stores = m.at.mix.map_or(rates.rfo != Rfo::No, |mix| !mix.non_temporal()) && rates.app_write_gbs > 0.0;
    match rates.bus_estimate_gbs {
        // Cores that need not read what they overwrite: the original counts that read all the same.
        Some(_) if plain_stores && rates.rfo == Rfo::No => rates.app_read_gbs + 2.0 * rates.app_write_gbs,
        Some(bus) => bus,
        None if plain_stores => rates.app_read_gbs + 2.0 * rates.app_write_gbs,
        None => rates.app_read_gbs + rates.app_write_gbs,
    }
}

/// Converts ns to clocks of the CPU's base frequency (the TSC's).
fn clocks(report: &Report, ns: Option<f64>) -> Option<f64> {
    let clock = report.environment.clock.as_ref()?;
    // A clock of the kernel's ticks in nanoseconds, whatever the CPU does.
    if clock.source == "monotonic-raw" {
        return ns;
    }
    Some(ns? * clock.hz / 1e9)
}

/// The line that names the traffic. Mixes with stores do not have this line in the original either, and scripts count lines.
const fn traffic(mix: Option<Mix>) -> &'static str {
    match mix {
        None | Some(Mix::AllReads) => "Using Read-only traffic type\n",
        Some(_) => "",
    }
}

/// Every node with memory that was measured or could be.
fn columns(report: &Report) -> IdSet {
    let measured = report.results.iter().filter_map(|m| m.at.memory_node());
    report.machine.allowed.nodes.iter().chain(measured).collect()
}

/// The numbers of the columns, then a line for each row: its number, padded to at least `places` as with `printf`, and its cells.
fn rows(text: &mut String, rows: &IdSet, columns: &IdSet, places: usize, cell: impl Fn(u32, u32) -> String) {
    let head: String = columns.iter().map(|column| format!("{column:6}\t")).collect();
    let _ = writeln!(text, "{head}");
    for row in rows.iter() {
        let cells: String = columns.iter().map(|column| cell(row, column) + "\t").collect();
        let _ = writeln!(text, "{row:places$}\t{cells}");
    }
}

/// A row for each node with CPUs, a column for each node with memory; numbers with at least `width` places.
fn matrix(text: &mut String, report: &Report, ms: &[&Measurement], value: impl Fn(&Measurement) -> Option<f64>, width: usize) {
    text.push_str("\t\tNuma node\nNuma node\t");
    let table = Pivot::new(ms, |m| (m.at.cpu_node, m.at.memory_node()));
    let nodes: IdSet = ms.iter().filter(|m| m.at.memory_node().is_some()).filter_map(|m| m.at.cpu_node).collect();
    let cell = |row, column| table.get(&Some(row), &Some(column)).and_then(&value);
    rows(text, &nodes, &columns(report), 8, |row, column| number(cell(row, column), width, 1));
}

fn number(value: Option<f64>, width: usize, digits: usize) -> String {
    match value {
        Some(value) => format!("{value:width$.digits$}"),
        None => format!("{:>width$}", "nan"),
    }
}
