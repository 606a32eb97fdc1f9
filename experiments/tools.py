"""The peers: their programs, their commands for a row, and how their output is read.

To add a tool, write its ways to measure a row and its line in TOOLS.
"""

import collections
import math
import re
import statistics

# The window of window-local latencies: memgauge's own default, within reach of a first-level TLB of 96 entries and up with 4 KiB pages.
WINDOW = 512 << 10
# Distance between chased lines: two lines, because many prefetchers fetch pairs.
STRIDE = 128
MIB_S = 1_048_576 / 1e9

# A quantity: its name, and the mix of memgauge that moves the same bytes (None: a time).
Measure = collections.namedtuple("Measure", "name mix")
WINDOW_LATENCY = Measure("latency, window-local", None)
RANDOM_LATENCY = Measure("latency, full-random", None)
READS = Measure("reads", "all-reads")
COPY = Measure("copy", "copy")  # plain stores, a string instruction, or what libc chooses
COPY_NT = Measure("copy, NT stores", "1:1-nt")
TRIAD = Measure("triad", "3:1-x2")
TRIAD_NT = Measure("triad, NT stores", "triad")
WRITES = Measure("writes", "1:1")
WRITES_NT = Measure("writes, NT stores", "nt-write")
FILL = Measure("fill", "fill")
# Every tool has its own protocol: shown side by side, never as a ratio.
HAND_OFF = Measure("hand-off", None)


def spelled(size, blank=" "):
    """A size in the largest unit that divides it."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{blank}{unit}"
    return f"{size}{blank}B"


def cpu_list(cpus):
    """Numbers in the kernel's form: 0-3,8."""
    parts = []
    for cpu in cpus:
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


class Row(collections.namedtuple("Row", "measure bytes cpus base", defaults=(False,))):
    """A line of the table: a quantity, the bytes of all streams of one CPU, the CPUs, and whether in base pages (or else in huge ones)."""

    @property
    def name(self):
        if self.measure is HAND_OFF:
            return f"{self.measure.name}, CPUs {cpu_list(self.cpus)}"
        cpus = "1 CPU" if len(self.cpus) == 1 else f"{len(self.cpus)} CPUs"
        return f"{self.measure.name}, {spelled(self.bytes)}, {cpus}{', base pages' if self.base else ''}"

    @property
    def is_time(self):
        return self.measure.mix is None

    @property
    def unit(self):
        return "ns" if self.is_time else "GB/s"


class Call(collections.namedtuple("Call", "program args env cpus", defaults=((), None))):
    """A command. `cpus` are set by taskset; None for tools that pin themselves."""

    def line(self):
        """As one would type it, programs by their names."""
        words = [f"{name}={value}" for name, value in self.env]
        words += ["taskset", "-c", cpu_list(self.cpus)] if self.cpus else []
        return " ".join(words + [self.program.rsplit("/", 1)[-1], *self.args])


