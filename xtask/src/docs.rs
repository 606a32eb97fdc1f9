//! `cargo xtask docs`: man pages of memgauge and each of its commands, and completions for shells, from the definition of its command
//! line; the table of mixes, from their list.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Command;
use clap_complete::{Generator, Shell, generate};
use clap_mangen::Man;
use memgauge_model::traffic::{Mix, StoreKind};
use roff::{Roff, roman};

use crate::folders::project_folder;
use crate::generated::write_or_check;

/// Folders in `docs` that hold nothing else.
const FOLDERS: [&str; 2] = ["man", "completions"];

/// Writes all files and removes those of commands that are gone, or with `check` only compares.
pub(crate) fn docs(check: bool) -> Result<()> {
    let (docs, files) = (project_folder().join("docs"), files()?);
    for (path, content) in &files {
        write_or_check(&docs.join(path), content, check, "docs")?;
    }
    for folder in FOLDERS {
        for path in others(&docs, folder, &files)? {
            ensure!(!check, "{} belongs to no command: run 'cargo xtask docs' and commit it", path.display());
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    let page = docs.join("method/bandwidth.md");
    let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    write_or_check(&page, with_mixes(&text)?.as_bytes(), check, "docs")
}

/// The line above the table of mixes.
const ABOVE_MIXES: &str = "<!-- 'cargo xtask docs' writes this table from crates/model/src/traffic/mixes.rs -->\n";

/// A page with its table of mixes as they are now.
fn with_mixes(page: &str) -> Result<String> {
    let (before, rest) = page.split_once(ABOVE_MIXES).context("no line above the table of mixes")?;
    let (_, after) = rest.split_once("\n\n").context("nothing below the table of mixes")?;
    Ok(format!("{before}{ABOVE_MIXES}{}\n{after}", mixes()))
}

/// The table of mixes.
fn mixes() -> String {
    let mut table = String::from(
        "| mix | what the program does | reads : writes on the bus, if plain stores read first | compared with | suite |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for mix in Mix::ALL {
        let also = mix.other_name().map(|other| format!(" (also `{other}`)")).unwrap_or_default();
        let bus = mix.bus_lines().map_or("depends on the instruction".to_owned(), |(reads, writes)| format!("{reads} : {writes}"));
        let compared = match mix.stores() {
            StoreKind::Plain(with) => with.map_or_else(|| "nothing".to_owned(), |with| format!("`{with}`")),
            StoreKind::None | StoreKind::NonTemporal | StoreKind::ByString => String::new(),
        };
        let suite = if Mix::PEAK.contains(&mix) { "yes" } else { "" };
        table += &format!("| `{mix}`{also} | {} | {bus} | {compared} | {suite} |\n", mix.description());
    }
    table
}

/// Files in a folder of `docs` that are not made from the command line.
fn others(docs: &Path, folder: &str, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<Vec<PathBuf>> {
    let path = docs.join(folder);
    let entries = fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
    Ok(names.into_iter().filter(|name| !files.contains_key(&Path::new(folder).join(name))).map(|name| path.join(name)).collect())
}

/// Every file by its path in `docs`.
pub(crate) fn files() -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut command = memgauge::fuzzing::command();
    let mut files = BTreeMap::new();
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let mut script = Vec::new();
        generate(shell, &mut command, "memgauge", &mut script);
        files.insert(Path::new(FOLDERS[1]).join(shell.file_name("memgauge")), script);
    }
    // 'memgauge help latency' is not a command of its own, so it gets no page.
    let mut command = memgauge::fuzzing::command().disable_help_subcommand(true);
    command.build();
    pages(&command, &mut files)?;
    Ok(files)
}

/// The page of a command and those of its commands.
fn pages(command: &Command, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    let man = Man::new(command.clone()).source(concat!("memgauge ", env!("CARGO_PKG_VERSION"))).manual("memgauge");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    name_and_synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let notes = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    sections(&notes).to_writer(&mut page)?;
    files.insert(Path::new(FOLDERS[0]).join(man.get_filename()), page);
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| pages(command, files))
}

/// The name with one short line, which apropos lists, and the usage, which names no option that the next section explains.
fn name_and_synopsis(command: &Command) -> Roff {
    let mut roff = Roff::default();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {}", first_clause(&about)))]);
    let usage = command.clone().render_usage().to_string();
    roff.control("SH", ["SYNOPSIS"]);
    let lines = usage.strip_prefix("Usage: ").unwrap_or(&usage).lines().map(str::trim).filter(|line| !line.is_empty());
    for (i, line) in lines.enumerate() {
        if i > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line)]);
    }
    roff
}

/// A description up to the end of its first clause.
fn first_clause(about: &str) -> &str {
    let end = [". ", ": ", "; ", ", "].iter().filter_map(|end| about.find(end)).min().unwrap_or(about.len());
    about[..end].trim_end_matches('.')
}

