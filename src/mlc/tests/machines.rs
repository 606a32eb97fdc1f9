//! The meaning of letters on a machine: its nodes, kernels, clock and pools, and files that letters name.

use memgauge_model::experiment::{ChaseOrder, PageRequest};
use memgauge_model::plan::{LoadCurve, Loading, Work};
use memgauge_model::spec::*;
use memgauge_model::topology::PagePool;
use memgauge_model::traffic::{Access, LineUse, Mix, Width};
use memgauge_model::units::Bytes;
use memgauge_planner::plan;

use super::super::sections::{Section, SectionKind};
use super::*;

#[test]
fn a_buffer_is_taken_again_for_writes() {
    let translation = ask("--peak_injection_bandwidth -b1m");
    let sizes: Vec<_> = translation.sections[0].specs.iter().map(|s| (traffic(s).load.mixes[0], traffic(s).buffer)).collect();
    let (one, two) = (Some(Bytes::mib(1)), Some(Bytes::mib(2)));
    assert_eq!(sizes, [(Mix::AllReads, one), (Mix::R3W1, two), (Mix::R2W1, two), (Mix::R1W1, one), (Mix::R2W1Nt, two)]);
}

#[test]
fn parts_of_lines_are_for_the_mixes_that_have_them() {
    let lines: Vec<_> =
        ask("--peak_injection_bandwidth -K1").sections[0].specs.iter().map(|s| (traffic(s).load.mixes.clone(), traffic(s).line)).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], (vec![Mix::AllReads], LineUse::Part));
    assert_eq!(lines[4], (vec![Mix::R2W1Nt], LineUse::Whole));
}

#[test]
fn small_buffers_are_touched_in_part_unless_whole_lines_are_asked_for() {
    let lines = |line: &str| -> Vec<LineUse> { ask(line).sections[0].specs.iter().map(|s| traffic(s).line).collect() };
    use LineUse::{Checked, Part, Whole, WrittenBack};
    for mode in ["--peak_injection_bandwidth", "--max_bandwidth"] {
        assert_eq!(lines(&format!("{mode} -b1m")), [Part, Part, Part, Part, Whole], "{mode}");
        assert_eq!(lines(&format!("{mode} -b1m -K0")), [Whole; 5], "{mode}");
        assert_eq!(lines(&format!("{mode} -b50m")), [Whole; 5], "{mode}");
    }
    for (options, line) in [
        ("-b48000", Part),
        ("-b1m -W5 -T", Part),
        ("-b1m -W6", Whole),
        ("-b1m -W12", Whole),
        ("-b1m -U", Whole),
        ("-b1m -l256", Whole),
        ("-b1m -othreads", Whole),
        ("-b1m -I", Checked),
        ("-b1m -W2 -Q", WrittenBack),
        ("-b1m -K0", Whole),
        ("", Whole),
    ] {
        let got = ask(&format!("--loaded_latency {options}"));
        assert_eq!((traffic(&got.sections[0].specs[0]).line, got.notes.len()), (line, 0), "{options}: {:?}", got.notes);
    }
    assert_eq!(lines("--bandwidth_matrix -b1m"), [Whole]);
}

#[test]
fn only_the_buffers_of_traffic_are_taken_again_for_writes() {
    for (line, chased, loaded) in [("-b20m -W2", 20, 40), ("-b20m -W6", 20, 20), ("-b20m", 20, 20)] {
        let plan = plan(&spec(&format!("--loaded_latency {line}")), &MACHINE, &KERNELS).unwrap();
        let Work::Curve(LoadCurve { probe, loaders, .. }) = &plan.steps[0].cells[0].work else { panic!("{plan:?}") };
        assert_eq!((probe.buffer.bytes, loaders[0].buffer.bytes), (Bytes::mib(chased), Bytes::mib(loaded)), "{line}");
    }
}

#[test]
fn a_named_node_has_the_latency_buffer_and_all_traffic() {
    let homes = |line: &str| -> IdSet {
        let plan = plan(&spec(line), &MACHINE, &KERNELS).unwrap();
        let works = plan.steps.iter().flat_map(|step| &step.cells).flat_map(|cell| cell.work.buffers());
        works.map(|buffer| buffer.node).collect()
    };
    for line in ["--loaded_latency -j1", "--loaded_latency -j1 -k2,3 -d0", "--loaded_latency -d0 -T -j1 -R", "--max_bandwidth -u -j1"] {
        assert_eq!(homes(line), IdSet::one(1), "{line}");
    }
    assert_eq!(homes("--loaded_latency"), "0-1".parse().unwrap(), "each CPU on its own node");
    let peak = ask("--peak_injection_bandwidth -j1").sections.remove(0).specs;
    assert!(peak.iter().all(|spec| spec.nodes == ids("1")));
}

