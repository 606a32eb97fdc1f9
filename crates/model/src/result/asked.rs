//! The measurement that a command line asked for, apart from where the result goes.

/// Options that change what is written or what the result is compared with, and not what is measured; and whether a value follows.
pub const OUTPUT_OPTIONS: [(&str, bool); 22] = [
    ("format", true),
    ("output", true),
    ("out", true),
    ("quiet", false),
    ("verbose", false),
    ("label", true),
    ("no-host-identity", false),
    ("panel", true),
    ("figure-width", true),
    ("no-title", false),
    ("against", true),
    ("baseline", true),
    ("rules", true),
    ("limit", true),
    ("state", true),
    ("keep", true),
    ("lock-wait", true),
    ("wait-quiet", true),
    ("for", true),
    ("lines", true),
    ("textfile", true),
    ("listen", true),
];

/// What a run was asked to measure. It is the same for all runs of one command line, wherever their results go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The command: `quick`, `bandwidth`; `suite` where none is named.
    pub task: String,
    /// Its options, as they were given.
    pub options: String,
}

impl Asked {
    /// From a command line with the program's name; `None` if it is empty.
    pub fn from_words<'a>(argv: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut words = argv.into_iter();
        words.next()?;
        let mut words = words.peekable();
        let task = words.next_if(|word| !word.starts_with('-')).unwrap_or("suite").to_owned();
        let mut kept: Vec<String> = Vec::new();
        while let Some(word) = words.next() {
            if word == "--" {
                // The program that is counted. Its arguments are its own.
                kept.extend(words.next().map(str::to_owned));
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                match OUTPUT_OPTIONS.iter().find(|(output, _)| *output == name) {
                    Some((_, true)) if value.is_none() => drop(words.next()),
                    Some(_) => {}
                    None => kept.push(word.to_owned()),
                }
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                let own = letters.trim_start_matches(['q', 'v']);
                match own.strip_prefix('o') {
                    Some("") => drop(words.next()),
                    Some(_) => {}
                    None if own.is_empty() => {}
                    None => kept.push(format!("-{own}")),
                }
            } else {
                kept.push(word.to_owned());
            }
        }
        Some(Self { task, options: shortened(kept.join(" ")) })
    }
}

/// Options that are longer than this are cut: they are a label of every series.
const MAX_OPTIONS: usize = 200;

/// Cuts long options and adds a hash of the whole, so that they differ from others with the same beginning.
fn shortened(options: String) -> String {
    if options.len() <= MAX_OPTIONS {
        return options;
    }
    // FNV-1a of 64 bits.
    let hash = options.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let cut = (0..=MAX_OPTIONS).rev().find(|at| options.is_char_boundary(*at)).unwrap_or(0);
    format!("{}… {hash:016x}", &options[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> (String, String) {
        let asked = Asked::from_words(line.split(' ')).unwrap();
        (asked.task, asked.options)
    }

    #[test]
    fn what_is_measured_is_kept_and_where_it_goes_is_not() {
        let own = |task: &str, options: &str| (task.to_owned(), options.to_owned());
        assert_eq!(asked("memgauge"), own("suite", ""));
        assert_eq!(asked("memgauge -q -o a.prom"), own("suite", ""));
        assert_eq!(asked("memgauge quick --cpu 0-3 -qo a.prom --node=1"), own("quick", "--cpu 0-3 --node=1"));
        assert_eq!(
            asked("memgauge quick --output=a.prom -ob.json -vq --label a=b --label=c=d --against x --wait-quiet 1m"),
            own("quick", "")
        );
        assert_eq!(asked("memgauge bandwidth --pages 2m --size 1G"), own("bandwidth", "--pages 2m --size 1G"));
        assert_eq!(asked("memgauge stream 1G --format openmetrics"), own("stream", "1G"));
        assert_eq!(asked("memgauge count -qr 3 -o a.prom -- program --token secret"), own("count", "-r 3 program"));
        assert_eq!(Asked::from_words([]), None);
    }

    #[test]
    fn long_options_are_cut_and_still_differ() {
        let long = |end: &str| asked(&format!("memgauge run {}{end}", "é".repeat(5000))).1;
        assert!(long("a").len() < 250 && long("a") != long("b"), "{}", long("a"));
    }
}
