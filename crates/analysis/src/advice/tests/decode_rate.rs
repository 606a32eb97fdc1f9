//! Tokens a second that are seen, beside their ceiling.

use super::*;

/// Both nodes' CPUs, one node's from its own and from the other one, fewer threads, base pages, random lines, and prefetchers off on one CPU.
fn read_in_many_ways() -> Vec<Measurement> {
    let of = |experiment, m: Measurement| Measurement { experiment, ..m };
    let matrix = |memory, gbs| {
        let mut m = of(Experiment::BandwidthMatrix, bandwidth("0-1", Some(memory), Mix::AllReads, gbs, None));
        m.at.cpu_node = Some(0);
        m
    };
    let ramp = |cpus, gbs| of(Experiment::BandwidthRamp, bandwidth(cpus, None, Mix::AllReads, gbs, None));
    let mut base = bandwidth("0-3", None, Mix::AllReads, 110.0, None);
    base.evidence.pages.obtained = Some(PageKind::Base);
    let mut random = bandwidth("0-3", None, Mix::AllReads, 48.0, None);
    random.at.access = Some(memgauge_model::traffic::Access::Random);
    let prefetch = |state, gbs| {
        let mut m = of(Experiment::PrefetchComparison, bandwidth("0", Some(0), Mix::AllReads, gbs, None));
        m.at.prefetch = Some(state);
        m
    };
    vec![
        bandwidth("0-3", None, Mix::AllReads, 120.0, None),
        matrix(0, 62.0),
        matrix(1, 30.0),
        ramp("0", 20.0),
        ramp("0-2", 58.0),
        ramp("0-3", 119.0),
        base,
        random,
        prefetch(PrefetchRequest::On, 20.0),
        prefetch(PrefetchRequest::Off, 14.0),
    ]
}

/// What explains that a model of 10 GB decodes so many tokens a second.
fn explained(results: Vec<Measurement>, seen_tokens_per_s: f64) -> Recommendation {
    let model = Model { name: None, bytes: Bytes(10_000_000_000) };
    let advice = advise(&[("a.json", &report(machine(), results))], &[model], Some(seen_tokens_per_s));
    let first = advice.recommendations.into_iter().next().unwrap();
    assert!(matches!(first.action, Action::ExplainTokens { .. }), "{first:?}");
    first
}

fn causes(explained: &Recommendation) -> Vec<(Cause, Option<(Fit, f64)>)> {
    let Action::ExplainTokens { causes, .. } = &explained.action else { panic!("{explained:?}") };
    let rounded = |rate: CauseRate| (rate.fit, (rate.tokens_per_s * 100.0).round() / 100.0);
    causes.iter().map(|possible| (possible.cause.clone(), possible.rate.map(rounded))).collect()
}

#[test]
fn causes_whose_rates_fit_come_first() {
    let below = explained(read_in_many_ways(), 6.1);
    let Action::ExplainTokens { share, against: AgainstCeiling::Below, implied, ceiling, causes: possible, .. } = &below.action else {
        panic!("{below:?}")
    };
    assert_eq!((ceiling.tokens_per_s, share.value), (12.0, 6.1 / 12.0));
    assert!((implied.0 as f64 - 120e9 / 6.1).abs() < 1.0, "{implied}");
    let placed = |place| Cause::Placement { place: Some(place) };
    let left_out = |what| (Cause::LeftOut { what }, None);
    let expected = [
        (placed(WeightsPlace::OneNode { node: 0 }), Some((Fit::Fits, 6.2))),
        (Cause::FewerThreads { threads: IdSet::one(3) }, Some((Fit::Fits, 5.8))),
        left_out(LeftOut::KvCache),
        left_out(LeftOut::Compute),
        left_out(LeftOut::Synchronisation),
        (Cause::RandomAccess, Some((Fit::Slower, 4.8))),
        (placed(WeightsPlace::OtherNode { node: 1, cpu_node: 0 }), Some((Fit::Slower, 3.0))),
        (Cause::PrefetchersOff, Some((Fit::Faster, 8.4))),
        (Cause::BasePages, Some((Fit::Faster, 11.0))),
    ];
    assert_eq!(causes(&below), expected);
    let guessed = |cause: &PossibleCause| cause.rate.is_some_and(|rate| rate.guessed);
    assert!(possible.iter().all(|cause| guessed(cause) == (cause.cause == Cause::PrefetchersOff)), "one CPU read: {possible:?}");
    assert!(possible.iter().all(|cause| cause.rate.is_some() != cause.why.is_some()), "a rate or a reason: {possible:?}");
    assert_eq!((below.sureness, &below.doubts[..]), (Sureness::Likely, &[Doubt::NotMeasuredHere][..]));
    let roles: Vec<Role> = below.numbers.iter().map(|n| n.role).collect();
    let of_causes = [Role::NearestOnly, Role::Fewer, Role::RandomAccess, Role::Other, Role::PrefetchersOff, Role::BasePages];
    assert_eq!(roles, [&[Role::Highest][..], &of_causes].concat());
    // The edge is 10 %: 6.2 tokens a second are 9.9 % above 5.64, and 10.1 % above 5.63.
    for (seen, fit) in [(5.64, Fit::Fits), (5.63, Fit::Faster)] {
        let all = causes(&explained(read_in_many_ways(), seen));
        assert!(all.contains(&(placed(WeightsPlace::OneNode { node: 0 }), Some((fit, 6.2)))), "{seen}: {all:?}");
    }
}

