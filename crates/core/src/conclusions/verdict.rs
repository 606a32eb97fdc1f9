//! How a bandwidth compares with the limit of the memory.

use crate::conclusions::judge::CLOCK_TOLERANCE;
use crate::estimate::Estimate;
use crate::experiment::Metric;
use crate::result::{LimitShare, LimitSource, Verdict, VerdictReason, VerdictStatus};

/// The shares of the limit from which a bandwidth is good, or only low.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// From this share on it is good.
    ok: f64,
    /// From this share on it is low; below it, far too low.
    low: f64,
    /// The reasons for a low and for a far too low bandwidth.
    reasons: (VerdictReason, VerdictReason),
}

impl Band {
    /// Loads only. Published systems reach 70 to 90 % of the theoretical peak with reads, most of them above 80 %.
    pub const READS: Self = Self { ok: 0.80, low: 0.70, reasons: (VerdictReason::Below80Percent, VerdictReason::Below70Percent) };
    /// Loads and stores: turning the bus around costs published DDR systems 4 to 12 points.
    pub const MIXED: Self = Self { ok: 0.68, low: 0.58, reasons: (VerdictReason::Below68Percent, VerdictReason::Below58Percent) };
}

/// The most that a memory can transfer, and who states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// In 10^9 bytes a second.
    pub gbs: f64,
    /// Who states it.
    pub source: LimitSource,
    /// The part of the machine that it is for, when the machine's limit was divided evenly among nodes.
    pub share: Option<LimitShare>,
    /// Whether it rests on something that nobody states, or on a claim that is often wrong. A bandwidth far below it is then no failure.
    pub doubtful: bool,
    /// Whether there are published figures for how much of such a limit CPUs reach.
    pub has_band: bool,
}

/// What a verdict takes into account.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictInput {
    /// What is compared with the limit: bytes that crossed the bus, where they are known.
    pub value: Option<f64>,
    /// The limit; `None` where it is not known.
    pub limit: Option<Limit>,
    /// The shares of it that are expected, or why there are none.
    pub band: Result<Band, VerdictReason>,
    /// Whether a far too low bandwidth is a failure. It is a warning if something other than the machine may be the cause.
    pub may_fail: bool,
}

/// The verdict before a limit is known: `limit-unknown`, `not-measured`, or `not-judged` for latencies, because there is no published limit
/// for latencies.
pub fn unjudged(metric: Metric, estimate: &Estimate) -> Verdict {
    let reason = match (metric, estimate.value) {
        (_, None) => VerdictReason::NotMeasured,
        (Metric::Latency, _) => VerdictReason::NotJudged,
        (Metric::Bandwidth, _) => VerdictReason::LimitUnknown,
    };
    Verdict { reason, ..Verdict::default() }
}

/// Judges a bandwidth against the machine's limit.
///
/// Reasons: `within-limit` (ok), `below-80-percent` (warning), `below-70-percent` (failure, or warning where it may not be one), and with
/// stores `below-68-percent` and `below-58-percent`; unknown: `limit-unknown`, `not-measured`, `above-limit`, and the reason why there is
/// no band.
pub fn verdict(input: &VerdictInput) -> Verdict {
    use VerdictStatus as S;
    let limit = input.limit.as_ref().filter(|l| l.gbs.is_finite() && l.gbs > 0.0);
    let (status, reason) = match (input.value, limit, input.band) {
        (None, ..) => (S::Unknown, VerdictReason::NotMeasured),
        (Some(value), Some(limit), _) if value / limit.gbs > CLOCK_TOLERANCE => (S::Unknown, VerdictReason::AboveLimit),
        (_, _, Err(word)) => (S::Unknown, word),
        (_, None, _) => (S::Unknown, VerdictReason::LimitUnknown),
        (Some(value), Some(limit), Ok(band)) => match value / limit.gbs {
            share if share >= band.ok => (S::Ok, VerdictReason::WithinLimit),
            share if share >= band.low => (S::Warning, band.reasons.0),
            _ if input.may_fail => (S::Failure, band.reasons.1),
            _ => (S::Warning, band.reasons.1),
        },
    };
    Verdict { status, reason, limit: limit.map(|l| l.gbs), limit_source: limit.map(|l| l.source), limit_share: limit.and_then(|l| l.share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Estimate {
        Estimate { value: Some(90.0), ..Estimate::default() }
    }

    fn input(value: f64, limit: f64) -> VerdictInput {
        let limit = Some(Limit { gbs: limit, source: LimitSource::User, share: None, doubtful: false, has_band: true });
        VerdictInput { value: Some(value), limit, band: Ok(Band::READS), may_fail: true }
    }

    #[test]
    fn bandwidth_is_judged_by_its_share_of_the_limit() {
        let judge = |value, limit| {
            let verdict = verdict(&input(value, limit));
            (verdict.status, verdict.reason)
        };
        for (value, status, reason) in [
            (103.0, VerdictStatus::Unknown, VerdictReason::AboveLimit),
            (101.0, VerdictStatus::Ok, VerdictReason::WithinLimit),
            (80.0, VerdictStatus::Ok, VerdictReason::WithinLimit),
            (79.9, VerdictStatus::Warning, VerdictReason::Below80Percent),
            (70.0, VerdictStatus::Warning, VerdictReason::Below80Percent),
            (69.9, VerdictStatus::Failure, VerdictReason::Below70Percent),
        ] {
            assert_eq!(judge(value, 100.0), (status, reason), "{value}");
        }
        assert_eq!(judge(80.0, f64::NAN).1, VerdictReason::LimitUnknown);
        assert_eq!(judge(80.0, 0.0).1, VerdictReason::LimitUnknown);
    }

    #[test]
    fn stores_cost_points_and_doubts_make_warnings() {
        let mixed = |value| verdict(&VerdictInput { band: Ok(Band::MIXED), ..input(value, 100.0) });
        assert_eq!(mixed(69.0).status, VerdictStatus::Ok);
        assert_eq!((mixed(60.0).status, mixed(60.0).reason), (VerdictStatus::Warning, VerdictReason::Below68Percent));
        assert_eq!(mixed(50.0).status, VerdictStatus::Failure);
        let doubtful = verdict(&VerdictInput { may_fail: false, ..input(20.0, 100.0) });
        assert_eq!((doubtful.status, doubtful.reason), (VerdictStatus::Warning, VerdictReason::Below70Percent));
    }

    #[test]
    fn what_cannot_be_judged_says_why() {
        let none = verdict(&VerdictInput { band: Err(VerdictReason::NotAllCores), ..input(20.0, 100.0) });
        assert_eq!((none.status, none.reason), (VerdictStatus::Unknown, VerdictReason::NotAllCores));
        assert_eq!((none.limit, none.limit_source), (Some(100.0), Some(LimitSource::User)));
        assert_eq!(
            verdict(&VerdictInput { band: Err(VerdictReason::NotAllCores), ..input(120.0, 100.0) }).reason,
            VerdictReason::AboveLimit
        );
        assert_eq!(verdict(&VerdictInput { limit: None, ..input(20.0, 100.0) }).reason, VerdictReason::LimitUnknown);
        assert_eq!(verdict(&VerdictInput { value: None, ..input(20.0, 100.0) }).reason, VerdictReason::NotMeasured);
        assert_eq!(unjudged(Metric::Latency, &measured()).reason, VerdictReason::NotJudged);
        assert_eq!(unjudged(Metric::Bandwidth, &measured()).reason, VerdictReason::LimitUnknown);
        assert_eq!(unjudged(Metric::Bandwidth, &Estimate::default()).reason, VerdictReason::NotMeasured);
    }
}