#[test]
fn lines_between_two_delays_are_those_of_public_curves() {
    for (line, lines) in [
        ("", None),
        ("-W2", Some(2.0)),
        ("-W3", Some(6.0)),
        ("-W4", Some(1.5)),
        ("-W5", Some(1.0)),
        ("-W7", Some(6.0)),
        ("-W6", None),
        ("-T -W5", Some(1.0)),
    ] {
        let plan = plan(&spec(&format!("--loaded_latency {line}")), &MACHINE, &KERNELS).unwrap();
        let (Work::Curve(LoadCurve { traffic, .. }) | Work::Bandwidth(Loading { traffic, .. })) = &plan.steps[0].cells[0].work else {
            panic!("{plan:?}")
        };
        assert_eq!(traffic.burst_lines, lines, "{line}");
    }
    let threads = plan(&spec("--loaded_latency -ostores -d0"), &MACHINE, &KERNELS).unwrap();
    let Work::Curve(LoadCurve { loaders, .. }) = &threads.steps[0].cells[0].work else { panic!("{threads:?}") };
    assert_eq!(loaders[0].own.as_ref().unwrap().traffic.burst_lines, Some(1.0), "of a line of -o too");
}

#[test]
fn a_coarse_clock_makes_histograms_of_batches() {
    let batches = |step_ns: f64| {
        let mut translation = ask("--idle_latency -f5");
        let note = translation.suit_clock(step_ns);
        (options!(&translation.sections[0].specs[0].task, Latency).chase.histogram, note)
    };
    assert_eq!(batches(0.4), (Some(1), None));
    for (step_ns, batch) in [(10.0, 8), (40.0, 8), (52.1, 64)] {
        let (got, note) = batches(step_ns);
        assert!(got == Some(batch) && note.unwrap().contains(&format!("means of {batch} loads")), "{step_ns} ns: {got:?}");
    }
    let (none, note) = batches(1000.0);
    assert!(none.is_none() && note.unwrap().contains("too coarse"));
    assert_eq!(ask("--idle_latency").suit_clock(40.0), None, "no histogram was asked for");
}

#[test]
fn latency_of_every_cpu() {
    let matrix = spec("--latency_matrix -a -X");
    assert_eq!((matrix.nodes, matrix.one_thread_per_core), (ids("0-1"), true));
    assert_eq!(options!(matrix.task, Latency).shape, LatencyShape::PerCpu);
    let idle = spec("--idle_latency -a -c3");
    assert_eq!((options!(&idle.task, Latency).shape, &idle.cpus, &idle.nodes), (LatencyShape::PerCpu, &None, &None));
    let of_cores = spec("--idle_latency -a -X");
    assert!(of_cores.one_thread_per_core && !idle.one_thread_per_core);
    let rows =
        |spec: &Spec| plan(spec, &MACHINE, &KERNELS).unwrap().steps[0].cells.iter().filter_map(|cell| cell.at.cpu).collect::<IdSet>();
    assert_eq!(rows(&of_cores), MACHINE.topology.one_per_core(&MACHINE.allowed.cpus));
    assert_ne!(rows(&of_cores), rows(&idle), "the machine has two threads a core");
    // Scripts give it without -a.
    let one = ask("--idle_latency -X -c17");
    assert!(!one.sections[0].specs[0].one_thread_per_core && one.notes == ["-X: no effect on the latency of one CPU; give -a"]);
}

