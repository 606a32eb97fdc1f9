//! The examples of README.md and docs/*.md run: every command in a fenced block and in a table of wishes, in the order of the page, each
//! page in a folder of its own, on a simulated machine of 16 CPUs and three nodes. Commands that no model answers for run on this machine: they
//! get little time and small buffers, and nothing else about them is changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use memgauge_testing::not_tested_in_part;

use crate::support::{beside_another, report, simulated, temporary};

/// What an example needs that not every machine has.
#[derive(Debug, Clone, Copy)]
enum Needs {
    /// Nodes of this machine.
    NodesHere(u32),
    /// CPUs of it that this process may use.
    CpusHere(usize),
    /// Registers of prefetchers. Where they are, the example would change the machine.
    NoRegisters,
    /// A program, found by running this.
    Tool(&'static [&'static str]),
    Arch(&'static str),
    /// A folder of the reader's.
    Folder,
    /// A CPU that published values are of.
    KnownCpu,
    /// A clock that advances by less than a hop takes. Some machines' does not, and say it.
    FineClock,
    /// The name of the host, which the simulated machine does not have.
    HostName,
}

/// An example that cannot run everywhere: how it begins, what it needs, and where that is missing its status and a part of its message.
type Exception = (&'static str, Needs, i32, &'static str);

const EXCEPTIONS: &[Exception] = &[
    ("memgauge latency --histogram 1", Needs::FineClock, 64, "clock advances by"),
    ("memgauge scan --node 0 --cpu 0-1", Needs::CpusHere(2), 4, "this process may not use CPU "),
    ("memgauge scan --node 1", Needs::NodesHere(2), 64, "there is no node 1"),
    ("memgauge pmem /mnt/pmem0", Needs::Folder, 64, "there is no such directory"),
    ("memgauge fleet baseline", Needs::Folder, 4, "fewer than eight of the"),
    ("memgauge fleet history fleet/ --host $(hostname)", Needs::HostName, 64, "no host"),
    ("memgauge reference here", Needs::KnownCpu, 4, "no published reference"),
    ("memgauge --plan --machine DIR", Needs::Folder, 4, "DIR"),
    ("memgauge latency --prefetch off", Needs::NoRegisters, 4, ""),
    ("memgauge prefetch", Needs::NoRegisters, 4, ""),
    ("memgauge prefetch compare", Needs::NoRegisters, 1, ""),
    ("memgauge bandwidth --mix nt-write --width avx2", Needs::Arch("x86_64"), 64, "has no avx2 kernel"),
    ("numactl", Needs::Tool(&["numactl", "--show"]), 127, "numactl"),
    ("numactl", Needs::NodesHere(2), 1, ""),
    ("python3 -c \"import pandas; print(pandas.read_parquet", Needs::Tool(&["python3", "-c", "import pyarrow"]), 1, "pyarrow"),
    ("python3 -c \"import pandas", Needs::Tool(&["python3", "-c", "import pandas"]), 1, "No module named 'pandas'"),
    ("python3 -c \"import duckdb", Needs::Tool(&["python3", "-c", "import duckdb"]), 1, "No module named 'duckdb'"),
    ("python3 -c \"import polars", Needs::Tool(&["python3", "-c", "import polars"]), 1, "No module named 'polars'"),
    ("jq", Needs::Tool(&["jq", "--version"]), 127, "jq"),
];

/// Whether there is what an example needs.
fn has(needs: Needs) -> bool {
    match needs {
        Needs::NodesHere(n) => report("info").machine.allowed.nodes.len() >= n as usize,
        Needs::CpusHere(n) => report("info").machine.allowed.cpus.len() >= n,
        Needs::Tool(words) => Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success()),
        Needs::Arch(arch) => std::env::consts::ARCH == arch,
        Needs::KnownCpu => {
            let microarch = memgauge_analysis::reference::microarchitecture(&report("info").machine.identity);
            memgauge_analysis::reference::published().any(|value| Some(value.microarch) == microarch)
        }
        // A simulated run's clock is this machine's.
        Needs::FineClock => simulated::run("memgauge latency --histogram 1").status.success(),
        Needs::NoRegisters | Needs::Folder | Needs::HostName => false,
    }
}

