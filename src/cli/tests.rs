//! Command lines, and what they ask for.

use std::time::Duration;

use clap::Parser;
use memgauge_model::experiment::PageRequest;
use memgauge_model::integrity::TestPattern;
use memgauge_model::spec::{BandwidthShape, LatencyShape, ScanSpec, Spec, Task, WidthRequest};
use memgauge_model::traffic::{Mix, Width};
use memgauge_model::units::{Bytes, IdSet};

use super::values::{parse_gbs, parse_percent};
use super::{Cli, Invocation};

/// What a line asks to measure.
pub(super) fn spec(line: &str) -> Spec {
    match Cli::try_parse_from(line.split(' ')).unwrap().invocation().unwrap() {
        // All runs have stamps.
        Invocation::Measure(request) if request.spec.stamp => Spec { stamp: false, ..request.spec },
        _ => panic!("{line} measures"),
    }
}

/// Why a line is refused.
pub(super) fn refused(line: &str) -> String {
    match Cli::try_parse_from(line.split(' ')).map(Cli::invocation) {
        Err(error) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Ok(Ok(_)) => panic!("{line} is accepted"),
    }
}

#[test]
fn the_definition_is_consistent() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn the_help_of_mixes_names_each() {
    use clap::CommandFactory;
    let cli = Cli::command();
    let commands = std::iter::once(&cli).chain(cli.get_subcommands());
    let options: Vec<_> = commands.flat_map(|command| command.get_arguments()).filter(|option| option.get_long() == Some("mix")).collect();
    assert!(options.len() > 3);
    for option in options {
        let help = option.get_help().unwrap().to_string();
        assert!(Mix::ALL.iter().all(|mix| help.contains(&format!(" {mix}"))), "{help}");
    }
}

/// The labels of OpenMetrics leave out options that say where a result goes, and keep those that say what is measured.
#[test]
fn options_of_output_are_those_that_the_labels_leave_out() {
    use clap::CommandFactory;
    use memgauge_model::result::OUTPUT_OPTIONS;
    let cli = Cli::command();
    let all = || std::iter::once(&cli).chain(cli.get_subcommands()).flat_map(clap::Command::get_arguments);
    let takes_value = |arg: &clap::Arg| arg.get_action().takes_values();
    let listed = |name: &str| OUTPUT_OPTIONS.iter().find(|(option, _)| *option == name);
    for arg in all() {
        let Some(name) = arg.get_long() else { continue };
        let heading = arg.get_help_heading().unwrap_or_default();
        match listed(name) {
            Some((_, value)) => assert_eq!(*value, takes_value(arg), "--{name}"),
            None => assert!(!["Output", "Figures", "Scheduled checks"].contains(&heading), "--{name} is of output"),
        }
        assert!(!["Where", "Memory", "Traffic"].contains(&heading) || listed(name).is_none() || name == "limit", "--{name} is measured");
    }
    for (name, _) in OUTPUT_OPTIONS {
        assert!(all().any(|arg| arg.get_long() == Some(name)), "--{name}");
    }
}

#[test]
fn a_run_has_stamps_unless_they_are_refused() {
    let stamps = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().invocation().unwrap() {
        Invocation::Measure(request) => request.spec.stamp,
        _ => panic!("{line} measures"),
    };
    for command in ["memgauge", "memgauge latency", "memgauge quick", "memgauge scan", "memgauge prefetch compare"] {
        assert!(stamps(command) && !stamps(&format!("{command} --no-stamp")), "{command}");
    }
}

#[test]
fn no_command_is_the_suite() {
    assert_eq!(spec("memgauge"), Spec::new(Task::suite()));
}

#[test]
fn options_reach_the_spec() {
    let got = spec(
        "memgauge loaded --cpu 0-2,5 --node 1 --size 512M --pages 2m --mix all-reads,triad --mix 2:1 --width avx2 --delay 0,50 --confidence 0.5% --budget 3s --seed 7",
    );
    assert_eq!(got.cpus, Some("0-2,5".parse().unwrap()));
    assert_eq!(got.nodes, Some(IdSet::one(1)));
    assert_eq!(got.pages, PageRequest::Huge2M);
    assert_eq!(got.confidence, Some(0.005));
    assert_eq!(got.budget, Some(Duration::from_secs(3)));
    assert_eq!(got.seed, Some(7));
    let loaded = options!(got.task, Loaded);
    assert_eq!((loaded.chase.buffer, loaded.traffic.buffer), (Some(Bytes::mib(512)), Some(Bytes::mib(512))));
    assert_eq!(loaded.traffic.load.mixes, [Mix::AllReads, Mix::R2W1Nt, Mix::R2W1]);
    assert_eq!(loaded.traffic.load.width, WidthRequest::Is(Width::Avx2));
    assert_eq!(loaded.curve.delays, [0, 50]);
}