#[test]
fn a_file_of_threads() {
    let got = options!(spec("--loaded_latency -othreads -d0").task, Loaded);
    assert_eq!((got.chase.buffer, got.curve.node, got.curve.cpu), (Some(Bytes::mib(1)), Some(1), Some(0)));
    let cpus: Vec<String> = got.traffic.threads.iter().map(|t| t.cpus.to_string()).collect();
    assert_eq!(cpus, ["1-3", "4-5", "6"]);
    assert_eq!((got.traffic.threads[0].delay, got.traffic.threads[0].access), (Some(100), Access::Random));
    assert!(matches!(&got.traffic.threads[1].place, BufferPlace::Directory(d) if d.file.path == "/pmemfs0"));
    assert!(ask("--loaded_latency -othreads").sections[0].wording.per_thread);
    // CPU 0 makes traffic if nothing measures latency.
    assert_eq!(traffic(&spec("--loaded_latency -T -othreads")).threads[0].cpus, IdSet::one(0));
    assert_eq!(traffic(&spec("--loaded_latency -othreads -P")).line, LineUse::WrittenBack);
    assert!(ask_on("--loaded_latency -onowhere", &X86).unwrap_err().contains("nowhere"));
    assert!(ask_on("--loaded_latency -gpattern", &X86).unwrap_err().contains("pattern: line 1"));
    assert!(ask_on("--loaded_latency -Mdelays", &X86).unwrap_err().contains("delays: line 1"));
}

#[test]
fn a_file_may_name_the_latency_cpu_alone() {
    let translation = ask("--loaded_latency -i0 -oalone");
    let section = &translation.sections[0];
    assert!(section.kind == SectionKind::Unloaded && section.chases(), "{section:?}");
    let spec = &section.specs[0];
    let latency = options!(&spec.task, Latency);
    assert_eq!((latency.shape, &spec.cpus, &spec.nodes), (LatencyShape::One, &ids("0"), &ids("1")));
    assert_eq!((latency.chase.buffer, latency.chase.touch), (Some(Bytes::kib(40_000)), None));
    plan(spec, &MACHINE, &KERNELS).unwrap();
    let says = |letter: &str| translation.notes.iter().filter(|note| note.starts_with(letter)).count();
    assert_eq!((says("-i:"), says("-o:"), translation.notes.len()), (1, 1, 2), "{:?}", translation.notes);
    assert_eq!((section.delays.len(), section.specs.len()), (19, 19), "scripts read a row for each delay");
    let rows = |line: &str| ask(line).sections[0].delays.clone();
    assert_eq!((rows("--loaded_latency -oalone -d50"), rows("--loaded_latency -oalone -gdelays")), (vec![50], vec![0, 300]));
}

#[test]
fn a_file_that_says_where_the_latency_buffer_is_needs_no_cpu_that_touches_it() {
    let translation = ask("--loaded_latency -i0 -othreads -d0");
    let loaded = options!(&translation.sections[0].specs[0].task, Loaded);
    assert_eq!((loaded.chase.touch, loaded.curve.node), (None, Some(1)));
    assert_eq!(translation.notes.len(), 1, "{:?}", translation.notes);
}

#[test]
fn stores_of_sequential_lines_are_written_back_whatever_the_stride() {
    for letters in ["-Q", "-Q -l256", "-l256 -Q -Z -r", "-Q -U"] {
        let translation = ask(&format!("--loaded_latency -ostores {letters}"));
        assert_eq!(traffic(&translation.sections[0].specs[0]).line, LineUse::WrittenBack, "{letters}");
        assert!(translation.notes.iter().all(|note| !note.contains("-Q")), "{letters}: {:?}", translation.notes);
    }
}

#[test]
fn prefetchers_that_are_off_leave_the_chase_in_order() {
    let off = |line: &str| {
        let (mode, letters, _) = letters_of(line);
        translate(mode, &letters, &Inputs { prefetchers_off: true, ..inputs(&KERNELS) }).unwrap()
    };
    for mode in ["--latency_matrix", "--idle_latency", "--loaded_latency", "--loaded_latency -oalone"] {
        let translation = off(mode);
        let chase = |translation: &Translation| match &translation.sections[0].specs[0].task {
            Task::Latency(latency) => (latency.orders.clone(), latency.chase.stride),
            task => (options!(task, Loaded).order.into_iter().collect(), options!(task, Loaded).chase.stride),
        };
        assert_eq!(chase(&translation), (vec![ChaseOrder::Sequential], Some(Bytes(64))), "{mode}");
        assert!(translation.prefetchers_off && !translation.prefetchers_on, "{mode}");
        let random = off(&format!("{mode} -r"));
        assert_eq!(chase(&random).0, [ChaseOrder::WindowLocal], "{mode}");
        assert!(random.prefetchers_off && !off(&format!("{mode} -e")).prefetchers_off, "{mode}");
    }
    let chases: Vec<bool> = off("").sections.iter().map(Section::chases).collect();
    assert_eq!(chases, [true, false, false, true, false], "traffic keeps its prefetchers");
    assert!(!off("--loaded_latency -T").prefetchers_off && !off("--c2c_latency").prefetchers_off);
}

