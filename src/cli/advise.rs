//! `memgauge advise`: which results, and which models.

use std::path::PathBuf;

use clap::Args;
use memgauge_analysis::advice::{Advice, Model};
use memgauge_model::units::{Bytes, ParseError};

use super::output::{Destination, shows};
use super::values::parse_above_0;
use crate::exit::UsageError;

const AFTER_HELP: &str = "\
A number counts if it is reliable, has an interval, and is of memory, not of a cache. What the results do not tell is listed, with the \
command that measures it.

Tokens a second are read bandwidth over the bytes that are read for each token: all weights of a dense model. That is a ceiling.

Examples:
  memgauge advise result.json
  memgauge advise result.json ramp.json
  memgauge advise result.json --model-bytes 8G,40G
  memgauge advise result.json --model llama-8b-q8=8540MB --format json
  memgauge advise result.json --model-bytes 39G --tokens-per-second 6.1

Exit status:
  0    there is advice
  4    no number carries advice
  64   wrong usage";

#[derive(Debug, Args)]
#[command(
    mut_args(shows::<Advice>),
    mut_arg("format", |arg| arg.help("Format of standard output; JSON has everything")),
    mut_arg("quiet", |arg| arg.help("Print only the answer, in one line")),
    after_help = AFTER_HELP
)]
pub(crate) struct AdviseArgs {
    /// Results of one machine that memgauge wrote as JSON, or folders of them; - is standard input
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// Bytes that a model reads for each token, such as 8G or 8.5GB; separated by commas
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_bytes)]
    model_bytes: Vec<Bytes>,
    /// A model with its name and the bytes that it reads for each token; may be repeated
    #[arg(long = "model", value_name = "NAME=SIZE", value_parser = parse_model)]
    models: Vec<Model>,
    /// Tokens a second that you see of one model while it decodes one sequence; says what could explain the difference from the ceiling
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    tokens_per_second: Option<f64>,
    #[command(flatten)]
    pub(crate) to: Destination,
}

impl AdviseArgs {
    /// The tokens a second that are seen.
    ///
    /// # Errors
    /// When they are given without exactly one model.
    pub(crate) fn seen_tokens_per_s(&self) -> Result<Option<f64>, UsageError> {
        match (self.tokens_per_second, self.models().len()) {
            (Some(_), 0) => {
                Err(UsageError("--tokens-per-second needs the size of the model that decodes; add --model-bytes SIZE".to_owned()))
            }
            (Some(_), models) if models > 1 => {
                Err(UsageError(format!("--tokens-per-second is the rate of one model, and {models} are given; name only that one")))
            }
            (rate, _) => Ok(rate),
        }
    }

    /// The models, those with names first.
    pub(crate) fn models(&self) -> Vec<Model> {
        let unnamed = self.model_bytes.iter().map(|bytes| Model { name: None, bytes: *bytes });
        self.models.iter().cloned().chain(unnamed).collect()
    }
}

const SIZE: &str = "a model's size in bytes, such as 8G, 4.7GB or 4700000000, and at least 1 MiB";
/// No model is smaller: `8B` is meant to be eight billion parameters, and is eight bytes.
const LEAST: Bytes = Bytes::mib(1);

fn parse_bytes(text: &str) -> Result<Bytes, ParseError> {
    let bytes = text.parse::<Bytes>().ok().filter(|bytes| *bytes >= LEAST);
    bytes.ok_or_else(|| ParseError { input: text.into(), expected: SIZE })
}

fn parse_rate(text: &str) -> Result<f64, ParseError> {
    parse_above_0(text, "a number of tokens a second, such as 6.1")
}

fn parse_model(text: &str) -> Result<Model, ParseError> {
    let fail = || ParseError { input: text.into(), expected: "a name and a size of at least 1 MiB, such as llama-8b=8G" };
    let (name, bytes) = text.rsplit_once('=').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(fail)?;
    Ok(Model { name: Some(name.trim().to_owned()), bytes: parse_bytes(bytes).map_err(|_| fail())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_model_is_of_a_few_bytes() {
        let model = parse_model("a=b=8G").unwrap();
        assert_eq!((model.name.as_deref(), model.bytes), (Some("a=b"), Bytes::gib(8)));
        assert_eq!(parse_bytes("40GB").unwrap(), Bytes(40_000_000_000));
        for bad in ["=8G", "x", "x=", "x=0", "x=-1", "x=8B", " =8G"] {
            assert!(parse_model(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_rate("6.1").unwrap(), 6.1);
        for bad in ["0", "-1", "inf", "NaN", "6,1", "", "6.1/s"] {
            assert!(parse_rate(bad).unwrap_err().to_string().contains("tokens a second"), "{bad}");
        }
        assert!(parse_bytes("0").unwrap_err().to_string().contains("at least 1 MiB"));
    }
}
