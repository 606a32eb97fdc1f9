//! Where results go, and what they say about the host.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args};
use memgauge_model::experiment::Experiment;
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::Report;
use memgauge_render::{Document, FigureOptions, FigureWidth, Format};

use crate::exit::UsageError;
use crate::host::{HostIdentity, Label};

/// How figures are drawn.
#[derive(Debug, Args, Default)]
pub(crate) struct FigureArgs {
    /// Draw only this panel; may be repeated
    #[arg(long = "panel", value_name = "NAME", value_parser = panel_name(), help_heading = "Figures")]
    panels: Vec<PanelName>,
    /// Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices
    #[arg(long, value_name = "WIDTH", help_heading = "Figures")]
    figure_width: Option<FigureWidth>,
    /// Leave out titles, explanations and the line about the machine, for a document that has its own
    #[arg(long, help_heading = "Figures")]
    no_title: bool,
}

/// The names of panels, which help and errors list.
fn panel_name() -> impl TypedValueParser<Value = PanelName> {
    PossibleValuesParser::new(PanelName::all().into_iter().map(PanelName::name)).try_map(|name| name.parse::<PanelName>())
}

impl FigureArgs {
    pub(crate) fn options(&self) -> FigureOptions {
        FigureOptions { panels: self.panels.clone(), width: self.figure_width, titles: !self.no_title }
    }

    /// Checks the options for a figure of one kind, which no panel is chosen of.
    ///
    /// # Errors
    /// When a panel is named, or there is no figure for the options.
    pub(crate) fn check_one(&self, files: &[PathBuf]) -> Result<(), UsageError> {
        if !self.panels.is_empty() {
            return Err(UsageError("this figure has panels of one kind, and they are drawn together; leave --panel out".to_owned()));
        }
        self.given().filter(|_| figure_file(files).is_none()).map_or(Ok(()), needs_a_figure)
    }

    /// The first option that was given, for a message that there is no figure.
    fn given(&self) -> Option<&'static str> {
        let given = [(!self.panels.is_empty(), "--panel"), (self.figure_width.is_some(), "--figure-width"), (self.no_title, "--no-title")];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }
}

/// The first file that gets a figure.
fn figure_file(files: &[PathBuf]) -> Option<&PathBuf> {
    files.iter().find(|path| Format::for_path(path, Report::FORMATS).is_some_and(Format::is_figure))
}

/// The refusal of an option for figures.
fn needs_a_figure(option: &'static str) -> Result<(), UsageError> {
    Err(UsageError(format!("{option} needs a figure; add -o FILE.svg, FILE.png or FILE.pdf")))
}

/// Puts the panels of a command's experiments into the help, instead of all that there are.
pub(crate) fn panels(option: Arg, experiments: &[Experiment]) -> Arg {
    only_panels(option, &PanelName::of_experiments(experiments.iter().copied()))
}

/// Puts these panels into the help, instead of all that there are.
pub(crate) fn only_panels(option: Arg, names: &[PanelName]) -> Arg {
    let names = PanelName::list(names);
    let (which, repeated) = if names.contains(',') { ("one of these panels", "; may be repeated") } else { ("this panel", "") };
    option.help(format!("Draw only {which}: {names}{repeated}")).hide_possible_values(true)
}

/// Takes figures and evidence out of the help of a command that measures nothing.
pub(crate) fn text_only(option: Arg) -> Arg {
    let hidden = option.is_hide_set() || option.get_id() == "verbose";
    without_figures(option.hide(hidden))
}

/// Takes figures out of the help of a command whose results have none.
pub(crate) fn without_figures(option: Arg) -> Arg {
    let hidden = option.is_hide_set() || option.get_help_heading() == Some("Figures");
    let without: Vec<Format> = Report::FORMATS.iter().copied().filter(|format| !format.is_figure()).collect();
    if option.get_id() == "output" { option.help(files_help(&without)) } else { option.hide(hidden) }
}

/// The names of the formats of a document that go to standard output.
pub(crate) fn format_name(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let names = formats.iter().filter(|format| !format.is_figure()).map(|format| format.name());
    PossibleValuesParser::new(names.collect::<Vec<_>>())
        .try_map(|name| Format::by_name(&name, formats).ok_or_else(|| format!("no format has the name {name}")))
}

/// The help of `--output` for files in these formats.
fn files_help(formats: &[Format]) -> String {
    format!("Also write to FILE; its ending chooses the format: {}; may be repeated", Format::described_endings(formats))
}

/// Makes `--format` and the help of `--output` those of a document; for `mut_args`, which keeps the order of help.
pub(crate) fn shows<D: Document + ?Sized>(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "format" => option.value_parser(format_name(D::FORMATS)).help("Format of standard output"),
        "output" => option.help(files_help(D::FORMATS)),
        _ => option,
    }
}

