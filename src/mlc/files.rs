//! The files that letters name: delays (`-g`), and what each thread does (`-o`).

use std::path::Path;

use memgauge_model::directory::MemoryDir;
use memgauge_model::spec::{BufferPlace, SecondStream, ThreadSpec};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::{Bytes, IdSet};

use super::letters::{list, mix, size, whole};
use crate::cli::values::MAX_DELAY_CYCLES;
use crate::contents::data_lines;

/// Injection delays, one number a line.
///
/// # Errors
/// Names the line that is not a delay.
pub(crate) fn delays(text: &str) -> Result<Vec<u32>, String> {
    let delay = |line: &str| whole(line).filter(|&n| n <= MAX_DELAY_CYCLES);
    let delays: Vec<u32> = data_lines(text)
        .map(|(n, line)| delay(line).ok_or_else(|| format!("line {n}: '{line}' is not a delay in cycles")))
        .collect::<Result<_, _>>()?;
    if delays.is_empty() { Err("holds no delay".into()) } else { Ok(delays) }
}

/// The content of a file of threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The work of the CPUs that make traffic. No CPU is in two of them.
    pub(crate) traffic: Vec<ThreadSpec>,
    /// Buffer of the CPU that measures latency, if a line names it.
    pub(crate) latency: Option<(Bytes, BufferPlace)>,
    /// Whether a buffer is persistent memory.
    pub(crate) pmem: bool,
}

/// Reads a file of threads. `latency` is the CPU that measures latency, if one does: a line for it only says how large its buffer is, and
/// where. If a file names that CPU alone, nothing makes traffic.
///
/// If several lines name a CPU, the last one counts. Text after a `#` is a comment.
///
/// # Errors
/// Names the line and the field that is wrong.
pub(crate) fn threads(text: &str, latency: Option<u32>, directory: &dyn Fn(&Path) -> Result<MemoryDir, String>) -> Result<Threads, String> {
    let mut all = Threads::default();
    for (n, line) in data_lines(text) {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        let (mut thread, pmem) = thread(&words, directory).map_err(|why| format!("line {n}: {why}"))?;
        all.pmem |= pmem;
        if let Some(cpu) = latency.filter(|&cpu| thread.cpus.contains(cpu)) {
            all.latency = thread.size.map(|size| (size, thread.place.clone()));
            thread.cpus = thread.cpus.difference(&IdSet::one(cpu));
        }
        for earlier in &mut all.traffic {
            earlier.cpus = earlier.cpus.difference(&thread.cpus);
        }
        all.traffic.push(thread);
    }
    all.traffic.retain(|t| !t.cpus.is_empty());
    if all.traffic.is_empty() && all.latency.is_none() {
        return Err("names no CPU that makes traffic".into());
    }
    Ok(all)
}

