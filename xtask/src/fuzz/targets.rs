//! The fuzz targets: every parser of text or bytes that come from outside, and every format of a result.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use anyhow::{Context, Result};
use memgauge_model::installed::smbios::device_map::DeviceMap;
use memgauge_model::spec::{Spec, Task};
use memgauge_model::traffic::{LineContent, Mix};
use memgauge_model::units::{Bytes, IdSet, parse_duration};
use memgauge_os::counters::Catalogue;
use memgauge_os::interleave::KernelWeights;
use memgauge_os::prefetch::PrefetchRegisters;
use memgauge_os::topology::read_machine;

use super::fleets;
use super::renderings::{self, Run, results};
use super::scratch::{SCRATCH, scratch};

/// One thing to fuzz.
pub(super) struct Target {
    pub(super) name: &'static str,
    /// The inputs to begin with.
    pub(super) corpus: fn() -> Result<Vec<Vec<u8>>>,
    /// Words of the format.
    pub(super) words: &'static [&'static str],
    /// Memory that it may take, in multiples of what others may.
    pub(super) memory_times: u64,
    /// Prepares what a run needs, and returns the function of bytes.
    pub(super) prepare: fn() -> Result<Run>,
}

/// Bitmaps and PDF take more than a parser: a page is up to some tens of MiB before it is compressed.
const DRAWING: u64 = 4;

pub(super) const TARGETS: &[Target] = &[
    // Each of its own: together they would be as slow as the slowest.
    Target { name: "lists", corpus: lists, words: &["0-3", ":", ",", "-"], memory_times: 1, prepare: || Ok(Box::new(parse_lists)) },
    Target { name: "sizes", corpus: sizes, words: &["K", "GiB", "ms", "."], memory_times: 1, prepare: || Ok(Box::new(parse_sizes)) },
    Target { name: "mixes", corpus: mixes, words: &[":", "R", "W21", "-nt"], memory_times: 1, prepare: || Ok(Box::new(parse_mixes)) },
    Target {
        name: "files",
        corpus: threads_and_rules,
        words: TOML,
        memory_times: 1,
        prepare: || Ok(Box::new(|bytes| text(bytes, memgauge::fuzzing::file))),
    },
    Target {
        name: "arguments",
        corpus: command_lines,
        words: OPTIONS,
        memory_times: 1,
        prepare: || Ok(Box::new(|bytes| memgauge::fuzzing::arguments(&words(bytes)))),
    },
    Target {
        name: "letters",
        corpus: mlc_lines,
        words: &["-b", "-k", "-W21", "--loaded_latency"],
        memory_times: 1,
        prepare: || Ok(Box::new(|bytes| memgauge::fuzzing::letters(&words(bytes)))),
    },
    Target { name: "results", corpus: results, words: JSON, memory_times: DRAWING, prepare: || Ok(Box::new(renderings::formats)) },
    Target { name: "lines", corpus: results, words: JSON, memory_times: 1, prepare: || Ok(Box::new(renderings::lines)) },
    Target { name: "drop-in", corpus: results, words: JSON, memory_times: 1, prepare: || Ok(Box::new(renderings::drop_in)) },
    Target { name: "comparisons", corpus: results, words: JSON, memory_times: DRAWING, prepare: renderings::compared },
    Target { name: "advice", corpus: results, words: JSON, memory_times: 1, prepare: renderings::advised },
    Target { name: "machines", corpus: machine_files, words: &["kB", "0-1", "\n"], memory_times: 1, prepare: machines },
    Target { name: "trees", corpus: machine_trees, words: &["\x1e", "/cpu1/", "/node1/", "0-1"], memory_times: 1, prepare: trees },
    Target { name: "journals", corpus: journals, words: &["cpu ", "register ", "0x1a4", "end\n"], memory_times: 1, prepare: read_journals },
    Target {
        name: "weights",
        corpus: weights,
        words: &["node ", " weight ", "auto true\n", "end\n"],
        memory_times: 1,
        prepare: read_weights,
    },
    Target {
        name: "tables",
        corpus: tables,
        words: &["\0\0", "\x13\x1f", "\x14\x23", "\x11\x28"],
        memory_times: 1,
        prepare: || Ok(Box::new(map_devices)),
    },
    Target { name: "stores", corpus: fleets::batches, words: FLEET, memory_times: 1, prepare: fleets::stores },
    Target { name: "baselines", corpus: fleets::baselines, words: FLEET, memory_times: 1, prepare: fleets::judged },
    Target { name: "parquet", corpus: fleets::parquet_files, words: &["PAR1"], memory_times: DRAWING, prepare: fleets::parquet },
    Target { name: "histories", corpus: results, words: JSON, memory_times: 1, prepare: fleets::histories },
    Target { name: "outliers", corpus: results, words: JSON, memory_times: DRAWING, prepare: fleets::outlying },
];