#[test]
fn a_limit_is_a_bandwidth() {
    assert_eq!(spec("memgauge bandwidth --limit 307.2").peak_gbs, Some(307.2));
    assert_eq!(spec("memgauge bandwidth").peak_gbs, None);
    for bad in ["0", "-1", "x", "inf", "nan"] {
        assert!(parse_gbs(bad).is_err(), "{bad}");
    }
}

#[test]
fn files_are_for_the_commands_that_can_use_them() {
    let directory = |line: &str| match Cli::try_parse_from(line.split(' ')).map(Cli::invocation) {
        Ok(Ok(Invocation::Measure(request))) => Some(request.memory_dir),
        _ => None,
    };
    for command in ["latency", "bandwidth", "loaded"] {
        assert_eq!(directory(&format!("memgauge {command} --memory-dir /mnt/a")), Some(Some("/mnt/a".into())));
        assert_eq!(directory(&format!("memgauge {command}")), Some(None));
        assert_eq!(directory(&format!("memgauge {command} --memory-dir /mnt/a --plan --machine /m")), None);
    }
    assert_eq!(directory("memgauge c2c --memory-dir /mnt/a"), None);
    assert_eq!(directory("memgauge --memory-dir /mnt/a"), None);
}

#[test]
fn shapes() {
    assert_eq!(spec("memgauge latency --matrix").task, Task::latency(LatencyShape::Matrix));
    assert_eq!(spec("memgauge latency --per-cpu").task, Task::latency(LatencyShape::PerCpu));
    let ramp = |options: &str| match options!(spec(&format!("memgauge bandwidth {options}")).task, Bandwidth).shape {
        BandwidthShape::Ramp(numbers) => numbers.to_string(),
        other => panic!("{options}: {other:?}"),
    };
    assert_eq!([ramp("--ramp"), ramp("--ramp --time 1s"), ramp("--ramp 1,2,4-10:2")], ["", "", "1-2,4,6,8,10"]);
    assert!(Cli::try_parse_from(["memgauge", "bandwidth", "--ramp", "4-1"]).is_err());
    assert_eq!(spec("memgauge c2c --matrix").task, Task::c2c(memgauge_model::spec::TransferShape::CpuMatrix));
    assert!(Cli::try_parse_from(["memgauge", "bandwidth", "--ramp", "--peak"]).is_err());
    // Those that measure without delays do not take them and forget them.
    for shape in ["--matrix", "--ramp", "--search"] {
        let refusal = Cli::try_parse_from(["memgauge", "bandwidth", shape, "--delay", "100"]).unwrap_err().to_string();
        assert!(refusal.contains(&format!("'{shape}")) && refusal.contains("cannot be used with '--delay"), "{refusal}");
    }
    assert_eq!(options!(spec("memgauge bandwidth --peak --delay 100").task, Bandwidth).delays, [100]);
}

#[test]
fn a_scan_says_how_much_and_how_often() {
    let got = spec(
        "memgauge scan --node 1 --cpu 0-3 --size 16G --region 256M --passes 3 --bucket 2.5 --integrity --patterns walking-ones,random --hold 2s --within 5m --pages 1g --seed 9",
    );
    assert_eq!((got.nodes, got.cpus), (Some(IdSet::one(1)), Some("0-3".parse().unwrap())));
    assert_eq!((got.pages, got.seed), (PageRequest::Huge1G, Some(9)));
    let scan = ScanSpec {
        memory: Some(Bytes::gib(16)),
        region: Some(Bytes::mib(256)),
        passes: Some(3),
        width: WidthRequest::Best,
        bucket_gbs: Some(2.5),
        integrity: true,
        patterns: vec![TestPattern::WalkingOnes, TestPattern::Random],
        hold: Some(Duration::from_secs(2)),
    };
    assert_eq!((got.task, got.within), (Task::Scan(scan), Some(Duration::from_secs(300))));
    assert_eq!(spec("memgauge scan"), Spec::new(Task::scan()));
    for bad in ["--passes 0", "--bucket 0", "--bucket nan", "--memory-dir /tmp", "--time 1s", "--hold 1s", "--integrity --patterns none"] {
        let line = format!("memgauge scan {bad}");
        assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{bad}");
    }
}

#[test]
fn checked_lines_are_held() {
    let held = |line: &str| options!(spec(line).task, Loaded).traffic.hold;
    assert_eq!(options!(spec("memgauge bandwidth --line check --hold 2s").task, Bandwidth).traffic.hold, Some(Duration::from_secs(2)));
    assert_eq!(held("memgauge loaded --line check --hold 300ms"), Some(Duration::from_millis(300)));
    assert_eq!(held("memgauge loaded --line check"), None);
}