/// The commands of a page, in order. In a block with prompts only what follows them is one; `\` and `|` continue a line.
fn commands(page: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, block) = block.split_once('\n').unwrap_or_default();
        if !["", "sh", "console"].contains(&language) {
            continue;
        }
        let prompts = block.lines().any(|line| line.starts_with("$ "));
        let mut continued = false;
        for line in block.lines() {
            let command = if prompts { line.strip_prefix("$ ") } else { Some(line) };
            match command {
                _ if continued => all.last_mut().unwrap().extend(["\n", line]),
                Some(command) if is_example(command) => all.push(command.to_owned()),
                _ => continue,
            }
            continued = line.ends_with(['\\', '|']);
        }
    }
    all
}

/// Whether it runs memgauge, or reads what memgauge wrote.
fn is_example(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    // The experiments need other benchmarks, which are built elsewhere.
    ["memgauge", "mlc", "numactl", "jq", "python3"].contains(&first) && !line.starts_with("python3 experiments/")
}

/// The commands in the tables of wishes of README.md and docs/commands.md. One with a word in capitals is a pattern and no example.
fn wishes(page: &str) -> Vec<String> {
    let rows = page.lines().skip_while(|line| !line.starts_with("| I want to")).take_while(|line| line.starts_with('|'));
    let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let pattern = |span: &&str| span.contains('…') || span.split(' ').any(|w| w.len() > 1 && w.chars().all(|c| c.is_ascii_uppercase()));
    spans.filter(|span| is_example(span) && !pattern(span)).map(str::to_owned).collect()
}

/// What no model answers for: memory that is read and compared, loops in the caller's environment, files, registers and other programs.
/// What was published is of this machine's CPU. Prices of `where` must be of the machine that its processes run on.
const HERE: [&str; 9] = [
    "memgauge scan",
    "memgauge stream",
    "memgauge chase",
    "memgauge pmem",
    "memgauge count",
    "memgauge prefetch",
    "memgauge reference here",
    "memgauge where",
    "-o prices.json",
];

/// Whether an example runs on this machine instead of the simulated one.
fn runs_here(command: &str) -> bool {
    HERE.iter().any(|begin| command.contains(begin)) && !command.contains("--plan") && !command.contains("prefetch compare")
}

/// A command for this machine with little to measure: shorter times and smaller buffers in place of those that it names, or additional ones.
/// Nothing of what is after a pipe or a comment is changed.
fn shortened(command: &str) -> String {
    let end = command.find(" |").into_iter().chain(command.find(" #")).min().unwrap_or(command.len());
    let (code, rest) = command.split_at(end);
    let mut words: Vec<&str> = code.split_whitespace().collect();
    let (mut within, mut sized) = (false, false);
    for i in 1..words.len() {
        match words[i - 1] {
            "--within" => (words[i], within) = (WITHIN, true),
            "--hold" => words[i] = "100ms",
            "--size" => (words[i], sized) = ("16M", true),
            "--region" => words[i] = "4M",
            _ => {}
        }
    }
    let Some(at) = words.iter().position(|w| *w == "memgauge") else { return command.to_owned() };
    let (time, size): (&[&str], &[&str]) = match words.get(at + 1).copied().unwrap_or_default() {
        "stream" | "chase" => {
            sized = words[at + 2..].iter().any(|word| is_size(word));
            words[at + 2..].iter_mut().filter(|word| is_size(word)).for_each(|word| *word = smaller(word));
            (&["--passes", "1"], &[SIZE])
        }
        "scan" => (&["--within", WITHIN], &["--size", "16M", "--region", "4M"]),
        "latency" => (&["--within", WITHIN], &["--size", "16M"]),
        "pmem" => (&["--time", "5ms", "--within", WITHIN], &["--size", SIZE]),
        _ => (&[], &[]),
    };
    let times = time.chunks(2).filter(|option| option[0] != "--within" || !within);
    words.extend(times.flatten().chain(size.iter().filter(|_| !sized)));
    format!("{}{rest}", words.join(" "))
}

/// Whether a word of the command line is a size or a range of sizes.
fn is_size(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit()) && word.contains(['K', 'M', 'G'])
}

/// A range of sizes that are all small, in place of one, and [`SIZE`] in place of a size.
fn smaller(word: &str) -> &'static str {
    match word.contains('-') {
        true if word.contains(":*") => "4K-64K:*4",
        true => "4K-64K",
        false => SIZE,
    }
}

/// What buffers are replaced by.
const SIZE: &str = "2M";
/// What a run's time is replaced by.
const WITHIN: &str = "500ms";
/// The latter where that was too little.
const ENOUGH: &str = "30s";

