//! Options have the names of the command line everywhere, and no text below the command line writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use memgauge_model::wording::native::option;
use memgauge_model::words::{Knob, Verb};

use crate::cli::Cli;

/// Names that stand in files which other versions read.
const IN_FILES: [&str; 2] = ["memgauge prefetch journal 1", "memgauge interleave journal 1"];

/// The options and the commands of a program, as they are written.
fn names(command: &Command, path: &str, options: &mut BTreeSet<String>, commands: &mut BTreeSet<String>) {
    options.extend(command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let path = format!("{path} {}", below.get_name());
        names(below, &path, options, commands);
        commands.insert(path);
    }
}

fn memgauge() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut options, mut commands) = (BTreeSet::new(), BTreeSet::from(["memgauge".to_owned()]));
    names(&Cli::command(), "memgauge", &mut options, &mut commands);
    (options, commands)
}

#[test]
fn knobs_are_options_and_verbs_are_commands() {
    let (options, commands) = memgauge();
    for knob in Knob::ALL {
        assert!(options.contains(option(*knob)), "{knob:?} is called {knob}");
    }
    for verb in Verb::ALL {
        assert!(commands.contains(&verb.to_string()), "{verb:?} is called {verb}");
    }
}

/// The code of a file without its tests and comments.
fn sources(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let tests = ["tests", "examples", "benches", "target"];
        entries.filter(|path| !tests.iter().any(|name| path.ends_with(name))).for_each(|path| sources(&path, found));
    } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        found.push((path.display().to_string(), code.to_owned()));
    }
}

/// The string literals of Rust code, each in one line.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(at);
        let skipped = match here.as_bytes()[0] {
            b'/' if here.starts_with("//") => here.find('\n').unwrap_or(here.len()),
            b'\'' if here.starts_with("'\"'") => 3,
            b'\'' if here.starts_with("'\\''") || here.starts_with("'\\\"'") => 4,
            b'"' if before.ends_with("r#") => here[1..].find("\"#").map_or(here.len(), |end| end + 3),
            b'"' => here
                .char_indices()
                .skip(1)
                .scan(false, |escaped, (i, c)| {
                    let ends = c == '"' && !*escaped;
                    *escaped = c == '\\' && !*escaped;
                    Some((i, ends))
                })
                .find(|(_, ends)| *ends)
                .map_or(here.len(), |(i, _)| i + 1),
            _ => 1,
        };
        if here.starts_with('"') {
            found.push(here[..skipped].to_owned());
        }
        rest = &here[skipped..];
    }
    found
}

#[test]
fn no_text_below_the_command_line_names_an_option() {
    let (options, commands) = memgauge();
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates"), &mut files);
    let all: Vec<(String, String)> = files
        .iter()
        // memgauge's own names.
        .filter(|(file, _)| !file.ends_with("model/src/wording/native.rs"))
        .flat_map(|(file, code)| literals(code).into_iter().map(move |literal| (file.clone(), literal)))
        .filter(|(_, literal)| !IN_FILES.iter().any(|name| literal.contains(name)))
        .collect();
    assert!(all.len() > 3000, "{} literals were found", all.len());
    let names_option = |literal: &str| {
        let mut words = literal.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        words.any(|word| options.contains(word)) && !literal.contains("numactl") && !literal.contains("ndctl")
    };
    let names_command = |literal: &str| {
        let is_whole =
            |(at, command): (usize, &str)| !literal[at + command.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        commands.iter().filter(|command| command.contains(' ')).any(|command| literal.match_indices(command.as_str()).any(is_whole))
    };
    let wrong: Vec<&(String, String)> = all.iter().filter(|(_, literal)| names_option(literal) || names_command(literal)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
