//! The pages that backed the buffers, in words.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::result::{Measurement, PageKind};
use memgauge_model::units::Bytes;

use crate::number::{bounds, human, percent};

/// `4 KiB base pages`, `2 MiB transparent huge pages (64 %)`: in brackets the share of the buffer that they back.
pub(crate) fn pages(ms: &[&Measurement]) -> String {
    let mut kinds: BTreeMap<(PageKind, Option<Bytes>), Vec<f64>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for m in ms {
        let p = &m.evidence.pages;
        match p.obtained {
            Some(kind) => kinds.entry((kind, p.page)).or_default().extend(p.share.filter(|s| s.is_finite())),
            None => {
                unknown.insert(p.reason.as_deref().unwrap_or(""));
            }
        }
    }
    let mut texts: Vec<String> = kinds
        .into_iter()
        .map(|((kind, page), shares)| {
            let size = page.map(|p| format!("{} ", human(p))).unwrap_or_default();
            let name = format!("{size}{}", kind.in_words());
            match bounds(shares) {
                // Half a per cent is the tail of a buffer whose size is not a multiple of the page.
                Some((low, high)) if low < 0.995 => {
                    let (low, high) = (percent(low), percent(high));
                    if low == high { format!("{name} ({low})") } else { format!("{name} ({}–{high})", low.trim_end_matches(" %")) }
                }
                _ => name,
            }
        })
        .collect();
    texts.extend(
        unknown.into_iter().map(|why| if why.is_empty() { "page kind unknown".into() } else { format!("page kind unknown: {why}") }),
    );
    texts.join(" or ")
}