/// `<cpus> <R|Wn> <seq|rand> <size> <dram|pmem> [<node|path> [<delay>]]`, or with two streams
/// `<cpus> <W21|W23|W27> <seq|rand> <size> <dram|pmem> <node|path> <dram|pmem> <node|path> <percent>`.
fn thread(words: &[&str], directory: &dyn Fn(&Path) -> Result<MemoryDir, String>) -> Result<(ThreadSpec, bool), String> {
    let [cpus, traffic, order, bytes, kind, rest @ ..] = words else {
        return Err("has fewer than five fields: CPUs, traffic, seq or rand, size, dram or pmem".into());
    };
    let cpus = list(Some(cpus)).ok_or_else(|| format!("'{cpus}' are not CPUs such as 0-7,16"))?;
    let code = if *traffic == "R" { None } else { Some(traffic.strip_prefix('W').and_then(whole).unwrap_or(0)) };
    let (mix, two) = match code {
        None => (Mix::AllReads, false),
        Some(21) => (Mix::AllReads, true),
        Some(23) => (Mix::R3W1, true),
        // Like code 7, but with its reads and writes in two places.
        Some(27) => (Mix::R2W1NtX1, true),
        Some(code) => (mix(code).ok_or_else(|| format!("'{traffic}' is not traffic: R, W2 to W12, W19, W21, W23 or W27"))?, false),
    };
    let access = match *order {
        "seq" => Access::Sequential,
        "rand" => Access::Random,
        other => return Err(format!("'{other}' is neither seq nor rand")),
    };
    let bytes = size(bytes).ok_or_else(|| format!("'{bytes}' is not a size in KiB or with k, m or g"))?;
    // In random order, two read streams are the same as one.
    let mix = if access == Access::Random { mix.with_one_read_stream() } else { mix };
    let (place, delay, second, pmem) = if two {
        let [first, kind2, second, percent] = rest else {
            return Err(format!("{traffic} needs two places and a percentage: dram 0 dram 1 25"));
        };
        let (first, second) = (place(kind, Some(first), directory)?, place(kind2, Some(second), directory)?);
        let percent =
            whole(percent).filter(|p| (1..=99).contains(p)).ok_or_else(|| format!("'{percent}' is not a percentage from 1 to 99"))?;
        (first, None, Some(SecondStream { place: second, percent }), [*kind, *kind2].contains(&"pmem"))
    } else {
        let (at, delay) = match rest {
            [] => (None, None),
            [at] => (Some(*at), None),
            [at, delay] => (Some(*at), Some(*delay)),
            [.., extra] => return Err(format!("has one field too many: '{extra}'")),
        };
        let cycles = |d: &str| whole(d).filter(|&n| n <= MAX_DELAY_CYCLES).ok_or_else(|| format!("'{d}' is not a delay in cycles"));
        (place(kind, at, directory)?, delay.map(cycles).transpose()?, None, *kind == "pmem")
    };
    Ok((ThreadSpec { cpus, mix, access, size: Some(bytes), place, delay, second }, pmem))
}

