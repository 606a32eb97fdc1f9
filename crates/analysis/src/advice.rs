//! Advice from results: how many threads to use, what bandwidth means in tokens a second, where to put threads and memory, which pages,
//! whether prefetchers help, how much load to allow.
//!
//! Each recommendation names the numbers that it rests on. A number counts if it is reliable, has an interval and is of memory, not of a
//! cache. A question that the results leave open is a gap, with the reason and, if measuring would close it, the command.

mod decode_rate;
mod document;
mod evidence;
mod load;
mod modes;
mod number;
mod pages;
mod placement;
mod prefetchers;
mod threads;
mod tokens;

#[cfg(test)]
mod tests;

use memgauge_model::result::Report;

pub use document::*;
use evidence::Results;

/// What results of one machine advise. Each has a name, such as its file's. `models` are the language models whose tokens a second are asked
/// for. `seen_tokens_per_s` is how many the user sees of the first model, if the difference from its ceiling is to be explained: finite, and more
/// than 0.
pub fn advise(results: &[(&str, &Report)], models: &[Model], seen_tokens_per_s: Option<f64>) -> Advice {
    let results = Results(results);
    let topics = [
        // It answers a question, so it comes first.
        decode_rate::explain(&results, models, seen_tokens_per_s),
        threads::threads(&results),
        tokens::tokens(&results, models),
        threads::second_threads(&results),
        load::below_the_knee(&results),
        placement::own_or_remote(&results),
        placement::interleaved(&results),
        modes::nodes_per_package(&results),
        pages::huge_pages(&results),
        prefetchers::on_or_off(&results),
    ];
    let mut advice = Advice { advice_version: ADVICE_VERSION, results: results.files(), ..Advice::default() };
    for topic in topics {
        advice.recommendations.extend(topic.recommendations);
        advice.gaps.extend(topic.gaps);
    }
    advice
}
