//! The pages of several buffers as one evidence: a pool or free memory may serve some of them and run short for the others.

use std::collections::BTreeMap;

use memgauge_core::result::{PageEvidence, PageKind};
use memgauge_core::units::Bytes;

/// Pages of several buffers, each given with its size: the kind that backs most bytes, and its share of all.
pub(crate) fn combined_pages<'a>(buffers: impl IntoIterator<Item = (&'a PageEvidence, Bytes)>) -> PageEvidence {
    let buffers: Vec<(&PageEvidence, Bytes)> = buffers.into_iter().collect();
    let Some((first, _)) = buffers.first() else { return PageEvidence::default() };
    // One buffer that could not be read back leaves the kind of all unknown.
    if let Some((unknown, _)) = buffers.iter().find(|(pages, _)| pages.obtained.is_none()) {
        return (*unknown).clone();
    }
    let total: u64 = buffers.iter().map(|(_, bytes)| bytes.0).sum();
    let mut kinds: BTreeMap<(PageKind, Option<Bytes>), (f64, usize)> = BTreeMap::new();
    for (pages, bytes) in &buffers {
        let Some(kind) = pages.obtained else { continue };
        let total_of_kind = kinds.entry((kind, pages.page)).or_default();
        total_of_kind.0 += pages.share.unwrap_or(1.0) * bytes.0 as f64;
        total_of_kind.1 += 1;
    }
    let most = kinds.iter().max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    let Some((&(kind, page), &(backed, _))) = most else { return PageEvidence::default() };
    let mut reasons: Vec<String> = Vec::new();
    if kinds.len() > 1 {
        let list: Vec<String> = kinds.iter().map(|((kind, _), (_, count))| format!("{count} of {}", name(*kind))).collect();
        reasons.push(format!("the {} buffers are {}", buffers.len(), list.join(", ")));
    }
    for reason in buffers.iter().filter_map(|(pages, _)| pages.reason.as_ref()) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    PageEvidence {
        requested: first.requested,
        obtained: Some(kind),
        // Of pages of a device the share may not be known.
        share: buffers.iter().all(|(pages, _)| pages.share.is_some()).then_some(backed / total.max(1) as f64),
        page,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    }
}

fn name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Base => "base pages",
        PageKind::Thp => "transparent huge pages",
        PageKind::Pool => "pool pages",
        PageKind::File => "pages of files",
        PageKind::Dax => "pages of a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(kind: PageKind, share: f64) -> PageEvidence {
        PageEvidence { obtained: Some(kind), share: Some(share), page: Some(Bytes::mib(2)), ..PageEvidence::default() }
    }

    #[test]
    fn alike_stays_as_it_is() {
        let pool = pages(PageKind::Pool, 1.0);
        assert_eq!(combined_pages([(&pool, Bytes::mib(4)), (&pool, Bytes::mib(2))]), pool);
        assert_eq!(combined_pages([]), PageEvidence::default());
    }

    #[test]
    fn a_pool_that_served_some_is_not_claimed_for_all() {
        let (pool, thp) = (pages(PageKind::Pool, 1.0), pages(PageKind::Thp, 0.9));
        let mixed = combined_pages([(&pool, Bytes::mib(4)), (&thp, Bytes::mib(4)), (&thp, Bytes::mib(4))]);
        assert_eq!(mixed.obtained, Some(PageKind::Thp));
        assert!((mixed.share.unwrap() - 0.6).abs() < 1e-9, "{mixed:?}");
        assert_eq!(mixed.reason.as_deref(), Some("the 3 buffers are 2 of transparent huge pages, 1 of pool pages"));
    }

    #[test]
    fn a_share_that_is_not_known_stays_so() {
        let dax = PageEvidence { obtained: Some(PageKind::Dax), reason: Some("old kernel".into()), ..PageEvidence::default() };
        assert_eq!(combined_pages([(&dax, Bytes::mib(6)), (&dax, Bytes::mib(2))]), dax);
    }

    #[test]
    fn sizes_weigh() {
        let (pool, thp) = (pages(PageKind::Pool, 1.0), pages(PageKind::Thp, 1.0));
        let mixed = combined_pages([(&pool, Bytes::mib(6)), (&thp, Bytes::mib(2))]);
        assert_eq!((mixed.obtained, mixed.share), (Some(PageKind::Pool), Some(0.75)));
    }

    #[test]
    fn what_was_not_read_back_is_not_known() {
        let unknown = PageEvidence { reason: Some("smaps cannot be read".into()), ..PageEvidence::default() };
        assert_eq!(combined_pages([(&pages(PageKind::Thp, 1.0), Bytes(1)), (&unknown, Bytes(1))]), unknown);
    }
}