fn place(kind: &str, at: Option<&str>, directory: &dyn Fn(&Path) -> Result<MemoryDir, String>) -> Result<BufferPlace, String> {
    match (kind, at) {
        ("dram", None) => Ok(BufferPlace::Local),
        ("dram", Some(node)) => whole(node).map(BufferPlace::Node).ok_or_else(|| format!("'{node}' is not a node's number")),
        ("pmem", Some(path)) => Ok(BufferPlace::Directory(Box::new(directory(Path::new(path))?))),
        ("pmem", None) => Err("pmem needs the directory that it is mounted at".into()),
        (other, _) => Err(format!("'{other}' is neither dram nor pmem")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_directory(path: &Path) -> Result<MemoryDir, String> {
        Err(format!("{} is not there", path.display()))
    }

    fn read(text: &str, latency: Option<u32>) -> Result<Threads, String> {
        threads(text, latency, &no_directory)
    }

    fn some_directory(path: &Path) -> Result<MemoryDir, String> {
        let report = memgauge_render::read(include_bytes!("../../tests/results/pmem.json")).unwrap();
        let mut dir = report.plan.unwrap().directories[0].clone();
        dir.file.path = path.display().to_string();
        Ok(dir)
    }

    #[test]
    fn fields_of_a_line() {
        let got = read("# all\n\n 1-3,5  W5   rand 400000 dram 1 200\n4 R seq 2m dram\n", Some(0)).unwrap();
        let first = ThreadSpec {
            cpus: "1-3,5".parse().unwrap(),
            mix: Mix::R1W1,
            access: Access::Random,
            size: Some(Bytes::kib(400_000)),
            place: BufferPlace::Node(1),
            delay: Some(200),
            second: None,
        };
        assert_eq!(got.traffic[0], first);
        assert_eq!(
            (got.traffic[1].mix, got.traffic[1].size, &got.traffic[1].place),
            (Mix::AllReads, Some(Bytes::mib(2)), &BufferPlace::Local)
        );
        assert!(got.latency.is_none() && !got.pmem);
    }

    #[test]
    fn two_streams() {
        let got = read("0-7 W23 seq 1g dram 0 dram 2 25", None).unwrap();
        assert_eq!(got.traffic[0].second, Some(SecondStream { place: BufferPlace::Node(2), percent: 25 }));
        assert_eq!((got.traffic[0].mix, &got.traffic[0].place), (Mix::R3W1, &BufferPlace::Node(0)));
        assert_eq!(read("0 W21 seq 1g dram 0 dram 2 50", None).unwrap().traffic[0].mix, Mix::AllReads);
        assert_eq!(read("0 W27 rand 1g dram 0 dram 2 10", None).unwrap().traffic[0].mix, Mix::R2W1NtX1);
    }

    #[test]
    fn persistent_memory() {
        let got = threads("0  R seq  400000 pmem /pmemfs0\n1 W6 rand 1g pmem /pmemfs1\n", Some(0), &some_directory).unwrap();
        let path = |place: &BufferPlace| match place {
            BufferPlace::Directory(dir) => dir.file.path.clone(),
            _ => String::new(),
        };
        let (size, place) = got.latency.unwrap();
        assert_eq!((size, path(&place)), (Bytes::kib(400_000), "/pmemfs0".into()));
        assert_eq!((got.traffic[0].mix, path(&got.traffic[0].place)), (Mix::NtWrite, "/pmemfs1".into()));
        assert!(got.pmem);
    }

    #[test]
    fn the_last_line_of_a_cpu_counts_and_random_order_has_one_read_stream() {
        let got = read("0-3 R seq 1m dram\n0 R seq 2m dram 1\n0 R seq 4m dram\n2 W10 rand 1m dram\n", None).unwrap();
        let thread = |cpu| got.traffic.iter().find(|t| t.cpus.contains(cpu)).unwrap();
        assert_eq!((thread(0).size, thread(1).size, thread(2).mix), (Some(Bytes::mib(4)), Some(Bytes::mib(1)), Mix::R2W1NtX1));
        assert_eq!(got.traffic.iter().map(|t| t.cpus.len()).sum::<usize>(), 4);
        let beside = read("0-3 R seq 1m dram\n0 R seq 2m dram 1\n", Some(0)).unwrap();
        assert_eq!(beside.latency, Some((Bytes::mib(2), BufferPlace::Node(1))));
        assert_eq!(beside.traffic[0].cpus, "1-3".parse().unwrap());
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        for (text, word) in [
            ("1 R seq 1m", "line 1: has fewer"),
            ("\n#\nx R seq 1m dram", "line 3: 'x'"),
            ("1 W13 seq 1m dram", "W13"),
            ("1 X seq 1m dram", "'X'"),
            ("1 R linear 1m dram", "linear"),
            ("1 R seq 0 dram", "'0'"),
            ("1 R seq 1m hbm", "hbm"),
            ("1 R seq 1m dram x", "'x'"),
            ("1 R seq 1m dram 0 -5", "'-5'"),
            ("1 R seq 1m dram 0 5 6", "'6'"),
            ("1 R seq 1m pmem", "pmem needs"),
            ("1 R seq 1m pmem /nowhere", "/nowhere"),
            ("1 W21 seq 1m dram 0", "two places"),
            ("1 W21 seq 1m dram 0 dram 1 100", "'100'"),
            ("# nothing", "names no CPU"),
        ] {
            let why = read(text, Some(0)).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }

    #[test]
    fn comments_may_follow_fields_and_the_latency_cpu_may_be_alone() {
        let got = read("0-0 R seq 1m dram 0 # no load\n", Some(0)).unwrap();
        assert_eq!((got.traffic.len(), got.latency), (0, Some((Bytes::mib(1), BufferPlace::Node(0)))));
        assert!(read("0 R seq 1m dram\t # all of it", None).is_ok());
        assert!(read("0 R seq 1m dram #1", None).is_ok(), "a comment");
    }

    #[test]
    fn delays_are_numbers() {
        assert_eq!(delays("0\n 100 \n\n# more\n20000\n").unwrap(), [0, 100, 20000]);
        for bad in ["", "# x", "1\nx", "-1", "1.5", "99999999"] {
            assert!(delays(bad).is_err(), "{bad}");
        }
    }
}
