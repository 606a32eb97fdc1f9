#!/usr/bin/env python3
"""Compares memgauge with other public benchmarks, run by run in turn.

    python3 experiments/peers.py --with FOLDER --list                # which are found, in FOLDER and on PATH, and for which rows
    python3 experiments/peers.py --with FOLDER --raw runs.tsv        # all rows, seven rounds: half an hour and more
    python3 experiments/peers.py --with FOLDER --only likwid-bench --row 'reads, 512 MiB'

In each round every tool of a row runs once, and who begins changes from round to round; a ratio is of two runs of the same round, so that what
drifts hits both. Nothing of the peers is in this repository: they are found on PATH or in a folder, already built.
"""

import argparse
import collections
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

import tools
from common import build
from tools import HAND_OFF, RANDOM_LATENCY, STRIDE, WINDOW, WINDOW_LATENCY, Call, Found, NoFigure, Row, Way, short, spelled, ways

# A tool that has not ended by then is stuck; the second is for tools that run only when named.
LIMIT, SLOW_LIMIT = 90, 600
# Others' share from which on a comparison is one of schedulers.
BUSY = 0.15
# When a tool's pages are read; what counts is the reading with the most memory. Each walks its page tables, so there are few.
PAGES_AFTER = (0.4, 1.2)
# Less than this is no difference: code placement and the choice of pages move a loop by as much from one build to the next.
SAME = 0.02
# A folder given is searched this deep: sources are built in tool/, tool/src/ or tool/target/release/.
MAX_DEPTH = 4

Output = collections.namedtuple("Output", "text seconds others huge")


# Statistics of one tool's figures, by round; None where a run has none.
def quantile(ordered, q):
    position = (len(ordered) - 1) * q
    low, high = ordered[int(position)], ordered[min(int(position) + 1, len(ordered) - 1)]
    return low + (high - low) * (position - int(position))


def median_interval(ordered):
    """The 95 % interval of the median by order statistics; None below six values."""
    n, probability, tail, below = len(ordered), 0.5 ** len(ordered), 0.5 ** len(ordered), 0
    if tail > 0.025:
        return None
    while True:
        probability *= (n - below) / (below + 1)
        tail += probability
        if tail > 0.025:
            return ordered[below], ordered[n - 1 - below]
        below += 1


Ratio = collections.namedtuple("Ratio", "n median quartiles interval")


def ratio(a, b):
    """The ratios of the rounds, a over b; None if no round has both."""
    ordered = sorted(x / y for x, y in zip(a, b) if x is not None and y is not None)
    if not ordered:
        return None
    return Ratio(len(ordered), quantile(ordered, 0.5), (quantile(ordered, 0.25), quantile(ordered, 0.75)), median_interval(ordered))


def verdict(found, is_time):
    """What the data support: the interval must exclude 1 and the median differ by more than 2 %."""
    if not found.interval:
        return "too few rounds"
    low, high = found.interval
    if low > 1 and found.median > 1 + SAME:
        return "higher" if is_time else "ahead"
    if high < 1 and found.median < 1 - SAME:
        return "lower" if is_time else "**behind**"
    return "no difference shown"


# Running a tool once, and what disturbed it.
def ticks():
    """CPU time of the machine, all and busy, and of this process's children that ended; None if the kernel does not report it."""
    try:
        with open("/proc/stat") as stat:
            user, nice, system, idle, wait, irq, softirq, steal = (int(field) for field in stat.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    children = sum(os.times()[2:4]) * os.sysconf("SC_CLK_TCK")
    return busy + idle + wait + steal, busy, children


def others_between(before, after):
    """The share of the machine that other processes used."""
    all_, busy, children = (max(b - a, 0) for a, b in zip(before, after))
    return max(busy - children, 0) / max(all_, 1)


def memory(rollup):
    """KiB of anonymous memory, and its share in huge pages, from /proc/PID/smaps_rollup; None if there is none."""
    kib = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+) kB", rollup, re.M)}
    return (kib["Anonymous"], kib.get("AnonHugePages", 0) / kib["Anonymous"]) if kib.get("Anonymous") else None


