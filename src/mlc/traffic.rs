//! Letters → traffic: what each thread does (`-o`), and how (`-U`, `-l`, `-K`, `-I`, `-P`, `-Q`, `-M`, `-Y`, `-Z`), as far as this CPU has
//! kernels for it.

use memgauge_kernels::Order;
use memgauge_model::spec::{BufferPlace, LoadedSpec, Spec, TrafficSpec, WidthRequest};
use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};
use memgauge_model::units::Bytes;

use super::files;
use super::sections::{LINE, Translator};
use crate::contents;

/// Without `-K`, the original touches parts of lines in buffers of fewer bytes, with these mixes.
const PARTS_BELOW: Bytes = Bytes(50_000_000);
const PARTS: [Mix; 4] = [Mix::AllReads, Mix::R2W1, Mix::R3W1, Mix::R1W1];

impl Translator<'_> {
    /// `-o`: what each thread does. Returns whether one of the buffers is persistent memory.
    pub(super) fn threads(&mut self, spec: &mut Spec, loaded: &mut LoadedSpec, latency_cpu: Option<u32>) -> Result<bool, String> {
        let Some(path) = &self.letters.threads else { return Ok(false) };
        let text = (self.inputs.read)(path)?;
        let threads = files::threads(&text, latency_cpu, self.inputs.directory).map_err(|why| format!("{}: {why}", path.display()))?;
        let l = self.letters;
        let said_by_lines = [
            (l.mix.is_some(), "-W, -R"),
            (l.loaders.is_some(), "-k, -m"),
            (l.random_traffic, "-U"),
            (l.shared, "-u"),
            (l.random_window_lines.is_some(), "-n"),
        ];
        for (given, letters) in said_by_lines {
            if given {
                self.note(format!("{letters}: no effect on traffic with -o, whose lines say that of each CPU"));
            }
        }
        spec.cpus = None;
        loaded.traffic.threads = threads.traffic;
        let Some((size, place)) = threads.latency else {
            loaded.chase.buffer = self.letters.buffer;
            return Ok(threads.pmem);
        };
        loaded.chase.buffer = Some(size);
        if place != BufferPlace::Local {
            for (given, letter) in [(loaded.chase.touch.take().is_some(), "-i"), (self.letters.node.is_some(), "-j")] {
                if given {
                    self.note(format!("{letter}: no effect where -o says where the latency buffer is"));
                }
            }
        }
        match place {
            BufferPlace::Local => {}
            BufferPlace::Node(node) => loaded.curve.node = Some(node),
            BufferPlace::Directory(dir) => (spec.memory_dir, loaded.curve.node) = (Some(*dir), None),
        }
        Ok(threads.pmem)
    }

    /// `-P` and `-Q`: stored lines are written back; with `-P` only if there is persistent memory.
    pub(super) fn flush(&mut self, traffic: &mut TrafficSpec, pmem: bool) {
        let l = self.letters;
        // The threads of a file replace the mixes, and have orders of their own.
        let mixes: Vec<(Mix, Access)> = match traffic.threads.as_slice() {
            [] => traffic.load.mixes.iter().map(|mix| (*mix, traffic.access)).collect(),
            threads => threads.iter().map(|t| (t.mix, t.access)).collect(),
        };
        // Non-temporal stores leave nothing in caches that could be written back. Of the lines of a file, any may have others.
        let any = !traffic.threads.is_empty();
        let mut storing = mixes.iter().filter(|(mix, _)| mix.lines().1 > 0 && (any || !mix.non_temporal()));
        let stores = storing.clone().next().is_some();
        match (l.flush || (l.flush_pmem && pmem), l.flush || l.flush_pmem) {
            (true, _) if stores && !storing.any(|(_, access)| *access == Access::Sequential) => {
                self.note("-P, -Q: no effect on traffic that is not sequential");
            }
            (true, _) if stores => {
                traffic.line = LineUse::WrittenBack;
                self.fit(traffic);
            }
            (_, true) if !stores => self.note("-P, -Q: no effect on traffic without stores through the caches"),
            (false, true) => self.note("-P: no effect: no buffer is persistent memory"),
            _ => {}
        }
    }

    /// Applies the letters about traffic, within the limits of this CPU's kernels. `parts`: small buffers may be loaded in parts of lines.
    pub(super) fn traffic(&mut self, traffic: &mut TrafficSpec, parts: bool) -> Result<(), String> {
        let l = self.letters;
        // The lines of a file give each CPU a buffer of its own.
        traffic.shared = l.shared && traffic.threads.is_empty();
        if let Some(path) = &l.contents {
            traffic.contents = contents::parse(&(self.inputs.read)(path)?).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        let stride = u64::from(l.stride.unwrap_or(0)).next_multiple_of(self.inputs.line());
        if !traffic.threads.is_empty() {
            if stride > self.inputs.line() {
                self.note("-l: with -o, it is the stride of the latency CPU only: lines say seq or rand");
            }
        } else if l.random_traffic {
            traffic.access = Access::Random;
            traffic.window = l.random_window_lines.filter(|&n| n > 0).map(|n| self.random_window(n));
        } else {
            if l.random_window_lines.is_some() {
                self.note("-n: no effect without -U");
            }
            if stride > self.inputs.line() {
                traffic.access = Access::Strided;
                traffic.stride = Some(Bytes(stride));
            }
        }
        let ordered = traffic.access == Access::Sequential;
        let part = l.part_of_line.unwrap_or_else(|| ordered && parts && self.parts_by_default(traffic));
        let unordered = traffic.threads.iter().any(|t| t.access != Access::Sequential);
        if (l.checked || l.part_of_line == Some(true)) && unordered {
            self.note("-K, -I: no effect on the CPUs whose lines of -o say rand: what they read is not checked");
        }
        if (l.checked || part) && !ordered {
            self.note("-K, -I: no effect on traffic that is not sequential");
        } else if l.checked {
            traffic.line = LineUse::Checked;
        } else if part {
            traffic.line = LineUse::Part;
        }
        self.fit(traffic);
        Ok(())
    }

    /// A window of this number of lines, or of the fewest that have a random order.
    fn random_window(&mut self, lines: u32) -> Bytes {
        let least = Order::MIN_LINES as u32;
        if lines < least {
            self.note(format!("-n{lines}: the smallest window of random traffic has {least} lines, and is used"));
        }
        Bytes(u64::from(lines.max(least)) * LINE)
    }

    /// Whether parts of lines are touched without `-K`: in small buffers, if this CPU has kernels for it.
    fn parts_by_default(&self, traffic: &TrafficSpec) -> bool {
        let kernel = |mix: Mix| self.inputs.kernels.iter().any(|k| k.mix == mix && k.form.line == LineUse::Part);
        traffic.threads.is_empty()
            && self.letters.buffer.is_some_and(|b| b < PARTS_BELOW)
            && traffic.load.mixes.iter().all(|mix| PARTS.contains(mix) && kernel(*mix))
    }

    /// Drops what no kernel of this CPU can do, and chooses the width: 16 bytes on x86-64 as in the original, or that of `-Y` and `-Z`.
    fn fit(&mut self, traffic: &mut TrafficSpec) {
        let requested = self.letters.width.unwrap_or(Width::Sse2);
        if traffic.access == Access::Random {
            traffic.load.mixes.iter_mut().for_each(|m| *m = m.with_one_read_stream());
        }
        let kernels = self.inputs.kernels;
        if kernels.is_empty() {
            traffic.load.width = WidthRequest::Is(requested);
            return;
        }
        let has = |traffic: &TrafficSpec, width: Option<Width>| {
            let one = |mix: Mix, access: Access| {
                let form = Form::new(mix, access, traffic.line);
                kernels.iter().any(|k| k.mix == mix && k.form == form && width.is_none_or(|w| k.width == w))
            };
            // The threads of a file replace the mixes.
            match traffic.threads.as_slice() {
                [] => traffic.load.mixes.iter().all(|m| one(*m, traffic.access)),
                threads => threads.iter().all(|t| one(t.mix, t.access)),
            }
        };
        let mut mixes: Vec<&str> = match traffic.threads.as_slice() {
            [] => traffic.load.mixes.iter().map(|m| m.name()).collect(),
            threads => threads.iter().map(|t| t.mix.name()).collect(),
        };
        mixes.sort_unstable();
        mixes.dedup();
        let mixes = mixes.join(", ");
        if !has(traffic, None) && traffic.line != LineUse::Whole {
            let letters = match traffic.line {
                LineUse::Checked => "-I",
                LineUse::Part => "-K",
                _ => "-P, -Q",
            };
            let several = if mixes.contains(',') { "all of " } else { "" };
            self.note(format!("{letters}: no kernel of this CPU does that with {several}{mixes}; whole lines are loaded and stored"));
            traffic.line = LineUse::Whole;
        }
        if !has(traffic, None) && traffic.access != Access::Sequential {
            self.note(format!("-U, -l: no kernel of this CPU does that with {mixes}; lines are visited in order"));
            (traffic.access, traffic.stride, traffic.window) = (Access::Sequential, None, None);
        }
        let widths = [Width::Avx512, Width::Avx2, Width::Sse2, Width::Neon];
        let from = widths.iter().position(|w| *w == requested).unwrap_or(0);
        let found = widths[from..].iter().copied().find(|w| has(traffic, Some(*w)));
        traffic.load.width = found.map_or(WidthRequest::Best, WidthRequest::Is);
        if self.letters.width.is_some() && found != Some(requested) {
            let letter = if requested == Width::Avx512 { 'Z' } else { 'Y' };
            let instead = found.map_or("the fastest there is".to_owned(), |w| w.to_string());
            self.note(format!("-{letter}: this CPU has no {requested} kernel for this traffic; {instead} is used"));
        }
    }
}