#[test]
fn percentages() {
    assert_eq!(parse_percent("1%"), Ok(0.01));
    assert_eq!(parse_percent("0.02"), Ok(0.02));
    for bad in ["", "%", "0", "-1%", "60%", "x", "nan"] {
        assert!(parse_percent(bad).is_err(), "{bad}");
    }
}

#[test]
fn counters_are_for_the_commands_that_have_windows() {
    for command in ["latency", "bandwidth", "loaded", "sweep"] {
        assert!(spec(&format!("memgauge {command} --counters")).counters);
        assert!(!spec(&format!("memgauge {command}")).counters);
    }
    for command in ["stream", "chase"] {
        let counted = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().invocation().unwrap() {
            Invocation::Loop(request) => request.specs[0].counters,
            _ => panic!("{line} is a loop"),
        };
        assert!(counted(&format!("memgauge {command} 1M --counters")));
        assert!(!counted(&format!("memgauge {command} 1M")));
    }
    assert!(Cli::try_parse_from(["memgauge", "c2c", "--counters"]).is_err());
}

#[test]
fn prefetchers_are_left_alone_unless_asked() {
    use memgauge_model::experiment::PrefetchRequest::{Leave, Off, On};
    for command in ["latency", "bandwidth", "loaded", "c2c", "scan", "sweep", "quick", "pmem /mnt"] {
        assert_eq!(spec(&format!("memgauge {command}")).prefetch, Leave, "{command}");
        assert_eq!(spec(&format!("memgauge {command} --prefetch off")).prefetch, Off, "{command}");
    }
    assert_eq!(spec("memgauge --prefetch on").prefetch, On);
    let compare = spec("memgauge prefetch compare --cpu 0-3 --node 1");
    assert_eq!((compare.task, compare.prefetch), (Task::prefetch(), Leave));
    assert!(Cli::try_parse_from(["memgauge", "prefetch", "compare", "--prefetch", "off"]).is_err());
}

#[test]
fn labels_are_for_every_command_that_makes_a_result() {
    use crate::host::HostIdentity;
    let identity = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().invocation().unwrap() {
        Invocation::Measure(request) => request.run.report.identity(),
        Invocation::Loop(request) => request.report.identity(),
        Invocation::Info(args) => args.report.identity(),
        Invocation::Count(args) => args.report.identity(),
        Invocation::Stamp(args) => args.report.identity(),
        Invocation::Watch(args) => args.report.identity(),
        _ => panic!("{line} makes a result"),
    };
    let requested = HostIdentity::new(true, vec!["rack=12".parse().unwrap(), "site=b".parse().unwrap()]).unwrap();
    let commands = [
        "",
        " latency",
        " bandwidth",
        " loaded",
        " c2c",
        " quick",
        " scan",
        " sweep",
        " prefetch compare",
        " stream",
        " chase",
        " info",
        " watch",
    ];
    for command in commands {
        assert_eq!(
            identity(&format!("memgauge{command} --label rack=12 --label site=b --no-host-identity")),
            Ok(requested.clone()),
            "{command}"
        );
        assert_eq!(identity(&format!("memgauge{command}")), Ok(HostIdentity::default()), "{command}");
    }
    assert_eq!(identity("memgauge count --label rack=12 --label site=b --no-host-identity -- ls"), Ok(requested));
    assert!(identity("memgauge latency --label rack=1 --label rack=2").unwrap_err().0.contains("'rack' is given twice"));
    assert!(refused("memgauge latency --label rack").contains("KEY=VALUE"));
    assert!(refused("memgauge render a.json --label rack=1").contains("unexpected argument"));
}

#[test]
fn options_for_mlc_alone_are_hidden() {
    use clap::CommandFactory;
    for (command, hidden) in [
        ("latency", &["--touch-cpu", "--keep-awake"][..]),
        ("bandwidth", &["--contents", "--start-signal"]),
        ("loaded", &["--contents", "--start-signal", "--touch-cpu"]),
        ("c2c", &["--holder-pushes", "--reader-pushes", "--touch-cpu"]),
    ] {
        let mut cli = Cli::command();
        let help = cli.find_subcommand_mut(command).unwrap().render_long_help().to_string();
        assert!(hidden.iter().all(|option| !help.contains(option)), "{command}");
    }
}

#[test]
fn a_suite_for_persistent_memory_names_the_nodes_of_its_cpus() {
    let got = spec("memgauge pmem /mnt/a /mnt/b --node 1 --ramp --one-thread-per-core");
    let pmem = options!(got.task, Pmem);
    assert_eq!((got.nodes, pmem.cpu_nodes), (None, Some(IdSet::one(1))));
    assert!(pmem.ramp && !pmem.loaded && got.one_thread_per_core);
    assert!(refused("memgauge pmem").contains("DIR"));
    assert!(refused("memgauge pmem /mnt/a --machine /tmp --plan").contains("--machine"));
}