def run(command, limit=LIMIT):
    """Runs a command to its end. Its exit status is the reader's business: some tools end with an odd one."""
    words = [command.program, *command.args]
    if command.cpus:
        words = ["taskset", "-c", tools.cpu_list(command.cpus), *words]
    environment = dict(os.environ, **{name: str(value) for name, value in command.env})
    before, began = ticks(), time.monotonic()
    try:
        # A group of its own: some tools fork their workers, which would outlive them.
        child = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise NoFigure(f"cannot start {command.line()}: {error.strerror}") from None
    pages = []

    def look():
        try:
            with open(f"/proc/{child.pid}/smaps_rollup") as rollup:
                pages.append(memory(rollup.read()))
        except OSError:
            pass  # it has ended

    looks = [threading.Timer(after, look) for after in PAGES_AFTER]
    for timer in looks:
        timer.start()
    try:
        text = b"\n".join(child.communicate(timeout=limit)).decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise NoFigure(f"not done after {limit} s: {command.line()}") from None
    finally:
        for timer in looks:
            timer.cancel()
    seconds, after = time.monotonic() - began, ticks()
    others = others_between(before, after) if before and after else None
    return Output(text, seconds, others, max(filter(None, pages), default=(0, None))[1])


# memgauge itself, as a row asks for it.
def own_way(program, row):
    cpus, pages = tools.cpu_list(row.cpus), "4k" if row.base else "thp"
    if row.measure is HAND_OFF:
        args = ["c2c", "--cpu", cpus]
    elif row.is_time:
        args = ["latency", "--cpu", cpus, "--size", spelled(row.bytes, ""), "--stride", spelled(STRIDE, ""), "--pages", pages]
    else:
        args = ["bandwidth", "--mix", row.measure.mix, "--cpu", cpus, "--size", spelled(row.bytes, ""), "--pages", pages]
    if row.is_time and row.bytes > WINDOW:
        args += ["--window", spelled(WINDOW, "")]
    # As long as the peers' own runs.
    return Way("", Call(program, (*args, "--budget", "1s", "--format", "json")), lambda text, row: value_of(cell(text, row)))


def first_json(text):
    """The first JSON value of its output; standard error follows it."""
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except ValueError:
        raise NoFigure(f"no result: {short(text)}") from None


def cell(text, row):
    """The row's cell."""
    experiment = "cache-to-cache" if row.measure is HAND_OFF else "idle-latency" if row.is_time else "bandwidth"
    cells = [c for c in first_json(text)["results"] if c["experiment"] == experiment and c["at"].get("mix") == row.measure.mix]
    if not cells:
        raise NoFigure(f"no {row.measure.name} in its result")
    wanted = {WINDOW_LATENCY: ("order", "window-local"), RANDOM_LATENCY: ("order", "full-random"), HAND_OFF: ("state", "hitm")}
    key, value = wanted.get(row.measure, ("mix", row.measure.mix))
    # A buffer of no more than a window has one order.
    return next((c for c in cells if c["at"].get(key) == value), cells[0])


def value_of(found):
    if found["value"] is None:
        why = found.get("not_measured") or {}
        raise NoFigure(f"not measured: {why.get('detail') or why.get('cause') or 'no reason given'}")
    return found["value"]


def best_burst(text, row):
    """The highest median of a burst, for tools that print the best of their passes: a burst reads a buffer of 1.5 GB about once."""
    bursts = [statistics.median(burst) for burst in cell(text, row).get("samples", {}).get("bursts", []) if burst]
    return max(bursts, default=None)


# Rows.
def last_level_cache(caches, cpu):
    return next((c for c in reversed(caches) if cpu in cpus_of(c["cpus"])), None)


def cpus_of(text):
    numbers = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        last, _, step = last.partition(":")
        numbers.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return numbers


