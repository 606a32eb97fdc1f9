//! Help on one screen (`-h`): the options that matter most, each in a line. `--help` is all of it, as clap prints it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// The options that matter most of each command, by their identifiers. Commands below others are named with them.
const BRIEF: [(&str, &[&str]); 32] = [
    ("memgauge", &["output", "verbose", "plan"]),
    ("info", &["machine", "format", "output", "quiet"]),
    ("latency", &["matrix", "per_cpu", "cpu", "node", "size", "orders", "pages", "histogram", "within", "output"]),
    ("bandwidth", &["peak", "matrix", "ramp", "search", "mixes", "cpu", "node", "peak_gbs", "within", "output"]),
    ("loaded", &["mixes", "delays", "at_percent", "load_nodes", "probe_cpu", "cpu", "node", "pages", "within", "output"]),
    ("c2c", &["matrix", "node_matrix", "reader", "holder", "states", "cpu", "node", "within", "output"]),
    ("quick", &["against", "baseline", "rules", "peak_gbs", "within", "wait_quiet", "quiet", "format", "output"]),
    ("run", &["pages", "time", "budget", "within", "plan", "verbose", "format", "output"]),
    ("scan", &["node", "cpu", "size", "region", "integrity", "patterns", "hold", "within", "plan", "output"]),
    ("sweep", &["min", "max", "latency", "bandwidth", "per_domain", "all_cpus", "cpu", "counters", "within", "output"]),
    ("stream", &["cpu", "node", "pages", "passes", "counters", "quiet", "format", "output"]),
    ("chase", &["cpu", "node", "pages", "order", "passes", "counters", "format", "output"]),
    ("count", &["events", "runs", "quiet", "format", "output"]),
    ("stamp", &["check", "quiet", "format", "output"]),
    ("watch", &["every", "time", "curve", "measure_curve", "lines", "textfile", "listen", "output"]),
    ("where", &["cgroup", "every", "time", "prices", "measure", "quiet", "format", "output"]),
    ("prefetch", &["quiet", "format", "output"]),
    ("prefetch compare", &["cpu", "node", "size", "pages", "budget", "within", "plan", "quiet", "format", "output"]),
    ("pmem", &["node", "ramp", "loaded", "out", "size", "within", "plan", "output"]),
    ("interleave", &["node", "mixes", "demand", "threads", "apply", "restore", "within", "output"]),
    ("tiers", &["mixes", "histogram", "cpu", "node", "size", "within", "plan", "format", "output"]),
    ("compare", &["runs", "measure", "keep", "margin", "verbose", "quiet", "format", "output"]),
    ("advise", &["model_bytes", "models", "tokens_per_second", "quiet", "format", "output"]),
    ("fleet", &[]),
    ("fleet ingest", &["copy", "batch", "quiet", "format"]),
    ("fleet outliers", &["verbose", "quiet", "format", "output"]),
    ("fleet baseline", &["verbose", "quiet", "format", "output"]),
    ("fleet history", &["host", "verbose", "quiet", "format", "output"]),
    ("fleet export", &["format", "host", "fingerprint", "output"]),
    ("reference", &["sources", "format"]),
    ("report", &["output", "title", "no_data"]),
    ("render", &["quiet", "verbose", "format", "output"]),
];
/// Commands that the program's own screen leaves out.
const LESS_USED: [&str; 15] = [
    "run",
    "stream",
    "chase",
    "count",
    "stamp",
    "watch",
    "where",
    "interleave",
    "tiers",
    "reference",
    "mlc",
    "pmem",
    "prefetch",
    "render",
    "advise",
];
/// Options of a command without a list: its first ones.
const MOST: usize = 10;
/// Examples, and columns of the longest.
const EXAMPLES: usize = 3;
/// The screen.
const COLUMNS: usize = 80;
const LINES: usize = 24;

/// The command, and all below it, as `-h` shows it.
pub(super) fn brief(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
    let first: Vec<String> = visible.take(MOST).map(|arg| arg.get_id().to_string()).collect();
    let path = command.get_bin_name().unwrap_or(&name).to_owned();
    let key = path.strip_prefix("memgauge ").unwrap_or(&path);
    let listed = BRIEF.iter().find(|(of, _)| *of == key).map_or(first, |(_, ids)| ids.iter().map(ToString::to_string).collect());
    let command = command.mut_args(|arg| {
        let hidden = arg.is_hide_set() || !(arg.is_positional() || listed.iter().any(|id| arg.get_id() == id));
        shortened(arg).hide(hidden)
    });
    let about = clause(&command.get_about().map(ToString::to_string).unwrap_or_default());
    let whole = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let examples = whole.split("\n\n").find(|part| part.starts_with("Examples:") && !has_commands);
    let short = |part: &str| part.lines().filter(|line| line.chars().count() <= COLUMNS).take(EXAMPLES + 1).collect::<Vec<_>>().join("\n");
    let examples = examples.map(short);
    let all = if path == "memgauge" { "All commands, options and examples" } else { "All options and examples" };
    let more = format!("{all}: {path} --help");
    let below: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let less_used = |sub: &str| path == "memgauge" && LESS_USED.contains(&sub);
    let mut command = command.about(about).disable_help_subcommand(true).disable_version_flag(true);
    if has_commands {
        command = command.override_usage(format!("{path} [OPTIONS] [COMMAND]"));
    }
    command = with_examples(command, &examples.unwrap_or_default(), &more);
    below.into_iter().fold(command, |command, sub| {
        let (path, hidden) = (format!("{path} {sub}"), less_used(&sub));
        command.mut_subcommand(sub, |sub| {
            let hidden = hidden || sub.is_hide_set();
            brief(sub.bin_name(path)).hide(hidden)
        })
    })
}