const TOML: &[&str] =
    &["[[threads]]\n", "[chase]\n", "[[rule]]\n", "cpus = ", "size = ", "mix = ", "experiment = ", "delays = [", "\"\"\"", "below = "];
const OPTIONS: &[&str] =
    &["\n--cpu\n", "\n--size\n", "\n--time\n", "\n--mix\n", "\n--format\njson", "\nlatency\n", "\n--", "\nquick\n", "\ncount\n", "\n-e\n"];
const JSON: &[&str] = &["\"schema_version\": 1", "\"schema_version\": 2", "{\"estimate\": ", "\"results\": [", "\"curves\": [", "\"at\": "];
const FLEET: &[&str] =
    &["\"batches\": [", "\"files\": [", "\"next\": 0", "\"numbers\": [", "\"median\": 0", "\"spread\": -1", "null", "1e308"];

fn owned<const N: usize>(all: [&str; N]) -> Result<Vec<Vec<u8>>> {
    Ok(all.iter().map(|one| one.as_bytes().to_vec()).collect())
}

fn text(bytes: &[u8], run: impl Fn(&str)) {
    run(&String::from_utf8_lossy(bytes));
}

/// The lines of an input as arguments.
fn words(bytes: &[u8]) -> Vec<OsString> {
    bytes.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec())).collect()
}

fn lists() -> Result<Vec<Vec<u8>>> {
    owned(["0-3,8,12-15", "0-8191", "7", "0-95:3", "4-48:2,1,2"])
}

fn parse_lists(bytes: &[u8]) {
    text(bytes, |text| {
        // A list that was parsed must have a text that means the same.
        if let Ok(ids) = text.parse::<IdSet>() {
            assert_eq!(ids.to_string().parse(), Ok(ids));
        }
    });
}

fn sizes() -> Result<Vec<Vec<u8>>> {
    owned(["512M", "15GiB", "16384", "100MB", "250ms", "0.5s", "2m"])
}