/// Where a document goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Destination {
    /// Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe
    #[arg(long, default_value = "text", value_parser = format_name(Report::FORMATS))]
    pub(crate) format: Format,
    #[arg(short, long, value_name = "FILE", help = files_help(Report::FORMATS))]
    pub(crate) output: Vec<PathBuf>,
    /// Print only the verdict or headline, in one line, and show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Destination {
    /// Whether anything goes to standard output: of a quiet run whose result is in a file, the line of text.
    pub(crate) fn prints(&self) -> bool {
        !self.quiet || self.output.is_empty() || self.format == Format::TEXT
    }

    /// Whether standard output gets a line only, and files the document.
    pub(crate) fn is_one_line(&self) -> bool {
        self.quiet && !self.output.is_empty() && self.format == Format::TEXT
    }
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    #[command(flatten)]
    pub(crate) to: Destination,
    /// Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) figure: FigureArgs,
}

impl Output {
    /// Whether a figure of this panel alone, or of some panels with it, is asked for.
    pub(crate) fn asks_for(&self, panel: PanelName) -> bool {
        self.figure.panels.contains(&panel)
    }

    /// Checks, before anything is measured, that figures are asked for where they can be drawn: `drawn` are the panels that the result may
    /// have, and `instead` says what to do where there are none.
    ///
    /// # Errors
    /// For a figure of a result that has no panel, a panel that the result will not have, and an option for figures without a figure.
    pub(crate) fn check_figures(&self, drawn: &[PanelName], instead: &str) -> Result<(), UsageError> {
        match (figure_file(&self.to.output), self.figure.given()) {
            (Some(path), _) if drawn.is_empty() => Err(UsageError::file(path, format!("there is nothing to draw; {instead}"))),
            (None, Some(option)) if drawn.is_empty() => {
                Err(UsageError(format!("{option} is for figures, and there is nothing to draw; {instead}")))
            }
            (None, Some(option)) => needs_a_figure(option),
            _ => match self.figure.panels.iter().find(|panel| !drawn.contains(panel)) {
                Some(panel) => Err(UsageError(format!("this measurement has no panel '{panel}'; it can have: {}", PanelName::list(drawn)))),
                None => Ok(()),
            },
        }
    }
}

/// What every command takes that makes a new result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportOptions {
    #[command(flatten)]
    pub(crate) output: Output,
    /// Add a label of your own to the result, such as rack=12; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<Label>,
    /// Leave the hostname, the hashed machine ID and the names of other processes out of the result
    #[arg(long)]
    no_host_identity: bool,
}

impl ReportOptions {
    /// What the result says about the host.
    ///
    /// # Errors
    /// When a label occurs twice, or there are too many.
    pub(crate) fn identity(&self) -> Result<HostIdentity, UsageError> {
        HostIdentity::new(self.no_host_identity, self.labels.clone())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        output: Output,
    }

    /// What the check of these options says.
    fn check(line: &str, drawn: &[PanelName]) -> Result<(), String> {
        let line = Line::try_parse_from(["memgauge"].into_iter().chain(line.split_whitespace())).map_err(|e| e.to_string())?;
        line.output.check_figures(drawn, "do this instead").map_err(|e| e.to_string())
    }

    #[test]
    fn help_lists_the_panels_of_a_command_only() {
        let help = |experiments: &[Experiment]| panels(Arg::new("panels"), experiments).get_help().unwrap().to_string();
        assert_eq!(help(&[Experiment::LoadedLatency]), "Draw only one of these panels: loaded-latency, distribution; may be repeated");
        assert_eq!(help(&[Experiment::MemoryScan]), "Draw only this panel: regions");
    }

    #[test]
    fn figures_that_cannot_be_drawn_are_refused_before_anything_is_measured() {
        let drawn = [Experiment::IdleLatency.row().panels[0], PanelName::DISTRIBUTION];
        assert_eq!(check("-o a.json -o a.pdf --panel idle-latency --figure-width 85mm --no-title", &drawn), Ok(()));
        assert_eq!(check("-o a.json", &[]), Ok(()));
        let why = |line: &str, drawn: &[PanelName]| check(line, drawn).unwrap_err();
        assert_eq!(why("-o a.PNG", &[]), "a.PNG: there is nothing to draw; do this instead");
        assert_eq!(
            why("-o a.svg --panel regions", &drawn),
            "this measurement has no panel 'regions'; it can have: idle-latency, distribution"
        );
        for option in ["--panel idle-latency", "--figure-width 9cm", "--no-title"] {
            let name = option.split(' ').next().unwrap();
            assert_eq!(
                why(&format!("-o a.json {option}"), &drawn),
                format!("{name} needs a figure; add -o FILE.svg, FILE.png or FILE.pdf")
            );
        }
        let unknown = why("-o a.svg --panel latency", &drawn);
        assert!(unknown.contains("'latency'") && unknown.contains("idle-latency, latency-by-cpu"), "{unknown}");
        assert!(why("-o a.svg --figure-width 85", &drawn).contains("a width has a unit: 85mm, 8.5cm, 3.3in or 800px"));
    }
}