/// The text below the options: the text under a heading becomes a section, and indented lines stay lines. clap_mangen fills all of it.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::default();
    let (mut in_section, mut in_lines, mut new_paragraph) = (false, false, false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indented = line.starts_with(' ');
        let next_indented = lines.peek().is_some_and(|next| next.starts_with(' '));
        // A blank line between lines is one of them.
        if in_lines && !indented && !(line.is_empty() && next_indented) {
            roff.control("fi", []);
            roff.control("RE", []);
            in_lines = false;
        }
        match line.strip_suffix(':').filter(|heading| next_indented && !heading.contains([' ', ',']) || *heading == "Exit status") {
            Some(heading) => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                (in_section, new_paragraph) = (true, false);
                continue;
            }
            None if !in_section => {
                roff.control("SH", ["NOTES"]);
                in_section = true;
            }
            None => {}
        }
        if line.is_empty() && !in_lines {
            new_paragraph = true;
            continue;
        }
        if std::mem::take(&mut new_paragraph) {
            roff.control("PP", []);
        }
        if indented && !in_lines {
            roff.control("RS", ["4"]);
            roff.control("nf", []);
            in_lines = true;
        }
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    if in_lines {
        roff.control("fi", []);
        roff.control("RE", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    #![allow(clippy::print_stderr, reason = "a test that is skipped prints why")]
    use memgauge_testing::{not_tested, not_tested_in_part};
    use std::process::Command;

    use super::*;

    #[test]
    fn files_are_what_the_command_line_says() {
        super::docs(true).unwrap();
    }

    #[test]
    fn every_command_has_a_page_and_lines_of_examples_stay_lines() {
        let files = files().unwrap();
        let page = |name: &str| String::from_utf8(files[&Path::new("man").join(name)].clone()).unwrap();
        for command in memgauge::fuzzing::command().get_subcommands() {
            assert!(page(&format!("memgauge-{}.1", command.get_name())).contains(".SH SYNOPSIS"), "{}", command.get_name());
        }
        assert!(page("memgauge-prefetch-compare.1").contains("prefetch"));
        let latency = page("memgauge-latency.1");
        assert!(latency.contains(".SH SYNOPSIS\nmemgauge latency [OPTIONS]\n"), "{latency}");
        for (path, text) in files.iter().filter(|(path, _)| path.starts_with("man")) {
            let text = String::from_utf8_lossy(text);
            let line = text.split(".SH NAME\n").nth(1).unwrap().lines().next().unwrap();
            assert!(line.chars().count() < 90 && line.contains(" \\- "), "apropos lists one short line: {}: {line}", path.display());
        }
        let page = page("memgauge.1");
        assert!(page.contains(".SH EXAMPLES\n.RS 4\n.nf\nmemgauge  "), "{page}");
        assert!(page.contains(".SH \"EXIT STATUS\"\n.RS 4\n.nf\n0    measured\n"), "{page}");
        assert!(page.contains(".fi\n.RE\nquick, compare, stamp, where, advise, count, stream"), "text after lines is filled again: {page}");
        let text = |text: &str| sections(text).to_roff();
        assert!(
            text("One.\n\nTwo: three,\n  a\n\n  b\nFour.")
                .ends_with(".SH NOTES\nOne.\n.PP\nTwo: three,\n.RS 4\n.nf\na\n\nb\n.fi\n.RE\nFour.\n"),
            "{}",
            text("One.\n\nTwo: three,\n  a\n\n  b\nFour.")
        );
    }

    #[test]
    fn man_reads_every_page_without_a_warning() {
        if Command::new("man").arg("--version").output().is_err() {
            not_tested!("man pages: there is no man");
        }
        for path in files().unwrap().keys().filter(|path| path.starts_with("man")) {
            let page = project_folder().join("docs").join(path);
            let output =
                Command::new("man").args(["--warnings", "-E", "UTF-8", "-l", "-Z"]).arg(&page).env("LC_ALL", "C.UTF-8").output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{path:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// The completions that bash offers for the last of these words.
    fn offers(words: &[&str]) -> Vec<String> {
        let script = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                      _memgauge memgauge \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let completions = project_folder().join("docs/completions/memgauge.bash");
        let output =
            Command::new("bash").args(["-c", script, "bash"]).arg(completions).args(words).env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_completes_commands_options_and_values() {
        if Command::new("bash").arg("--version").output().is_err() {
            not_tested!("completions of bash: there is no bash");
        }
        assert_eq!(offers(&["memgauge", "lat"]), ["latency"]);
        assert_eq!(offers(&["memgauge", "latency", "--ord"]), ["--order"]);
        assert_eq!(offers(&["memgauge", "latency", "--order", "seq"]), ["sequential"]);
        assert_eq!(offers(&["memgauge", "render", "--format", ""]), ["text", "json", "csv", "openmetrics", "html"]);
        assert_eq!(offers(&["memgauge", "prefetch", "comp"]), ["compare"]);
        for command in memgauge::fuzzing::command().get_subcommands() {
            assert!(offers(&["memgauge", ""]).contains(&command.get_name().to_owned()), "{}", command.get_name());
        }
    }

    #[test]
    fn zsh_and_fish_take_their_completions() {
        for (shell, file) in [("zsh", "_memgauge"), ("fish", "memgauge.fish")] {
            let path = project_folder().join("docs/completions").join(file);
            match Command::new(shell).arg("-n").arg(path).output() {
                Err(_) => not_tested_in_part!("completions of {shell}: there is no {shell}"),
                Ok(output) => assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr)),
            }
        }
    }
}
