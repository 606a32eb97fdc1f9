//! A cause with the evidence that is collected for and against it, and how much that counts.

use memgauge_model::result::{CauseCode, CauseEvidence, LikelyCause};
use memgauge_model::words::Ways;

/// Points of what shows the cause itself: the kernel counted it, firmware lists it, a setting says it and said something else before.
pub(super) const SHOWN: i32 = 4;
/// Points of a pattern of numbers that hardly anything else has.
pub(super) const TYPICAL: i32 = 2;
/// Points of what fits this cause and others.
pub(super) const FITS: i32 = 1;
/// Points of what should not be so if this were the cause.
pub(super) const UNLIKELY: i32 = -2;
/// Points of what excludes the cause.
pub(super) const EXCLUDED: i32 = -4;

/// What speaks against a cause that concerns the whole machine.
pub(super) const ONLY_SOME: &str = "other parts of the machine are as they should be";

/// A cause whose evidence is collected.
pub(super) struct Case {
    code: CauseCode,
    what: String,
    evidence: Vec<CauseEvidence>,
    check: Option<Ways>,
}

impl Case {
    pub(super) fn new(code: CauseCode, what: impl Into<String>, check: impl Into<Ways>) -> Self {
        Self { code, what: what.into(), evidence: Vec::new(), check: Some(check.into()) }
    }

    /// Adds evidence.
    pub(super) fn add(&mut self, points: i32, text: impl Into<String>) {
        self.evidence.push(CauseEvidence { points, text: text.into() });
    }

    /// Adds evidence if this is so.
    pub(super) fn add_if(&mut self, so: bool, points: i32, text: impl Into<String>) {
        if so {
            self.add(points, text);
        }
    }

    /// Whether more speaks for it than against it.
    pub(super) fn is_likely(&self) -> bool {
        self.evidence.iter().map(|e| e.points).sum::<i32>() > 0
    }

    /// The cause; `None` where nothing speaks for it, or more against it.
    pub(super) fn weigh(mut self) -> Option<LikelyCause> {
        let (likely, points) = (self.is_likely(), self.evidence.iter().map(|e| e.points).sum());
        self.evidence.sort_by_key(|e| std::cmp::Reverse(e.points.abs()));
        likely.then(|| LikelyCause { code: self.code.into(), what: self.what, points, evidence: self.evidence, check: self.check })
    }
}