fn parse_sizes(bytes: &[u8]) {
    text(bytes, |text| {
        if let Ok(size) = text.parse::<Bytes>() {
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        let _ = parse_duration(text);
    });
}

fn mixes() -> Result<Vec<Vec<u8>>> {
    owned(["all-reads", "2:1", "3:1-nt", "nt-write", "copy", "0123456789abcdef"])
}

fn parse_mixes(bytes: &[u8]) {
    text(bytes, |text| {
        let _ = text.parse::<Mix>().map(|mix| mix.to_string());
        let _ = text.parse::<LineContent>();
    });
}

fn threads_and_rules() -> Result<Vec<Vec<u8>>> {
    owned([
        "delays = [0, 100]\n[chase]\ncpu = 0\nsize = \"64M\"\n[[threads]]\ncpus = \"1-2\"\nmix = \"2:1\"\nsize = \"32M\"\nnode = 0\n",
        "strict = true\n[[rule]]\nexperiment = \"bandwidth\"\nmix = \"all-reads\"\nwarn-below = 10.5\n[[rule]]\nexperiment = \"latency\"\nabove = 200\n",
        "# delays\n0\n50\n100\n20000\n",
        "0-1 W21 seq 16m dram 0 100\n2 R rand 1g pmem /mnt/pmem0 0\n3 W23 seq 8m dram 0 dram 1 50\n",
        "0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcdef 0123456789abcdef\n",
    ])
}

fn command_lines() -> Result<Vec<Vec<u8>>> {
    owned([
        "latency\n--cpu\n0-3\n--size\n64M\n--time\n100ms\n--order\nfull-random\n--format\njson",
        "loaded\n--delay\n0,100,1000\n--mix\n2:1\n--node\n0\n-o\nx.svg",
        "bandwidth\n--matrix\n--pages\n2m\n--label\na=b",
        "count\n-e\ncycles,instructions\n--\ntrue",
        "stream\n1G\n--passes\n5\n--seed\n7",
        "scan\n--integrity\n--within\n10s",
    ])
}

fn mlc_lines() -> Result<Vec<Vec<u8>>> {
    owned([
        "--loaded_latency\n-d0\n-t1\n-W3\n-k1-3\n-oper_thread.txt",
        "--latency_matrix\n-b200m\n-x2\n-e0",
        "--c2c_latency\n-c0\n-w1\n-H\n-S",
        "--peak_injection_bandwidth\n-Y\n-r\n-X",
    ])
}

/// Files of a machine: the path, a line break, the content.
fn machine_files() -> Result<Vec<Vec<u8>>> {
    let mut all = owned([
        "proc/meminfo\nMemTotal: 4194304 kB\nMemFree: 2097152 kB\nMemAvailable: 3000000 kB\nHugepagesize: 2048 kB\n",
        "proc/self/status\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n",
        "proc/self/cgroup\n0::/a/b\n4:memory:/m\n",
        "proc/self/mountinfo\n35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/a/b/memory.max\n104857600\n",
        "sys/devices/system/cpu/online\n0-1\n",
        "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list\n0-1\n",
        "sys/devices/system/cpu/cpu0/cache/index0/size\n32K\n",
        "sys/devices/system/node/node0/distance\n10 21\n",
        "sys/devices/system/node/node0/meminfo\nNode 0 MemTotal: 4194304 kB\nNode 0 MemFree: 2097152 kB\n",
        "sys/bus/event_source/devices/cpu/events/cycles\nevent=0x3c,umask=0x01,cmask=2,inv\n",
        "sys/bus/event_source/devices/cpu/format/event\nconfig:0-7,32-35\n",
        "sys/bus/event_source/devices/cpu/type\n4\n",
        "proc/cpuinfo\nprocessor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: X\n",
    ])?;
    // A memory device (SMBIOS 3.2, type 17) and the end (type 127).
    let mut table = vec![17, 40, 0, 17];
    table.extend((4..40u8).map(|n| n.wrapping_mul(3)));
    table.extend_from_slice(b"DIMM_A1\0Micron\0\0\x7f\x04\xff\xff\0\0");
    all.push([b"sys/firmware/dmi/tables/DMI\n".as_slice(), &table].concat());
    Ok(all)
}

/// A small machine with the input as one of its files.
fn machines() -> Result<Run> {
    let root = scratch(SCRATCH[0])?;
    for seed in machine_files()? {
        put(&root, &seed).context("the corpus has a path in each file")?;
    }
    let sound = read_machine(&root)?;
    Ok(Box::new(move |bytes| {
        let Some(path) = put(&root, bytes) else { return };
        let _ = read_machine(&root);
        let _ = memgauge_os::environment::read_environment(&root, &sound);
        let catalogue = Catalogue::read(&root, &sound.identity, 0);
        let _ = (catalogue.metrics(), catalogue.named("cpu/event=0x3c,umask=1/"), catalogue.named("cycles"));
        // The file as it was, or no file.
        let _ = fs::remove_file(root.join(&path));
        let original = machine_files().unwrap_or_default().into_iter().find(|seed| seed.starts_with(format!("{path}\n").as_bytes()));
        original.and_then(|seed| put(&root, &seed));
    }))
}

/// Between the files of a tree.
const NEXT_FILE: u8 = 0x1e;

/// All files of a machine in one input: of two CPUs of a node, and with more CPUs, caches and nodes.
fn machine_trees() -> Result<Vec<Vec<u8>>> {
    let small = machine_files()?;
    let file = |path: String, content: &str| format!("{path}\n{content}\n").into_bytes();
    let mut large = small.clone();
    large.push(file("sys/devices/system/node/online".into(), "0-1"));
    for cpu in 0..4 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        large.push(file(format!("{folder}/topology/physical_package_id"), &(cpu / 2).to_string()));
        large.push(file(format!("{folder}/topology/core_id"), &(cpu % 2).to_string()));
        large.push(file(format!("{folder}/topology/thread_siblings_list"), &cpu.to_string()));
        for (index, (level, kind, size)) in [("1", "Data", "32K"), ("2", "Unified", "1024K"), ("3", "Unified", "16384K")].iter().enumerate()
        {
            let cache = format!("{folder}/cache/index{index}");
            let shared = if *level == "3" { format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1) } else { cpu.to_string() };
            for (name, content) in
                [("level", *level), ("type", *kind), ("size", *size), ("shared_cpu_list", &shared), ("coherency_line_size", "64")]
            {
                large.push(file(format!("{cache}/{name}"), content));
            }
        }
    }
    large.push(file("sys/devices/system/cpu/online".into(), "0-3"));
    for node in 0..2 {
        let folder = format!("sys/devices/system/node/node{node}");
        large.push(file(format!("{folder}/cpulist"), ["0-1", "2-3"][node]));
        large.push(file(format!("{folder}/distance"), ["10 21", "21 10"][node]));
    }
    Ok([small, large].map(|files| files.join(&NEXT_FILE)).to_vec())
}