def call(program, *args, on=None, env=(), huge_malloc=True):
    """`huge_malloc`: glibc's malloc asks for transparent huge pages in what it maps (glibc 2.35 and later)."""
    tunables = (("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),) if huge_malloc else ()
    return Call(program, tuple(str(arg) for arg in args), tuple(env) + tunables, on)


# A way to do a row: which of the tool's, its command, and its figure in what it says (ns, or 10^9 application bytes a second).
Way = collections.namedtuple("Way", "name call read")
# What was found: programs by name, likwid-bench's kernels, the bytes of STREAM's arrays, whether all programs get huge pages.
Found = collections.namedtuple("Found", "files kernels stream_bytes thp_always", defaults=((), None, False))


class NoFigure(Exception):
    """The output has no figure for the row."""


def short(text):
    """The end of an output, for messages."""
    return " ".join(text.split()[-40:])


def number_after(text, label):
    """The first number after a label, which blanks, a colon, an equals sign or a bracket may follow."""
    found = re.search(re.escape(label) + r"[ \t:=(]*([0-9.e+-]+)", text)
    try:
        return float(found[1])
    except (TypeError, ValueError):
        raise NoFigure(f"no number after '{label}' in: {short(text)}") from None


def rate(label, factor):
    """Reads the number after a label, in units of 10^9 / factor."""
    return lambda text, row: number_after(text, label) * factor


# likwid-bench: `-w N:SIZE:n` is all streams of all threads together, on the first n CPUs of the node; its kB are 1000 bytes. It counts what loops
# load and store, not what stores read first. The scalar kernels are never the fastest.
LIKWID = {READS: "load", COPY: "copy", COPY_NT: "copy_mem", TRIAD: "stream", TRIAD_NT: "stream_mem", WRITES: "store", WRITES_NT: "store_mem"}


def likwid(row, found):
    if row.measure not in LIKWID or row.base:
        return
    # Bytes that a run moves: some tenths of a second from memory, and from a cache several times faster.
    work = 12 << 30 if row.bytes > 8 << 20 else 96 << 30
    size = f"N:{row.bytes * len(row.cpus) // 1000}kB:{len(row.cpus)}"
    for kernel in (f"{LIKWID[row.measure]}_{isa}" for isa in ("sse", "avx", "avx512", "neon")):
        if kernel in found.kernels:
            command = call(found.files["likwid-bench"], "-t", kernel, "-w", size, "-i", max(work // row.bytes, 10))
            yield Way(kernel, command, rate("MByte/s", 1e-3))


def likwid_kernels(text):
    """Names that `likwid-bench -a` lists."""
    return tuple(line.split(" - ")[0].strip() for line in text.splitlines() if " - " in line)


# multichase and multiload: sizes in bytes, transparent huge pages with -H, threads on the CPUs that they may use. multiload's -m is one thread's
# memory, all streams together, and its rates are MiB/s.
def multichase(row, found):
    if row.measure not in (WINDOW_LATENCY, RANDOM_LATENCY):
        return
    window = min(WINDOW, row.bytes) if row.measure is WINDOW_LATENCY else row.bytes
    args = ["-v", "-m", row.bytes, "-s", STRIDE, "-T", window, "-n", 2] + ([] if row.base else ["-H"])
    yield Way("simple", call(found.files["multichase"], *args, on=row.cpus, huge_malloc=False), read_chase)


def read_chase(text, row):
    """The median of its samples. Alone it prints the best one."""
    samples = [float(number) for number in re.findall(r"avg=([0-9.]+)", text)]
    if not samples:
        raise NoFigure(f"no sample in: {short(text)}")
    return statistics.median(samples)


# libc's memcpy chooses its stores by size: with huge ones it is a copy with non-temporal stores.
LOADS = {
    READS: ["stream-sum"],
    COPY: ["memcpy-libc"],
    COPY_NT: ["memcpy-libc"],
    TRIAD: ["stream-triad"],
    TRIAD_NT: ["stream-triad-nontemporal-injection-delay", "-d", "0"],
    FILL: ["memset-libc"],
}


def multiload(row, found):
    if row.measure in LOADS and not row.base:
        load = LOADS[row.measure]
        args = ["-H", "-t", len(row.cpus), "-m", row.bytes, "-n", 1, "-l", *load]
        yield Way(load[0], call(found.files["multiload"], *args, on=row.cpus, huge_malloc=False), read_load)


def read_load(text, row):
    """The average of the threads' sum, in the column of this name."""
    lines = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    for at, names in enumerate(lines):
        if "LdAvgMibs" in names:
            column = names.index("LdAvgMibs")
            rates = [fields[column] for fields in lines[at + 1 :] if len(fields) > column and re.fullmatch(r"[0-9.]+", fields[column])]
            if len(rates) == 1:
                return float(rates[0]) * MIB_S
    raise NoFigure(f"no LdAvgMibs in: {short(text)}")


# STREAM: loops over three static arrays whose size is compiled in, in base pages unless the kernel gives huge ones to all. Its figure is the best
# of its passes but the first.
STREAM = ("stream", "stream_c", "stream_c.exe", "stream_omp")


def stream_program(found):
    return next((found.files[name] for name in STREAM if name in found.files), None)


def stream(row, found):
    if row.base != found.thp_always and row.measure in (COPY, COPY_NT, TRIAD) and row.bytes >= 64 << 20:
        env = (("OMP_NUM_THREADS", len(row.cpus)), ("OMP_PROC_BIND", "true"))
        yield Way("", call(stream_program(found), on=row.cpus, env=env, huge_malloc=False), read_stream)


def stream_bytes(text):
    """The three arrays together, as its head states them."""
    return int(number_after(text, "Total memory required") * 1_048_576)


def read_stream(text, row):
    if "Solution Validates" not in text:
        raise NoFigure(f"its results do not validate: {short(text)}")
    return number_after(text, "\nTriad:" if row.measure is TRIAD else "\nCopy:") / 1e3


# X-Mem: -w is KiB of one thread's working set, its rates are MiB/s. Its random order is a shuffle of all words and no single cycle. Its memory is
# in base pages, which makes hardly any difference below one huge page.
def xmem(row, found):
    if row.base == (row.bytes < 2 << 20):
        return
    size, threads = f"-w{row.bytes >> 10}", f"-j{len(row.cpus)}"
    if row.measure is RANDOM_LATENCY:
        yield Way("-l", call(found.files["xmem"], "-l", size, "-n1", "-j1", "-u", on=row.cpus, huge_malloc=False), summed_up("ns/access", 1))
    which = {READS: "-R", WRITES: "-W"}.get(row.measure)
    if which:
        args = ["-t", size, "-n1", threads, "-u", "-c256", "-s", "-S1", which]
        yield Way(which, call(found.files["xmem"], *args, on=row.cpus, huge_malloc=False), summed_up("MB/s", MIB_S))


def summed_up(unit, factor):
    """Reads the figure before a unit in the last line that sums up a benchmark's iterations."""

    def read(text, row):
        found = re.findall(rf"^\s*Median:\s*([0-9.]+)\s.*{unit}|^\s*Median:\s*([0-9.]+) {unit}", text, re.M)
        if not found:
            raise NoFigure(f"no median in {unit} in: {short(text)}")
        return float(found[-1][0] or found[-1][1]) * factor

    return read


# tinymembench: one run of all its tests between two buffers of 32 MiB on one CPU. Rates are decimal and count a byte copied once. Its latencies
# are what a random read costs more than a hit in the first-level cache, so they are not compared.
def is_nt(name):
    return "nontemporal" in name or "NT" in name


KINDS = {
    COPY: lambda name: "copy" in name and not is_nt(name) or "memcpy" in name,
    COPY_NT: lambda name: "copy" in name and is_nt(name) or "memcpy" in name,
    WRITES: lambda name: "fill" in name and not is_nt(name) and "STOS" not in name,
    WRITES_NT: lambda name: "fill" in name and is_nt(name),
    FILL: lambda name: "memset" in name or "STOS" in name,
}


def tinymembench(row, found):
    if row.measure in KINDS and row.bytes == 64 << 20 and len(row.cpus) == 1 and not row.base:
        yield Way("fastest of its kind", call(found.files["tinymembench"], on=row.cpus), read_tinymembench)


def read_tinymembench(text, row):
    """The fastest test that does what the row says, by its description."""
    tests = re.findall(r"^(.*?) : +([0-9.]+) MB/s", text, re.M)
    rates = [float(number) for name, number in tests if KINDS[row.measure](name)]
    if not rates:
        raise NoFigure(f"no such test in: {short(text)}")
    return (2 if row.measure in (COPY, COPY_NT) else 1) * max(rates) / 1e3


# mbw: copies between two arrays of whole MiB by libc or word by word; MiB/s, a byte copied counts once. Its third way (-t2) does not take part:
# version 1.2.2 never moves on in the source, so that all but its first block of 256 KiB come from the cache.
def mbw(row, found):
    mib = row.bytes // 2 >> 20
    if len(row.cpus) == 1 and mib and not row.base and row.measure in (COPY, COPY_NT):
        # A few milliseconds a pass in a cache: more of them.
        passes = min(max(1024 // mib, 4), 200)
        for name, which in (("memcpy", "-t0"), ("dumb", "-t1")):
            yield Way(name, call(found.files["mbw"], "-q", which, "-n", passes, mib, on=row.cpus), read_mbw)


def read_mbw(text, row):
    average = next((line for line in text.splitlines() if line.startswith("AVG")), "")
    return 2 * number_after(average, "Copy:") * MIB_S


# sysbench: words read from, or written to, each thread's own block. A block is one event of its framework, whose cost is below a percent from 1 MiB.
def sysbench(row, found):
    operation = {READS: "read", WRITES: "write"}.get(row.measure)
    if operation and not row.base and row.bytes >= 1 << 20:
        args = ["memory", f"--memory-block-size={row.bytes >> 10}K", "--memory-total-size=1000T", "--memory-scope=local"]
        args += [f"--memory-oper={operation}", f"--threads={len(row.cpus)}", "--time=1", "run"]
        yield Way(operation, call(found.files["sysbench"], *args, on=row.cpus), read_sysbench)


def read_sysbench(text, row):
    # The rate stands in brackets behind the amount.
    return number_after(text, "MiB transferred") * MIB_S


# lmbench: its own calibration does not end on a busy machine, so its results are given to it: the time of a measurement in microseconds, and no
# overhead. It writes to standard error; megabytes are decimal; a byte copied counts once. `rd` and `wr` touch one word of four and count them all.
LMBENCH = {READS: (["frd"], 1), WRITES: (["fwr"], 1), FILL: (["bzero"], 1), COPY: (["fcp", "bcopy"], 2), COPY_NT: (["bcopy"], 2)}


def lmbench(row, found):
    def calibrated(microseconds):
        return (("ENOUGH", microseconds), ("TIMING_O", 0), ("LOOP_O", 0))

    if row.base:
        return
    if row.measure is RANDOM_LATENCY and "lat_mem_rd" in found.files:
        args = ["-W", 0, "-N", 1, "-t", max(row.bytes >> 20, 1), STRIDE]
        yield Way("lat_mem_rd -t", call(found.files["lat_mem_rd"], *args, on=row.cpus, env=calibrated(10000)), read_lat_mem_rd)
    operations, arrays = LMBENCH.get(row.measure, ([], 1))
    for operation in operations if "bw_mem" in found.files else []:
        args = ["-W", 0, "-N", 3, "-P", len(row.cpus), row.bytes // arrays, operation]
        read = read_bw_mem if arrays == 1 else lambda text, row: 2 * read_bw_mem(text, row)
        yield Way(f"bw_mem {operation}", call(found.files["bw_mem"], *args, on=row.cpus, env=calibrated(100000)), read)


def pairs(text):
    """Lines that are two numbers."""
    return [(float(a), float(b)) for a, b in re.findall(r"^\s*([0-9.]+)\s+([0-9.]+)\s*$", text, re.M)]


def read_bw_mem(text, row):
    if not pairs(text):
        raise NoFigure(f"no rate in: {short(text)}")
    return pairs(text)[-1][1] / 1e3


def read_lat_mem_rd(text, row):
    """The latency of the size nearest to the row's, if it is within a quarter of it."""
    wanted = row.bytes / 1_048_576
    near = [(abs(math.log(size / wanted)), ns) for size, ns in pairs(text) if abs(math.log(size / wanted)) < math.log(1.25)]
    if not near:
        raise NoFigure(f"no latency at {wanted:g} MiB in: {short(text)}")
    return min(near)[1]


# core-to-core-latency: a compare-and-swap that two cores win in turn on one line, half of a round trip: another quantity than the fetch of a
# modified line.
def core_to_core(row, found):
    if row.measure is HAND_OFF:
        pair = ",".join(str(cpu) for cpu in row.cpus)
        args = [1000, 300, "-b", 1, "--csv", "-c", pair]
        yield Way("compare-and-swap", call(found.files["core-to-core-latency"], *args, huge_malloc=False), read_core_to_core)


def read_core_to_core(text, row):
    """The one number of the matrix that --csv prints for two cores."""
    for field in (field.strip() for line in text.splitlines() if "," in line for field in line.split(",")):
        if re.fullmatch(r"[0-9.]+", field):
            return float(field)
    raise NoFigure(f"no number in: {short(text)}")


# A peer: its name, its programs, its ways to measure a row (the fastest in a trial takes part), the command that names its version and the words
# before that, whether it prints the best of its passes (memgauge's best burst is then compared), and why it runs only if it is named.
Tool = collections.namedtuple("Tool", "name files ways version prints_best slow", defaults=(None, False, None))

TOOLS = [
    Tool("likwid-bench", ["likwid-bench"], likwid, version=(["-v"], "Version")),
    Tool("multichase", ["multichase"], multichase),
    Tool("multiload", ["multiload"], multiload),
    Tool("STREAM", STREAM, stream, prints_best=True),
    Tool("X-Mem", ["xmem"], xmem),
    Tool(
        "tinymembench",
        ["tinymembench"],
        tinymembench,
        slow="it has no choice of tests and runs them all, for minutes, on buffers of 32 MiB, which large caches hold: give --size 64M",
    ),
    Tool("mbw", ["mbw"], mbw),
    Tool("sysbench", ["sysbench"], sysbench, version=(["--version"], "sysbench")),
    Tool(
        "lmbench",
        ["bw_mem", "lat_mem_rd"],
        lmbench,
        slow="lat_mem_rd measures every size up to the one asked for, some hundred of them, and has no other way",
    ),
    Tool("core-to-core-latency", ["core-to-core-latency"], core_to_core),
]


def ways(tool, row, found):
    """A tool's ways to measure a row; empty where it cannot or is not there."""
    return list(tool.ways(row, found)) if any(name in found.files for name in tool.files) else []
