//! Counts that others recorded on real machines and published, with what they computed from them.

use crate::metrics::{CounterMetric, Inputs, Role};

/// A metric that somebody printed beside the counts that it was computed from.
struct Recorded {
    /// Repository, commit, file and lines; the machine as stated there.
    at: &'static str,
    metric: CounterMetric,
    counts: &'static [(Role, f64)],
    /// What a per-work metric was divided by.
    work: Option<f64>,
    /// From the metric to the number that was printed.
    shown: fn(f64) -> f64,
    /// That number, digit by digit.
    printed: &'static str,
}

fn record(
    at: &'static str,
    metric: CounterMetric,
    counts: &'static [(Role, f64)],
    shown: fn(f64) -> f64,
    printed: &'static str,
) -> Recorded {
    Recorded { at, metric, counts, work: None, shown, printed }
}

/// Counts of real machines, each with the metric that its authors computed and its digits as they stand there.
fn recorded() -> Vec<Recorded> {
    use CounterMetric as M;
    use Role as R;
    let as_is: fn(f64) -> f64 = |metric| metric;
    let percent: fn(f64) -> f64 = |metric| 100.0 * metric;
    // The complement: a hit ratio.
    let percent_of_hits: fn(f64) -> f64 = |metric| 100.0 * (1.0 - metric);
    // perf stat; cache-references and cache-misses are LONGEST_LAT_CACHE.REFERENCE and .MISS on this core.
    let broadwell = "xdp-project/xdp-paper f936bc8 benchmarks/bench01_baseline.org:603-615, Xeon E5-1650 v4";
    // perf stat, divided by a Python script that prints every digit of the double.
    let dcperf = "facebookresearch/DCPerf 7840c5c benchpress/plugins/hooks/perf_monitors/README.md:418-423, machine not stated";
    // perf stat; L1-dcache-loads, L1-dcache-load-misses.
    let cortex_a15 = "lgeek/arm_tlb_huge_pages 4005381 readme.md:233-245, Tegra K1 (Cortex-A15)";
    // wperf stat -m l1d_cache_miss_ratio; l1d_cache, l1d_cache_refill.
    let neoverse = "arm-developer-tools/windowsperf a357594 wperf/README.md:998-1001, a Neoverse core";
    // perf stat; cache-references and cache-misses are L1D_CACHE and L1D_CACHE_REFILL on Armv8.
    let graviton = "aws/aws-graviton-getting-started 83d74f4 Monitoring_Tools_on_Graviton.md:92-108, c6g.2xlarge";
    let espressobin = "xdp-project/xdp-project 539c25f areas/arm64/board_espressobin04_bench_xdp.org:26-117, Cortex-A53 at 1 GHz";
    let packets = "xdp-project/xdp-project 539c25f areas/arm64/board_espressobin08_bench_xdp.org:661-690, Cortex-A53 at 1 GHz";
    // l2_rqsts.references, l2_rqsts.miss, in thousands.
    let cpucache = "brendangregg/pmc-cloud-tools 5d4df1e README.md:107-113, machine not stated";
    vec![
        record(broadwell, M::Ipc, &[(R::Instructions, 5_865_630_935.0), (R::Cycles, 3_804_377_863.0)], as_is, "1.54"),
        record(broadwell, M::Ipc, &[(R::Instructions, 10_383_860_909.0), (R::Cycles, 3_728_030_288.0)], as_is, "2.79"),
        record(broadwell, M::LlcMissRate, &[(R::LlcMisses, 9_360_529.0), (R::LlcAccesses, 43_829_681.0)], percent, "21.357"),
        record(broadwell, M::LlcMissRate, &[(R::LlcMisses, 358_027.0), (R::LlcAccesses, 85_613_852.0)], percent, "0.418"),
        record(dcperf, M::Ipc, &[(R::Instructions, 13_716_216_038.0), (R::Cycles, 15_115_716_983.0)], as_is, "0.9074141870627799"),
        record(dcperf, M::Ipc, &[(R::Instructions, 29_256_517_993.0), (R::Cycles, 19_660_895_286.0)], as_is, "1.4880562440019092"),
        record(dcperf, M::Ipc, &[(R::Instructions, 32_848_219_325.0), (R::Cycles, 20_223_538_163.0)], as_is, "1.624256797215509"),
        record(dcperf, M::Ipc, &[(R::Instructions, 489_675_865_278.0), (R::Cycles, 198_481_557_389.0)], as_is, "2.467110152296388"),
        record(dcperf, M::Ipc, &[(R::Instructions, 33_494_396_030.0), (R::Cycles, 23_142_913_640.0)], as_is, "1.4472851841830578"),
        record(dcperf, M::Ipc, &[(R::Instructions, 26_418_532_092.0), (R::Cycles, 18_922_707_463.0)], as_is, "1.3961285478654022"),
        record(cortex_a15, M::L1MissRate, &[(R::L1Misses, 27_634_720.0), (R::L1Accesses, 1_000_893_472.0)], percent, "2.76"),
        record(cortex_a15, M::L1MissRate, &[(R::L1Misses, 1_000_103_661.0), (R::L1Accesses, 1_001_151_686.0)], percent, "99.90"),
        record(neoverse, M::L1MissRate, &[(R::L1Misses, 18_679_267.0), (R::L1Accesses, 3_429_392_628.0)], as_is, "0.005"),
        record(neoverse, M::L1MissRate, &[(R::L1Misses, 187_612.0), (R::L1Accesses, 6_098_497.0)], as_is, "0.031"),
        record(neoverse, M::L1MissRate, &[(R::L1Misses, 451_811.0), (R::L1Accesses, 32_578_964.0)], as_is, "0.014"),
        record(graviton, M::Ipc, &[(R::Instructions, 28_853_592.0), (R::Cycles, 25_115_021.0)], as_is, "1.15"),
        record(graviton, M::Ipc, &[(R::Instructions, 120_685_678.0), (R::Cycles, 161_469_308.0)], as_is, "0.75"),
        record(graviton, M::L1MissRate, &[(R::L1Misses, 2_001_520.0), (R::L1Accesses, 42_132_948.0)], percent, "4.750"),
        record(espressobin, M::Ipc, &[(R::Instructions, 324_082_590.0), (R::Cycles, 1_003_857_272.0)], as_is, "0.32"),
        record(espressobin, M::L1MissRate, &[(R::L1Misses, 2_112_043.0), (R::L1Accesses, 120_263_097.0)], percent, "1.76"),
        record(espressobin, M::L1MissRate, &[(R::L1Misses, 2_105_450.0), (R::L1Accesses, 120_754_222.0)], percent, "1.744"),
        record(espressobin, M::L1MissRate, &[(R::L1Misses, 950_486.0), (R::L1Accesses, 121_029_887.0)], percent, "0.79"),
        record(espressobin, M::L1MissRate, &[(R::L1Misses, 952_515.0), (R::L1Accesses, 121_039_240.0)], percent, "0.787"),
        record(packets, M::Ipc, &[(R::Instructions, 267_246_942.0), (R::Cycles, 1_004_416_732.0)], as_is, "0.27"),
        record(packets, M::L1MissRate, &[(R::L1Misses, 3_062_412.0), (R::L1Accesses, 95_235_780.0)], percent, "3.22"),
        // Per packet of 695,461, of one second.
        Recorded { work: Some(695_461.0), ..record(packets, M::InstructionsPerWork, &[(R::Instructions, 267_246_942.0)], as_is, "384") },
        record(cpucache, M::L2MissRate, &[(R::L2Misses, 78_908.0), (R::L2Accesses, 161_026.0)], percent_of_hits, "51.00"),
        record(cpucache, M::L2MissRate, &[(R::L2Misses, 82_497.0), (R::L2Accesses, 163_209.0)], percent_of_hits, "49.45"),
    ]
}

#[test]
fn recorded_counts_give_what_their_authors_computed() {
    for Recorded { at, metric, counts, work, shown, printed } in recorded() {
        let count = |role: Role| counts.iter().find(|(r, _)| *r == role).map(|(_, count)| *count).ok_or_else(|| format!("no {role}"));
        let got = metric.evaluate(&Inputs { count: &count, thread_s: 1.0, wall_s: 1.0, work }).unwrap();
        let decimals = printed.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        assert_eq!(format!("{:.decimals$}", shown(got)), printed, "{metric:?}: {at}");
    }
}