/// A machine whose files are all in the input: what can be read of it is planned for.
fn trees() -> Result<Run> {
    let root = scratch(SCRATCH[2])?;
    Ok(Box::new(move |bytes| {
        let files: Vec<String> = bytes.split(|byte| *byte == NEXT_FILE).take(MAX_FILES).filter_map(|file| put(&root, file)).collect();
        if let Ok(machine) = read_machine(&root) {
            for task in [Task::suite(), Task::quick()] {
                let _ = memgauge_planner::plan(&Spec::new(task), &machine, &[]).map(|plan| plan.estimated_s);
            }
        }
        files.iter().for_each(|file| drop(fs::remove_file(root.join(file))));
    }))
}

/// Files of one input: a copied piece may name the same ones thousands of times.
const MAX_FILES: usize = 500;

/// Writes the file that an input names, below `root`. `None` when it names none that a machine has.
fn put(root: &Path, bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let path = std::str::from_utf8(&bytes[..end]).ok()?;
    let harmless = path.len() < 200
        && path.split('/').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b)) && part != ".." && part != "."
        });
    if !harmless || !(path.starts_with("proc/") || path.starts_with("sys/")) {
        return None;
    }
    let file = root.join(path);
    fs::create_dir_all(file.parent()?).ok()?;
    fs::write(file, &bytes[end + 1..]).ok()?;
    Some(path.to_owned())
}

fn journals() -> Result<Vec<Vec<u8>>> {
    owned([
        "memgauge prefetch journal 1\nid 12-34\nboot unknown\ncpu 0 register 0x1a4 mask 0xf value 0x0\ncpu 1 register 0x1a4 mask 0xf value 0x1\nend\n",
        "memgauge prefetch journal 1\nid 1-1\nboot 0f3a\nend\n",
    ])
}