/// The command with as many of its examples as the screen has room for, and what stands below them.
fn with_examples(command: Command, examples: &str, more: &str) -> Command {
    let with = |lines: usize| {
        let shown: Vec<&str> = examples.lines().take(lines).collect();
        let shown = if lines > 1 { shown.join("\n") + "\n\n" } else { String::new() };
        command.clone().after_help(shown + more)
    };
    let fits = |lines: &usize| with(*lines).term_width(COLUMNS).render_help().to_string().lines().count() <= LINES;
    with((2..=examples.lines().count()).rev().find(fits).unwrap_or(0))
}

/// What to use instead of an option that a command lacks: the command (any if empty), the option, and the advice.
const INSTEAD: [(&str, &str, &str); 3] = [
    ("", "prefetch", "'memgauge prefetch compare' measures with prefetchers on and off"),
    ("sweep", "size", "--min and --max say which sizes a sweep measures"),
    ("bandwidth", "order", "--access random, or --line-stride, says how the CPUs that load go through their buffers"),
];
/// Options that choose what table is measured.
const SHAPES: [&str; 6] = ["--matrix", "--node-matrix", "--per-cpu", "--peak", "--ramp", "--search"];

/// Adds to the refusal of an option which commands have it, or what to do instead.
pub(super) fn with_advice(mut error: clap::Error, program: &Command, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let given = given.split(' ').next().unwrap_or_default().to_owned();
    let command =
        words.iter().skip(1).filter_map(|word| word.to_str()).find(|word| program.find_subcommand(word).is_some()).unwrap_or_default();
    let mut tips: Vec<String> = Vec::new();
    match (error.kind(), given.strip_prefix("--")) {
        (ErrorKind::ArgumentConflict, _) => {
            let shape = |option: &str| SHAPES.contains(&option.split(' ').next().unwrap_or_default());
            let both = shape(&given) && matches!(error.get(ContextKind::PriorArg), Some(ContextValue::String(prior)) if shape(prior));
            tips.push(if both { "leave one of them out; a run with each gives both" } else { "leave one of them out" }.to_owned());
            error.remove(ContextKind::Usage);
        }
        (ErrorKind::UnknownArgument, Some(name)) => {
            let has = |command: &Command| command.get_arguments().any(|arg| !arg.is_hide_set() && arg.get_long() == Some(name));
            let owners: Vec<&str> = program.get_subcommands().filter(|command| has(command)).map(Command::get_name).collect();
            if !owners.is_empty() {
                tips.push(format!("'{given}' is an option of {}", owners.join(", ")));
                // An option that looks alike is not what was meant, and neither is the usage with it.
                error.remove(ContextKind::SuggestedArg);
                error.remove(ContextKind::Usage);
            }
            let fits = |(of, option, _): &&(&str, &str, &str)| *option == name && (of.is_empty() || *of == command);
            tips.extend(INSTEAD.iter().find(fits).map(|(.., instead)| (*instead).to_owned()));
        }
        (ErrorKind::UnknownArgument, None) if command == "count" => {
            tips.push(format!("the program stands after --: memgauge count -- {given} …"));
        }
        _ => {}
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.into_iter().map(Into::into).collect()));
    }
    error
}

/// An option in a line, without its heading.
fn shortened(arg: Arg) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let arg = arg.help(clause(&help)).help_heading(None::<&str>);
    let takes_values = arg.get_action().takes_values();
    if takes_values { arg.hide_possible_values(true) } else { arg }
}

/// A clause of more characters than this ends at its last comma.
const LONG: usize = 60;