#[test]
fn causes_that_were_not_measured_have_commands() {
    let commands = |results, seen| {
        let explained = explained(results, seen);
        let Action::ExplainTokens { causes, .. } = explained.action else { panic!() };
        causes
            .into_iter()
            .filter(|possible| !matches!(possible.cause, Cause::LeftOut { .. }))
            .filter_map(|possible| possible.command)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        commands(vec![bandwidth("0-3", None, Mix::AllReads, 120.0, None)], 6.1),
        [
            "memgauge bandwidth --ramp -o ramp.json",
            "memgauge bandwidth --matrix -o matrix.json",
            "memgauge bandwidth --pages 4k -o base.json",
            "memgauge bandwidth --access random -o random.json",
            "sudo memgauge prefetch compare -o prefetch.json"
        ]
    );
    // Between 1 thread and 3, one was not measured.
    assert_eq!(commands(read_in_many_ways(), 4.0), ["memgauge bandwidth --ramp 2 -o between.json"]);
    let all = causes(&explained(read_in_many_ways(), 4.0));
    let of = |n| all.iter().find(|(cause, _)| *cause == Cause::FewerThreads { threads: IdSet::one(n) }).map(|(_, rate)| *rate);
    assert_eq!([1, 2, 3].map(of), [Some(Some((Fit::Slower, 2.0))), Some(None), Some(Some((Fit::Faster, 5.8)))]);
    // Unreliable numbers are not compared.
    let mut disturbed = read_in_many_ways();
    disturbed.iter_mut().skip(1).for_each(unreliable);
    assert!(causes(&explained(disturbed, 6.1)).iter().all(|(_, rate)| rate.is_none()));
}

#[test]
fn more_than_the_ceiling_needs_fewer_bytes() {
    let one = || vec![bandwidth("0-3", None, Mix::AllReads, 120.0, None)];
    let above = explained(one(), 30.0);
    let Action::ExplainTokens { against: AgainstCeiling::Above, implied: Bytes(4_000_000_000), .. } = above.action else {
        panic!("{above:?}")
    };
    let left_out = |what| (Cause::LeftOut { what }, None);
    assert_eq!(causes(&above), [left_out(LeftOut::UnusedExperts), left_out(LeftOut::Batches)]);
    // Two caches of 16 MiB can hold what is not read of 100 MB, if that is 33 MB and not if it is 50.
    let small = |seen| {
        let model = Model { name: None, bytes: Bytes(100_000_000) };
        let advice = advise(&[("a.json", &report(machine(), one()))], &[model], Some(seen));
        causes(&advice.recommendations[0]).contains(&left_out(LeftOut::Caches))
    };
    assert_eq!([1_790.0, 2_400.0].map(small), [true, false]);
    // Up to the upper end of the interval, and 3 % above the ceiling, it is not more.
    for (seen, expected) in
        [(12.3, AgainstCeiling::At), (12.4, AgainstCeiling::Above), (10.9, AgainstCeiling::At), (10.7, AgainstCeiling::Below)]
    {
        let found = explained(one(), seen);
        let Action::ExplainTokens { against, causes, .. } = &found.action else { panic!() };
        assert_eq!((*against, causes.is_empty()), (expected, expected == AgainstCeiling::At), "{seen}");
    }
}

#[test]
fn a_part_of_the_machine_makes_the_ceiling_doubtful() {
    let one_node = explained(vec![bandwidth("0-1", Some(0), Mix::AllReads, 60.0, None)], 9.0);
    assert_eq!(one_node.doubts, [Doubt::NotMeasuredHere, Doubt::PartOfMachine { cores: 2, of: 4 }]);
    // A model that does not fit on one node has the ceiling of both, even if that is lower.
    let several = Measurement {
        experiment: Experiment::Interleave,
        at: Coordinates { memory: None, weights: Weights::equal([0, 1]), ..bandwidth("0-3", None, Mix::AllReads, 50.0, None).at },
        ..bandwidth("0-3", None, Mix::AllReads, 50.0, None)
    };
    let results = vec![bandwidth("0-1", Some(0), Mix::AllReads, 60.0, None), several];
    let model = Model { name: None, bytes: Bytes::gib(100) };
    let advice = advise(&[("a.json", &report(machine(), results))], &[model], Some(0.1));
    let Action::ExplainTokens { ceiling, .. } = &advice.recommendations[0].action else { panic!("{advice:?}") };
    assert!(ceiling.fits && ceiling.read_gbs == 50.0, "{ceiling:?}");
}