/// Journals in a folder without registers: they are read, and nothing can be restored.
fn read_journals() -> Result<Run> {
    let folder = scratch(SCRATCH[1])?;
    let registers = PrefetchRegisters::new(folder.join("cpu"), &folder, &folder);
    Ok(Box::new(move |bytes| {
        let _ = fs::write(folder.join("prefetch-run.journal"), bytes);
        let _ = registers.waiting();
    }))
}

fn weights() -> Result<Vec<Vec<u8>>> {
    owned([
        "memgauge interleave journal 1\nboot 0f3a\nauto false\nnode 0 weight 3\nnode 1 weight 2\nend\n",
        "memgauge interleave journal 1\nboot 77\nend\n",
    ])
}

/// Journals of interleave weights, restored to files in place of the kernel's.
fn read_weights() -> Result<Run> {
    let root = scratch(SCRATCH[5])?;
    let (kernel, boot) = (root.join("sys/kernel/mm/mempolicy/weighted_interleave"), root.join("proc/sys/kernel/random"));
    let journals = root.join("journals");
    for folder in [&kernel, &boot, &journals] {
        fs::create_dir_all(folder)?;
    }
    fs::write(boot.join("boot_id"), "0f3a\n")?;
    for (name, value) in [("node0", "1"), ("node1", "1"), ("auto", "true")] {
        fs::write(kernel.join(name), value)?;
    }
    let weights = KernelWeights::new(&root, &journals);
    Ok(Box::new(move |bytes| {
        let _ = fs::write(journals.join("interleave.journal"), bytes);
        let _ = (weights.restore(), weights.read());
    }))
}

/// A table of memory devices (type 17), of addresses of an array (19) and of a device (20), with both forms of addresses.
fn tables() -> Result<Vec<Vec<u8>>> {
    let structure = |kind: u8, length: u8, handle: u8, words: &[(usize, &[u8])], strings: &[u8]| {
        let mut bytes = vec![0; usize::from(length)];
        (bytes[0], bytes[1], bytes[2]) = (kind, length, handle);
        words.iter().for_each(|(at, word)| bytes[*at..at + word.len()].copy_from_slice(word));
        [&bytes, strings, b"\0"].concat()
    };
    let device =
        |handle: u8, name: &[u8]| structure(17, 40, handle, &[(4, &[1, 0]), (0xC, &[0, 0x40]), (0x10, &[1, 0]), (0x12, &[0x1A])], name);
    let end = [127, 4, 0, 0, 0, 0];
    let short = [
        device(2, b"DIMM_A1\0"),
        device(3, b"DIMM_B1\0"),
        structure(20, 0x23, 4, &[(4, &[0, 0, 0, 0]), (8, &[0xFF, 0xFF, 0xFF, 0]), (0xC, &[2, 0])], b"\0"),
        structure(19, 0x1F, 5, &[(4, &[0, 0, 0, 1]), (8, &[0xFF, 0xFF, 0xFF, 1]), (0xC, &[1, 0])], b"\0"),
        end.to_vec(),
    ];
    let extended = [
        device(2, b"DIMM_A1\0"),
        structure(20, 0x23, 4, &[(4, &[0xFF; 4]), (0xC, &[2, 0]), (0x13, &[0; 8]), (0x1B, &[0xFF, 0xFF, 0xFF, 0xFF, 3, 0, 0, 0])], b"\0"),
        structure(19, 0x1F, 5, &[(4, &[0xFF; 4]), (0xC, &[1, 0]), (0xF, &[0; 8]), (0x17, &[0xFF; 8])], b"\0"),
        end.to_vec(),
    ];
    let all = [short.concat(), extended.concat()];
    // A table that maps no address would test nothing.
    anyhow::ensure!(
        all.iter().all(|table| DeviceMap::parse(table).at(4096).is_ok_and(|devices| devices == ["DIMM_A1"])),
        "a table of the corpus"
    );
    Ok(all.to_vec())
}

fn map_devices(bytes: &[u8]) {
    let map = DeviceMap::parse(bytes);
    for physical in [0, 4096, 1 << 32, u64::MAX] {
        let _ = map.at(physical);
    }
}