/// What comes before the first end of a clause, and the default.
fn clause(text: &str) -> String {
    let (text, default) = text.split_once(" [default: ").map_or((text, String::new()), |(text, rest)| (text, format!(" [default: {rest}")));
    let end = [". ", ": ", "; ", " ("].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let end = if end > LONG { text[..end].rmatch_indices(',').map(|(at, _)| at).find(|at| *at <= LONG).unwrap_or(end) } else { end };
    let default = if end + default.len() < 60 { default } else { String::new() };
    text[..end].trim_end_matches('.').to_owned() + &default
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The commands and what they print for help, each with its name.
    fn pages(command: Command, columns: usize) -> Vec<(String, String)> {
        fn all(command: &mut Command, pages: &mut Vec<(String, String)>) {
            pages.push((command.get_name().to_owned(), command.render_help().to_string()));
            let shown = |sub: &&mut Command| sub.get_name() != "help" && sub.get_name() != "mlc";
            command.get_subcommands_mut().filter(shown).for_each(|sub| all(sub, pages));
        }
        let mut command = command.term_width(columns);
        command.build();
        let mut pages = Vec::new();
        all(&mut command, &mut pages);
        pages
    }

    fn assert_fits((name, text): &(String, String), columns: usize) {
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
        assert!(wide.is_empty(), "{name}: {wide:?}");
    }

    #[test]
    fn brief_help_fits_one_screen() {
        let pages = pages(brief(Cli::command()), 80);
        assert!(pages.len() > 15, "{}", pages.len());
        for page in &pages {
            assert!(page.1.lines().count() <= LINES, "{} has {} lines:\n{}", page.0, page.1.lines().count(), page.1);
            assert_fits(page, 80);
        }
    }

    #[test]
    fn whole_help_is_wrapped_once() {
        for columns in [80, 100] {
            for page in &pages(Cli::command(), columns) {
                assert_fits(page, columns);
                // What is wrapped where it is written and again by clap has lines of a word or two in the midst of a paragraph.
                let lines: Vec<&str> = page.1.lines().collect();
                let short = |pair: &&[&str]| {
                    let lower = |line: &str| line.starts_with(|c: char| c.is_ascii_lowercase());
                    !pair[0].is_empty() && pair[0].len() < 30 && lower(pair[1])
                };
                let twice: Vec<_> = lines.windows(2).filter(short).filter(|pair| !pair[0].starts_with(' ')).collect();
                assert!(twice.is_empty(), "{}: {twice:?}", page.0);
            }
        }
    }

    #[test]
    fn brief_help_names_options_that_exist() {
        for (path, listed) in BRIEF {
            let program = Cli::command();
            let mut words = path.split(' ').filter(|word| *word != "memgauge");
            let command = words.try_fold(&program, |command, word| command.find_subcommand(word));
            let command = command.unwrap_or_else(|| panic!("there is no command '{path}'"));
            let missing = listed.iter().find(|id| !command.get_arguments().any(|arg| arg.get_id() == **id && !arg.is_hide_set()));
            assert_eq!(missing, None, "{path}");
        }
    }

    #[test]
    fn a_refusal_names_the_commands_that_have_the_option() {
        let refused = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            Cli::parse_line(&words).map(|_| ()).unwrap_err().to_string()
        };
        let text = refused("memgauge chase --prefetch off");
        assert!(text.contains("is an option of latency, bandwidth") && text.contains("memgauge prefetch compare"), "{text}");
        assert!(refused("memgauge stream --ramp").contains("'--ramp' is an option of bandwidth"));
        let sweep = refused("memgauge sweep --size 1G");
        assert!(sweep.contains("--min and --max") && !sweep.contains("similar"), "{sweep}");
        let count = refused("memgauge count ls");
        assert!(count.contains("memgauge count -- ls") && !count.contains("is an option of"), "{count}");
        assert!(!refused("memgauge latency ls").contains("tip"), "{}", refused("memgauge latency ls"));
        assert!(refused("memgauge latency --matrixx").contains("similar argument"), "{}", refused("memgauge latency --matrixx"));
    }

    #[test]
    fn a_refused_combination_says_what_to_do() {
        let refused = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            Cli::parse_line(&words).map(|_| ()).unwrap_err().to_string()
        };
        for both in ["latency --matrix --per-cpu", "bandwidth --peak --ramp", "bandwidth --ramp 1,2 --search", "c2c --matrix --node-matrix"]
        {
            let text = refused(&format!("memgauge {both}"));
            assert!(text.contains("cannot be used with") && text.contains("a run with each gives both"), "{text}");
        }
        let text = refused("memgauge latency --time 1s --budget 1s");
        assert!(text.contains("leave one of them out") && !text.contains("a run with each"), "{text}");
    }

    #[test]
    fn examples_fit_and_are_pasted_as_they_stand() {
        fn check(command: &Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = text.split("\n\n").find(|part| part.starts_with("Examples:")).unwrap_or_default();
            let wide: Vec<&str> = examples.lines().filter(|line| line.chars().count() > COLUMNS).collect();
            assert!(wide.is_empty(), "{}: wrapped where a terminal has {COLUMNS} columns: {wide:?}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn clauses_end_where_they_say_enough() {
        assert_eq!(clause("Measure each cell for exactly this long: 2s, 500ms"), "Measure each cell for exactly this long");
        assert_eq!(clause("Print only the verdict (one line), and more"), "Print only the verdict");
        assert_eq!(clause("CPU that chases [default: the first of --cpu]"), "CPU that chases [default: the first of --cpu]");
    }
}