/// The examples of a page.
fn of_page(page: &Path) -> Vec<String> {
    let words = fs::read_to_string(page).unwrap();
    let mut all = commands(&words);
    if page.ends_with("README.md") || page.ends_with("docs/commands.md") {
        let wishes = wishes(&words);
        assert!(wishes.len() > 6, "{}: {wishes:?}", page.display());
        all.extend(wishes);
    }
    all
}

/// The examples in the help of a command, without what is said of them.
fn of_help(command: &str) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_memgauge")).args(command.split_whitespace()).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let examples = help.split("\nExamples:\n").nth(1).unwrap_or_else(|| panic!("{command}: no examples")).split("\n\n").next().unwrap();
    let all = examples.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| is_example(line));
    all.map(|line| line.split("  ").next().unwrap().to_owned()).collect()
}

/// Runs examples, of a page or a command's help, and says what is wrong.
fn wrong(page: &Path, all: Vec<String>, folder: &Path) -> Vec<String> {
    let (here, simulated) = (Path::new(env!("CARGO_BIN_EXE_memgauge")).parent().unwrap(), folder.join("bin"));
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for command in all {
        // The first screen and the table below it have some in common.
        if !seen.insert(command.split("  #").next().unwrap_or_default().trim_end().to_owned()) {
            continue;
        }
        let missing: Vec<_> = EXCEPTIONS.iter().filter(|e| command.starts_with(e.0) && !has(e.1)).collect();
        if missing.iter().any(|e| matches!(e.1, Needs::NoRegisters)) && Path::new("/dev/cpu/0/msr").exists() {
            not_tested_in_part!("{command}: it would switch this machine's prefetchers");
            continue;
        }
        let begin = Instant::now();
        let here = runs_here(&command).then_some(here);
        let mut short = if here.is_some() { shortened(&command) } else { command.clone() };
        let path = format!("{}:{}", here.unwrap_or(&simulated).display(), std::env::var("PATH").unwrap());
        let run = |line: &str| {
            let _permit = here.map(|_| beside_another());
            let mut bash = Command::new("bash");
            bash.args(["-o", "pipefail", "-c", line]).env("PATH", &path).current_dir(folder).stdin(Stdio::null());
            // Checks of tests are not this user's.
            bash.env("MEMGAUGE_STATE", folder.join("checks")).output().unwrap()
        };
        let mut output = run(&short);
        // Beside other work a run may get no CPU in so little time.
        if output.status.code() == Some(4) && String::from_utf8_lossy(&output.stderr).contains("the time given was not enough") {
            short = short.replace(WITHIN, ENOUGH);
            output = run(&short);
        }
        eprintln!("{:5.1} s, status {:?}: {}", begin.elapsed().as_secs_f64(), output.status.code(), short.replace('\n', " "));
        let (status, said) = (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned());
        let expected = match missing.as_slice() {
            // So little time may be too little for some cells.
            [] if here.is_some() || DIFFERENCES.iter().any(|begin| command.starts_with(begin)) => [0, 1].contains(&status),
            [] => status == 0,
            missing => missing.iter().any(|e| status == e.2 && said.contains(e.3)),
        };
        if !expected {
            wrong.push(format!("{}: {short}: status {status}: {said}", page.display()));
        } else if missing.is_empty() && output.stdout.is_empty() && !only_to_file(&short) {
            wrong.push(format!("{}: {short}: prints nothing", page.display()));
        }
        for file in short.split(" -o ").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
            if missing.is_empty() && !folder.join(file).metadata().is_ok_and(|found| found.len() > 0) {
                wrong.push(format!("{}: {short}: {file} was not written", page.display()));
            }
        }
    }
    wrong
}

/// Examples that say by their status that something differs, or is not known.
const DIFFERENCES: [&str; 4] = ["memgauge quick", "memgauge compare", "memgauge prefetch compare", "memgauge fleet outliers"];

/// Whether all that a command has to say goes into its file.
fn only_to_file(command: &str) -> bool {
    command.contains(" -q")
        // Standard output is the other program's.
        || (command.starts_with("memgauge stamp") && command.contains(" -- "))
        || command.contains(" > ")
        || command.starts_with("memgauge report")
        || command.starts_with("memgauge fleet export")
}

/// A test for each page: most of their time is spent waiting, so that two run at once.
macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        /// The pages that have examples.
        const PAGES: &[&str] = &[$($page),*];

        $(#[test]
        fn $name() {
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join($page);
            let all = of_page(&page);
            assert!(!all.is_empty(), "{}", page.display());
            all_run(&page, all);
        })*
    };
}