def levels(machine, cpu, asked):
    """Sizes in L1, L2, the last-level cache and memory, and whether each is memory: divided among CPUs, and worth stores past the caches."""
    caches = machine["topology"]["caches"]
    last = last_level_cache(caches, cpu)
    last = last if last and last["level"] > 2 else None
    if asked:
        return [(size, size > (last["size"] if last else 4 << 20)) for size in asked]
    # Half of a first-level data cache of 32 KiB, which is the smallest in use.
    sizes = [16 << 10]
    second = next((c["size"] // max(len(cpus_of(c["cpus"])), 1) for c in caches if c["level"] == 2 and cpu in cpus_of(c["cpus"])), None)
    sizes += [second // 2] if second else []
    # A quarter of the CPU's share: guests are often shown more cache than they get.
    sizes += [max(last["size"] // max(len(cpus_of(last["cpus"])), 1) // 4, 2 * (second or 0))] if last else []
    all_last = sum(c["size"] for c in caches if last and c["level"] == last["level"])
    # What the public figures for this kind of machine were measured with.
    return [(size, False) for size in sizes] + [(max(512 << 20, 4 * all_last), True)]


IN_CACHE = (tools.READS, tools.COPY, tools.TRIAD, tools.WRITES, tools.FILL)
IN_MEMORY = (tools.READS, tools.COPY, tools.COPY_NT, tools.TRIAD, tools.TRIAD_NT, tools.WRITES, tools.WRITES_NT, tools.FILL)


def groups(machine, asked, stream_bytes):
    """All rows, in groups whose tools run in turn: what one run of a tool tells for several rows is then one run a round."""
    cpus = cpus_of(machine["allowed"]["cpus"])
    one, sizes = tuple(cpus[:1]), levels(machine, cpus[0], asked)
    found = []
    for size, memory_ in sizes:
        orders = (WINDOW_LATENCY, RANDOM_LATENCY) if memory_ else (RANDOM_LATENCY,)
        found.append([Row(measure, size, one) for measure in orders])
        if memory_:
            found.append([Row(measure, size, one, base=True) for measure in (RANDOM_LATENCY, tools.READS, tools.WRITES)])
    for count in dict.fromkeys((one, tuple(cpus))):
        for size, memory_ in sizes:
            size = max(size // len(count), 1 << 20) if memory_ else size
            found.append([Row(measure, size, count) for measure in (IN_MEMORY if memory_ else IN_CACHE)])
        if stream_bytes:
            measures = (tools.COPY, tools.COPY_NT, tools.TRIAD)
            found.append([Row(measure, stream_bytes // len(count), count, base=True) for measure in measures])
    return found + ([[Row(HAND_OFF, 0, tuple(cpus[:2]))]] if len(cpus) > 1 else [])


# Finding the peers.
def find(folder, path):
    """All tools' programs in a folder, nearest first, and then on PATH."""
    below, level = [], [folder] if folder else []
    for _ in range(MAX_DEPTH + 1):
        entries = [os.path.join(parent, name) for parent in level for name in sorted(os.listdir(parent))]
        level = [entry for entry in entries if os.path.isdir(entry)]
        below += [entry for entry in entries if not os.path.isdir(entry)]

    def programs(name):
        yield from (entry for entry in below if os.path.basename(entry) == name)
        yield from (os.path.join(parent, name) for parent in path.split(":") if parent)

    usable = {}
    for name in (name for tool in tools.TOOLS for name in tool.files):
        program = next((p for p in programs(name) if os.path.isfile(p) and os.access(p, os.X_OK)), None)
        if program:
            usable[name] = program
    return usable


def learn(files):
    """What must be known of the tools beforehand."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as enabled:
            found = Found(files, thp_always="[always]" in enabled.read())
    except OSError:
        found = Found(files)
    if "likwid-bench" in files:
        found = found._replace(kernels=tools.likwid_kernels(run(Call(files["likwid-bench"], ("-a",))).text))
    if tools.stream_program(found):
        # The shortest way to learn the arrays' size is a run.
        found = found._replace(stream_bytes=tools.stream_bytes(run(Call(tools.stream_program(found), ())).text))
    return found


def versions(memgauge, chosen, found):
    """A line for each tool: what it says of its version, or that it was not found."""
    lines = [f"- {run(Call(memgauge, ('--version',))).text.strip()}"]
    for tool in chosen:
        program = next((found.files[name] for name in tool.files if name in found.files), None)
        said = None
        if program and tool.version:
            rest = run(Call(program, tuple(tool.version[0]))).text.partition(tool.version[1])[2]
            said = rest.splitlines()[0].strip() if rest else None
        lines.append(f"- {tool.name} {said or '(states no version)'}" if program else f"- {tool.name}: not found")
    return "\n".join(lines) + "\n"


class Part:
    """A tool's part in a row."""

    def __init__(self, tool, way, prints_best=False, slow=None):
        self.tool, self.way, self.call, self.read = tool, way.name, way.call, way.read
        self.prints_best, self.limit = prints_best, SLOW_LIMIT if slow else LIMIT
        # Figures of undisturbed runs, and memgauge's best bursts in these.
        self.series, self.best = [], []
        self.disturbed, self.huge, self.failures = 0, [], []


class Runner:
    """Runs tools in turn."""

    def __init__(self, rounds, max_others, memgauge, chosen, found):
        self.rounds, self.max_others = rounds, max_others
        self.memgauge, self.tools, self.found = memgauge, chosen, found
        self.raw = ["row\tround\ttool\tway\tvalue\tunit\tothers\tseconds\tcommand"]
        self.others, self.runs = [], 0

    def figure(self, way, row, limit, done):
        """A way's figure, or why there is none, and its output. `done` has the round's runs: a command that tells several rows runs once."""
        if way.call not in done:
            self.runs += 1
            try:
                done[way.call] = run(way.call, limit)
                self.others += [] if done[way.call].others is None else [done[way.call].others]
            except NoFigure as why:
                done[way.call] = why
        output = done[way.call]
        if isinstance(output, NoFigure):
            return output, None
        try:
            return way.read(output.text, row), output
        except NoFigure as why:
            return why, output

    def fastest(self, choice, row, limit, done):
        """The fastest way in one run of each, as memgauge chooses among its kernels; the only one without a run."""
        if len(choice) < 2:
            return choice[0] if choice else None
        speeds = [self.figure(way, row, limit, done)[0] for way in choice]
        sign = -1 if row.is_time else 1
        speed = [float("-inf") if isinstance(figure, NoFigure) else sign * figure for figure in speeds]
        return choice[max(range(len(choice)), key=lambda i: (speed[i], i))]

    def group(self, rows):
        """Rows with the parts of memgauge and of the peers."""
        outcomes, trial = [], {}
        for row in rows:
            parts = [Part("memgauge", own_way(self.memgauge, row))]
            for tool in self.tools:
                way = self.fastest(ways(tool, row, self.found), row, SLOW_LIMIT if tool.slow else LIMIT, trial)
                parts += [Part(tool.name, way, tool.prints_best, tool.slow)] if way else []
            outcomes.append((row, parts))
        for number in range(self.rounds):
            done = {}
            for row, parts in outcomes:
                for turn in range(len(parts)):
                    self.turn(row, parts[(turn + number) % len(parts)], number, done)
        return outcomes

    def turn(self, row, part, number, done):
        value, output = self.figure(part, row, part.limit, done)
        figure = None if isinstance(value, NoFigure) else value
        own = part.tool == "memgauge"
        if output:
            part.huge += [] if output.huge is None else [output.huge]
            if own and figure is not None:
                part.way = cell(output.text, row)["evidence"]["kernel"]
            others = "" if output.others is None else f"{output.others:.3f}"
            fields = [row.name, number, part.tool, part.way, "" if figure is None else figure, row.unit, others, f"{output.seconds:.2f}"]
            self.raw.append("\t".join(str(field) for field in [*fields, part.call.line()]))
        print(f"round {number + 1}/{self.rounds} {row.name} {part.tool} {value if figure is None else f'{figure:.3f}'}", file=sys.stderr)
        # Tools take being pushed off their CPUs in different ways, and a ratio would compare that.
        quiet = output is None or output.others is None or output.others <= self.max_others
        part.disturbed += figure is not None and not quiet
        part.series.append(figure if quiet else None)
        if own:
            part.best.append(best_burst(output.text, row) if output and quiet and figure is not None else None)
        if figure is None and str(value) not in part.failures:
            part.failures.append(str(value))


# The comparison as Markdown.
def digits(value):
    """Three digits that count."""
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"


def spread(series):
    values = sorted(value for value in series if value is not None)
    return f"{digits(quantile(values, 0.5))} ({digits(values[0])}–{digits(values[-1])})" if values else "—"


HEADS = (
    "what, size per CPU, CPUs | unit | memgauge: median (min–max) | kernel | peer | its way | its huge pages | peer: median (min–max) | "
    "memgauge : peer | IQR | 95 % | n | verdict"
).split(" | ")


def ratios(outcomes):
    lines = [HEADS, ["---"] * len(HEADS)]
    for row, (ours, *peers) in outcomes:
        for peer in peers if row.measure is not HAND_OFF else []:
            # Like with like: the best pass with the best burst.
            own, which = (ours.best, " (best burst)") if peer.prints_best else (ours.series, "")
            huge = f"{100 * statistics.median(peer.huge):.0f} %" if peer.huge else "—"
            found = ratio(own, peer.series)
            said = ["—", "—", "—", "0", "no figure"]
            if found:
                interval = "{:.3f}–{:.3f}".format(*found.interval) if found.interval else "—"
                quartiles = "{:.3f}–{:.3f}".format(*found.quartiles)
                said = [f"**{found.median:.3f}**", quartiles, interval, str(found.n), verdict(found, row.is_time)]
            lines.append([row.name, row.unit, spread(own), ours.way + which, peer.tool, peer.way, huge, spread(peer.series), *said])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def hand_offs(outcomes):
    """What is shown side by side only."""
    text = ""
    for row, parts in outcomes:
        if row.measure is HAND_OFF:
            text += f"| {row.name}: tool and protocol | ns: median (min–max) |\n| --- | --- |\n"
            text += "".join(f"| {part.tool}, {part.way} | {spread(part.series)} |\n" for part in parts)
    return text


def failures(outcomes):
    """Runs without a figure that counts."""
    lines = []
    for row, parts in outcomes:
        for part in parts:
            if part.disturbed:
                lines.append(f"- {part.tool}, {row.name}: {part.disturbed} left out, others used the machine meanwhile\n")
            lines += [f"- {part.tool}, {row.name}: {why}\n" for why in part.failures]
    return "".join(lines)


def document(report, named, outcomes, runner, seconds):
    """All that is printed."""
    machine, identity, topology = report["machine"], report["machine"]["identity"], report["machine"]["topology"]
    cpus = cpus_of(machine["allowed"]["cpus"])
    caches = ", ".join(f"L{c['level']} {spelled(c['size'])}" for c in topology["caches"] if cpus[0] in cpus_of(c["cpus"]))
    unknown = "hypervisor not known" if identity.get("hypervisor_unknown") else "no hypervisor"
    host = f"guest of {identity['hypervisor']}" if identity.get("hypervisor") else unknown
    text = f"{identity.get('model_name') or 'CPU of unknown model'}; {len(cpus)} CPUs of {len(topology['cpus'])}; {caches}; "
    text += f"{len(topology['nodes'])} memory node(s); {host}; Linux {identity.get('kernel') or 'unknown'}; "
    text += f"transparent huge pages {report['environment'].get('thp') or 'unknown'}\n\n"
    others = statistics.median(runner.others) if runner.others else None
    share = "unknown" if others is None else f"{100 * others:.0f} %"
    text += f"{report['started']['utc']}; {runner.rounds} rounds; {runner.runs} runs in {seconds:.0f} s; "
    text += f"other processes used {share} of the CPUs in the median run\n\n{named}\n"
    if others is not None and others > BUSY and runner.max_others > BUSY:
        text += "The machine was busy: these ratios compare how tools take being pushed off their CPUs, not what they reach. "
        text += "Repeat on a quiet one.\n\n"
    text += f"{ratios(outcomes)}\n{hand_offs(outcomes)}\n"
    if failures(outcomes):
        text += f"Runs without a figure:\n\n{failures(outcomes)}\n"
    commands = dict.fromkeys(part.call.line() for _, parts in outcomes for part in parts)
    return text + "Commands:\n\n```\n" + "\n".join(commands) + "\n```\n"


def size(text):
    """A size such as 64M or 512KiB."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", text, re.I)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no size")
    return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="folder", metavar="FOLDER", help="also look for programs in this folder and below, before PATH")
    parser.add_argument("--rounds", type=int, default=7, help="figures of each tool in each row [7]; the interval of a ratio needs six")
    parser.add_argument("--size", type=lambda text: [size(part) for part in text.split(",")], default=[], help="sizes instead of those of the caches and memory")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="NAMES", help="peers to run; slow ones run only when named here")
    parser.add_argument("--row", action="append", default=[], metavar="TEXT", help="rows whose name contains one of these, such as 'reads, 512 MiB'")
    parser.add_argument("--memgauge", help="the memgauge to compare [a release build of this checkout]")
    parser.add_argument("--others", type=float, default=15, metavar="PERCENT", help="leave a run out when other processes used more of the CPUs [15]")
    parser.add_argument("--raw", metavar="FILE", help="also write every run to this file, as tab-separated values")
    parser.add_argument("--list", action="store_true", help="list the peers found and the rows, without running them")
    return parser.parse_args()


def chosen_tools(only):
    """The tools named, or all but the slow ones."""
    names = {tool.name.lower(): tool for tool in tools.TOOLS}
    unknown = [name for name in only if name.lower() not in names]
    if unknown:
        sys.exit(f"error: no peer is called '{unknown[0]}'; there are {', '.join(tool.name for tool in tools.TOOLS)}")
    wanted = [name.lower() for name in only]
    return [tool for tool in tools.TOOLS if (tool.name.lower() in wanted if only else not tool.slow)]


def main():
    args = arguments()
    memgauge = args.memgauge or build()
    chosen = chosen_tools(args.only)
    if args.folder and not os.path.isdir(args.folder):
        sys.exit(f"error: {args.folder} is no folder")
    names = {name for tool in chosen for name in tool.files}
    found = learn({name: path for name, path in find(args.folder, os.environ.get("PATH", "")).items() if name in names})
    report = first_json(run(Call(memgauge, ("info", "--format", "json"))).text)
    named = versions(memgauge, chosen, found)

    def wanted(row):
        asked = not args.row or any(text in row.name for text in args.row)
        return asked and any(ways(tool, row, found) for tool in chosen)

    kept = [[row for row in rows if wanted(row)] for rows in groups(report["machine"], args.size, found.stream_bytes)]
    if args.list:
        print(named, end="")
        for row in (row for rows in kept for row in rows):
            print(f"{row.name}: {', '.join(tool.name for tool in chosen if ways(tool, row, found))}")
        return
    if not any(kept):
        sys.exit("error: no peer was found for any row; --list says what there is, --with names a folder")
    began, runner, outcomes = time.monotonic(), Runner(args.rounds, args.others / 100, memgauge, chosen, found), []
    for rows in filter(None, kept):
        outcomes += runner.group(rows)
        # After each group, so that a run that is stopped leaves what it has.
        if args.raw:
            with open(args.raw, "w") as raw:
                raw.write("\n".join(runner.raw) + "\n")
    print(document(report, named, outcomes, runner, time.monotonic() - began), end="")


if __name__ == "__main__":
    try:
        main()
    except NoFigure as error:
        sys.exit(f"error: {error}")