#[test]
fn a_scan() {
    let plain = spec("--memory_bandwidth_scan");
    assert_eq!((plain.nodes, plain.cpus, plain.time), (Some(IdSet::one(0)), None, None));
    let scan = options!(plain.task, Scan);
    assert_eq!((scan.passes, scan.bucket_gbs), (Some(10), Some(5.0)));
    let all = spec("--memory_bandwidth_scan -j1 -n0 -t2 -q3 -S1000");
    assert_eq!((all.nodes, all.cpus.map(|c| c.len())), (Some(IdSet::one(1)), Some(2)));
    let scan = options!(all.task, Scan);
    assert_eq!((scan.passes, scan.bucket_gbs), (Some(3), Some(1.0)));
    assert!(ask_on("--memory_bandwidth_scan -n9", &X86).unwrap_err().contains("no such node"));
    let mut machine = two_nodes();
    machine.topology.nodes[0].pools.push(PagePool { page: Bytes::gib(1), total: 4, free: 3 });
    let pages = |line: &str| -> Vec<PageRequest> {
        let (mode, letters, _) = letters_of(line);
        let inputs = Inputs { machine: &machine, ..inputs(&KERNELS) };
        translate(mode, &letters, &inputs).unwrap().sections[0].specs.iter().map(|s| s.pages).collect()
    };
    assert_eq!(pages("--memory_bandwidth_scan"), [PageRequest::Huge1G, PageRequest::Auto]);
    assert_eq!(pages("--memory_bandwidth_scan -j1"), [PageRequest::Auto], "its pool has none");
}

#[test]
fn widths_fall_back_and_say_so() {
    let without = ask_on("--loaded_latency -Z", &[Width::Sse2, Width::Avx2]).unwrap();
    assert_eq!(traffic(&without.sections[0].specs[0]).load.width, WidthRequest::Is(Width::Avx2));
    assert!(without.notes.iter().any(|n| n.starts_with("-Z")), "{:?}", without.notes);
    let arm = ask_on("--loaded_latency", &[Width::Neon]).unwrap();
    assert_eq!(traffic(&arm.sections[0].specs[0]).load.width, WidthRequest::Is(Width::Neon));
    assert!(arm.notes.is_empty());
    let other = ask_on("--bandwidth_matrix -Y", &[Width::Scalar]).unwrap();
    assert_eq!(traffic(&other.sections[0].specs[0]).load.width, WidthRequest::Best);
    assert!(!other.notes.is_empty());
}

#[test]
fn letters_without_effect_are_reported_and_no_others() {
    for (line, option) in [
        ("--idle_latency -Z", "-Z"),
        ("--latency_matrix -W3", "-W3"),
        ("--c2c_latency -l128", "-l128"),
        ("--bandwidth_matrix -k1", "-k1"),
        ("--memory_bandwidth_scan -L", "-L"),
        ("--idle_latency --c2c_latency", "--idle_latency"),
    ] {
        let (_, _, ignored) = letters_of(line);
        assert!(ignored.len() == 1 && ignored[0].starts_with(option), "{line}: {ignored:?}");
    }
    for line in [
        "--idle_latency -j1 -i3",
        "--idle_latency -X",
        "--loaded_latency -n8",
        "--loaded_latency -e -D64",
        "--loaded_latency -P",
        "--loaded_latency -T -c1",
        "--loaded_latency -T -d0 -othreads -j1",
        "--loaded_latency -ostores -W3",
        "--loaded_latency -ostores -k1-3",
        "--loaded_latency -ostores -U",
        "--loaded_latency -ostores -l256",
        "--loaded_latency -U -n8",
        "--loaded_latency -T -x10",
        "--loaded_latency -T -D64",
        "--loaded_latency -ostores -u",
        "--loaded_latency -ostores -n64",
        "--loaded_latency -othreads -j0",
        "--loaded_latency -W6 -Q",
        "--idle_latency -a -c1",
        "--c2c_latency -i0",
        "--max_bandwidth -u -W6",
    ] {
        assert_eq!(ask(line).notes.len(), 1, "{line}: {:?}", ask(line).notes);
    }
    // A memory test must not report that all is well if nothing was checked.
    let unchecked = ask("--loaded_latency -othreads -I").notes;
    assert!(unchecked.iter().any(|note| note.contains("say rand: what they read is not checked")), "{unchecked:?}");
}