pages! {
    the_first_page_s_examples_run: "README.md",
    examples_of_advise_run: "docs/advise.md",
    examples_of_benchmarks_run: "docs/benchmarks.md",
    examples_of_commands_run: "docs/commands.md",
    examples_of_compare_run: "docs/compare.md",
    examples_of_fleet_run: "docs/fleet.md",
    examples_of_fleet_store_run: "docs/fleet-store.md",
    examples_of_loaded_latency_run: "docs/loaded-latency.md",
    examples_of_mlp_run: "docs/mlp.md",
    examples_of_options_run: "docs/options.md",
    examples_of_prefetch_run: "docs/prefetch.md",
    examples_of_report_run: "docs/report.md",
    examples_of_state_run: "docs/state.md",
    examples_of_watch_run: "docs/watch.md",
    examples_of_where_run: "docs/where.md",
    examples_of_scheduled_run: "docs/scheduled.md",
    examples_of_scripts_run: "docs/scripts.md",
    examples_of_working_sets_run: "docs/working-sets.md",
}

#[test]
fn every_page_with_examples_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|e| e == "md")).chain([root.join("README.md")]);
    let found: BTreeSet<_> = pages.filter(|page| !of_page(page).is_empty()).collect();
    assert_eq!(found, PAGES.iter().map(|page| root.join(page)).collect());
}

/// Runs all examples of a page or a command's help, in a folder of their own.
fn all_run(page: &Path, examples: Vec<String>) {
    let folder = temporary(&format!("examples-{}", page.file_stem().unwrap().to_string_lossy().replace(' ', "-")));
    simulated::programs_in(&folder.join("bin"));
    let found = wrong(page, examples, &folder);
    fs::remove_dir_all(folder).unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The same for the help of each command. The others need memory of several kinds, a fleet, or results of the reader's.
macro_rules! helps {
    ($($name:ident: $command:literal,)*) => {
        $(#[test]
        fn $name() {
            let examples = of_help($command);
            assert!(examples.len() > 2, "{examples:?}");
            let of_others = ["memgauge compare before.json after.json", "memgauge quick --baseline"];
            let run = examples.into_iter().filter(|line| !of_others.iter().any(|other| line.starts_with(other)));
            all_run(Path::new(concat!("help of '", $command, "'")), run.collect());
        })*
    };
}

helps! {
    examples_of_help_of_latency_run: "latency",
    examples_of_help_of_bandwidth_run: "bandwidth",
    examples_of_help_of_loaded_run: "loaded",
    examples_of_help_of_c2c_run: "c2c",
    examples_of_help_of_quick_run: "quick",
    examples_of_help_of_scan_run: "scan",
    examples_of_help_of_sweep_run: "sweep",
    examples_of_help_of_stream_run: "stream",
    examples_of_help_of_chase_run: "chase",
    examples_of_help_of_the_suite_run: "",
}

#[test]
fn examples_are_found_and_shortened() {
    let page = "# T\n```\nmemgauge latency --x |\n  jq '.a'\n# no\n```\ntext\n```console\n$ memgauge\nmemgauge 0.1.0\n```\n```text\nmemgauge no\n```\n";
    assert_eq!(commands(page), ["memgauge latency --x |\n  jq '.a'", "memgauge"]);
    assert_eq!(wishes("| I want to … | |\n| a | `memgauge run FILE`, `memgauge quick` |\n\n| b | `memgauge` |"), ["memgauge quick"]);
    for (example, short) in [
        ("memgauge scan   # why", "memgauge scan --within 500ms --size 16M --region 4M # why"),
        ("memgauge scan --size 1G |\n  jq '.a | .b'", "memgauge scan --size 16M --within 500ms |\n  jq '.a | .b'"),
        ("numactl --membind 1 memgauge chase 1G", "numactl --membind 1 memgauge chase 2M --passes 1"),
        ("memgauge latency -o prices.json", "memgauge latency -o prices.json --within 500ms --size 16M"),
        ("memgauge stream --cpu 0", "memgauge stream --cpu 0 --passes 1 2M"),
        ("memgauge chase 4K-1G:*4 --pages thp", "memgauge chase 4K-64K:*4 --pages thp --passes 1"),
        ("memgauge prefetch", "memgauge prefetch"),
        ("jq '.a' x.json", "jq '.a' x.json"),
    ] {
        assert_eq!(shortened(example), short);
    }
}
