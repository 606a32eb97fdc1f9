use super::*;

fn measured() -> Estimate {
    Estimate { value: Some(90.0), ..Estimate::default() }
}

fn limit(gbs: f64) -> Limit {
    Limit { gbs, source: LimitSource::User, share: None, doubtful: false, has_band: true }
}

#[test]
fn bandwidth_is_judged_by_its_share_of_the_limit() {
    let judge = |value, limit| {
        let verdict = verdict(Some(value), Some(&self::limit(limit)), Ok(Band::READS), true);
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
    let mixed = |value| verdict(Some(value), Some(&limit(100.0)), Ok(Band::MIXED), true);
    assert_eq!(mixed(69.0).status, VerdictStatus::Ok);
    assert_eq!((mixed(60.0).status, mixed(60.0).reason), (VerdictStatus::Warning, VerdictReason::Below68Percent));
    assert_eq!(mixed(50.0).status, VerdictStatus::Failure);
    let doubtful = verdict(Some(20.0), Some(&limit(100.0)), Ok(Band::READS), false);
    assert_eq!((doubtful.status, doubtful.reason), (VerdictStatus::Warning, VerdictReason::Below70Percent));
}

#[test]
fn what_cannot_be_judged_says_why() {
    let partly = |value| verdict(Some(value), Some(&limit(100.0)), Err(VerdictReason::NotAllCores), true);
    let none = partly(20.0);
    assert_eq!((none.status, none.reason), (VerdictStatus::Unknown, VerdictReason::NotAllCores));
    assert_eq!((none.limit, none.limit_source), (Some(100.0), Some(LimitSource::User)));
    assert_eq!(partly(120.0).reason, VerdictReason::AboveLimit);
    assert_eq!(verdict(Some(20.0), None, Ok(Band::READS), true).reason, VerdictReason::LimitUnknown);
    assert_eq!(verdict(None, Some(&limit(100.0)), Ok(Band::READS), true).reason, VerdictReason::NotMeasured);
    assert_eq!(unjudged(Metric::Latency, &measured()).reason, VerdictReason::NotJudged);
    assert_eq!(unjudged(Metric::Bandwidth, &measured()).reason, VerdictReason::LimitUnknown);
    assert_eq!(unjudged(Metric::Bandwidth, &Estimate::default()).reason, VerdictReason::NotMeasured);
}
