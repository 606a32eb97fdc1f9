#!/usr/bin/env python3
"""Tests of the comparison with other benchmarks, on lines of their output: python3 experiments/test_peers.py"""

import os
import tempfile
import unittest

import peers
import tools
from tools import Call, Found, NoFigure, Row, Way

FOUND = Found({name: f"/x/{name}" for tool in tools.TOOLS for name in tool.files if name != "stream"}, ("load_avx", "load_avx512"), 1536 << 20)
TOOL = {tool.name: tool for tool in tools.TOOLS}
MACHINE = {
    "topology": {
        "caches": [{"level": 1, "size": 48 << 10, "cpus": str(cpu)} for cpu in (0, 1)]
        + [{"level": 2, "size": 1 << 20, "cpus": str(cpu)} for cpu in (0, 1)]
        + [{"level": 3, "size": 32 << 20, "cpus": "0-1"}]
    },
    "allowed": {"cpus": "0-1"},
}
RESULT = """{ "results": [
  { "experiment": "idle-latency", "at": { "order": "window-local" }, "value": 98.5, "evidence": { "kernel": "chase" } },
  { "experiment": "idle-latency", "at": { "order": "full-random" }, "value": 176.25, "evidence": { "kernel": "chase" } },
  { "experiment": "bandwidth", "at": { "mix": "all-reads" }, "value": 27.5, "evidence": { "kernel": "load-avx2" },
    "samples": { "bursts": [[27.0, 27.5, 30.0], [28.0, 28.5, 29.0], []] } },
  { "experiment": "bandwidth", "at": { "mix": "copy" }, "value": null, "not_measured": { "cause": "no-memory", "detail": "none left" } },
  { "experiment": "cache-to-cache", "at": { "state": "hit" }, "value": 21.0 },
  { "experiment": "cache-to-cache", "at": { "state": "hitm" }, "value": 22.0 } ] }
warning: a note on standard error {"""


def row(measure, size=512 << 20, cpus=(0,), base=False):
    return Row(measure, size, cpus, base)


def lines(tool, *args, found=FOUND, **more):
    return [way.call.line() for way in tools.ways(TOOL[tool], row(*args, **more), found)]


def read(tool, text, *args, **more):
    return tools.ways(TOOL[tool], row(*args, **more), FOUND)[0].read(text, row(*args, **more))


class Commands(unittest.TestCase):
    def test_of_each_tool(self):
        huge = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
        both = (0, 1)
        for tool, args, more, expected in [
            ("likwid-bench", (tools.READS, 256 << 20, both), {}, f"{huge} likwid-bench -t load_avx -w N:536870kB:2 -i 48"),
            ("multichase", (tools.WINDOW_LATENCY,), {}, "taskset -c 0 multichase -v -m 536870912 -s 128 -T 524288 -n 2 -H"),
            ("multiload", (tools.TRIAD_NT,), {}, "taskset -c 0 multiload -H -t 1 -m 536870912 -n 1 -l stream-triad-nontemporal-injection-delay -d 0"),
            ("STREAM", (tools.TRIAD, 768 << 20, both), {"base": True}, "OMP_NUM_THREADS=2 OMP_PROC_BIND=true taskset -c 0-1 stream_c"),
            ("X-Mem", (tools.WRITES, 512 << 10), {}, "taskset -c 0 xmem -t -w512 -n1 -j1 -u -c256 -s -S1 -W"),
            ("mbw", (tools.COPY,), {}, f"{huge} taskset -c 0 mbw -q -t0 -n 4 256"),
            ("core-to-core-latency", (tools.HAND_OFF, 0, both), {}, "core-to-core-latency 1000 300 -b 1 --csv -c 0,1"),
        ]:
            self.assertEqual(lines(tool, *args, **more)[0], expected)
        self.assertIn("--memory-oper=write --threads=2", lines("sysbench", tools.WRITES, 256 << 20, both)[0])
        self.assertTrue(lines("lmbench", tools.COPY, 32 << 10)[1].endswith("taskset -c 0 bw_mem -W 0 -N 3 -P 1 16384 bcopy"))
        self.assertTrue(lines("lmbench", tools.RANDOM_LATENCY)[0].endswith("lat_mem_rd -W 0 -N 1 -t 512 128"))

    def test_only_what_a_tool_can(self):
        for tool, args, more in [
            ("likwid-bench", (tools.FILL,), {}),
            ("likwid-bench", (tools.READS,), {"base": True}),
            ("multichase", (tools.COPY,), {}),
            ("multiload", (tools.WRITES_NT,), {}),
            ("STREAM", (tools.TRIAD,), {}),
            ("X-Mem", (tools.READS,), {}),
            ("tinymembench", (tools.FILL,), {}),
            ("mbw", (tools.COPY, 16 << 10), {}),
            ("sysbench", (tools.WRITES, 16 << 10), {}),
            ("lmbench", (tools.WRITES_NT,), {}),
        ]:
            self.assertEqual(lines(tool, *args, **more), [], (tool, args))
        self.assertEqual(lines("STREAM", tools.TRIAD, base=True, found=FOUND._replace(thp_always=True)), [])

    def test_of_memgauge(self):
        def line(wanted):
            return peers.own_way("/x/memgauge", wanted).call.line()

        latency = "memgauge latency --cpu 0 --size 512MiB --stride 128B --pages thp --window 512KiB --budget 1s --format json"
        self.assertEqual({line(row(tools.RANDOM_LATENCY)), line(row(tools.WINDOW_LATENCY))}, {latency}, "one run tells both")
        bandwidth = "memgauge bandwidth --mix 3:1-x2 --cpu 0 --size 512MiB --pages 4k --budget 1s --format json"
        self.assertEqual(line(row(tools.TRIAD, base=True)), bandwidth)


class Figures(unittest.TestCase):
    def test_of_each_tool(self):
        tiny = (
            " C copy  :  11000.5 MB/s (1.2%)\n C fill  :  15000.0 MB/s\n standard memcpy  :  13000.0 MB/s\n standard memset  :  21000.0 MB/s (0.4%)\n"
            " SSE2 nontemporal copy  :  14000.0 MB/s\n SSE2 nontemporal fill  :  22000.0 MB/s\n   1024 :    0.0 ns  /  0.0 ns\n"
        )
        stream = "Total memory required = 1536.0 MiB (= 1.5 GiB).\nCopy:  42101.5  0.02\nTriad:  27311.0  0.05\nSolution Validates: avg\n"
        load = "Samples\t, LdMaxMibs\t, LdAvgMibs\t, X\n1 \t, 11400 \t, 11335 \t, stream-sum\n"
        xmem = "Mean: 4.3 ns/access and 0 MB/s mean imposed load\nMedian: 4.27941 ns/access\nMax: 4.3 ns/access\n"
        mbw = "0\tMethod: MEMCPY\tCopy: 2467.541 MiB/s\nAVG\tMethod: MEMCPY\tMiB: 256.00000\tCopy: 3093.357 MiB/s\n"
        sizes = '"stride=128\n0.00049 1.101\n0.01562 1.104\n4.00000 12.101\n'
        for tool, text, args, more, expected in [
            ("likwid-bench", "Data volume (Byte):\t67108864000\nMByte/s:\t\t60200.87\nLoads per update:\t1\n", (tools.READS,), {}, 60.20087),
            ("multichase", "  3.978  avg=3.978\n  4.104  avg=4.104\n 3.978\n", (tools.RANDOM_LATENCY,), {}, 4.041),
            ("multiload", load, (tools.READS,), {}, 11.88560996),
            ("STREAM", stream, (tools.COPY,), {"base": True}, 42.1015),
            ("STREAM", stream, (tools.TRIAD,), {"base": True}, 27.311),
            ("X-Mem", xmem, (tools.RANDOM_LATENCY, 512 << 10), {}, 4.27941),
            ("X-Mem", "Mean: 1 MB/s\nMedian: 264991 MB/s\n", (tools.READS, 512 << 10), {}, 277.863202),
            ("tinymembench", tiny, (tools.COPY, 64 << 20), {}, 26),
            ("tinymembench", tiny, (tools.COPY_NT, 64 << 20), {}, 28),
            ("tinymembench", tiny, (tools.WRITES, 64 << 20), {}, 15),
            ("tinymembench", tiny, (tools.WRITES_NT, 64 << 20), {}, 22),
            ("tinymembench", tiny, (tools.FILL, 64 << 20), {}, 21),
            ("mbw", mbw, (tools.COPY,), {}, 6.487240),
            ("sysbench", "7424.00 MiB transferred (7279.32 MiB/sec)\n", (tools.READS,), {}, 7.632920),
            ("lmbench", "67.11 22800.50\n", (tools.READS,), {}, 22.8005),
            ("lmbench", "0.016384 90000.00\n", (tools.COPY,), {}, 180),
            ("lmbench", sizes, (tools.RANDOM_LATENCY, 16 << 10), {}, 1.104),
            ("core-to-core-latency", ",\n1212.99,\n\nCPU: AMD EPYC\nNum cores: 2\n", (tools.HAND_OFF, 0, (0, 1)), {}, 1212.99),
        ]:
            self.assertAlmostEqual(read(tool, text, *args, **more), expected, 5, tool)
            with self.assertRaises(NoFigure):
                read(tool, "usage: none", *args, **more)
        with self.assertRaisesRegex(NoFigure, "validate"):
            read("STREAM", stream.replace("Validates", "fails"), tools.COPY, base=True)
        with self.assertRaises(NoFigure):
            read("lmbench", sizes, tools.RANDOM_LATENCY)
        self.assertEqual(tools.stream_bytes(stream), 1536 << 20)
        self.assertEqual(tools.likwid_kernels("load - D\nload_avx - D, optimized for AVX\n"), ("load", "load_avx"))

    def test_of_memgauge(self):
        for measure, expected in [(tools.WINDOW_LATENCY, 98.5), (tools.RANDOM_LATENCY, 176.25), (tools.READS, 27.5), (tools.HAND_OFF, 22)]:
            self.assertEqual(peers.value_of(peers.cell(RESULT, row(measure))), expected)
        self.assertEqual((peers.best_burst(RESULT, row(tools.READS)), peers.best_burst(RESULT, row(tools.HAND_OFF))), (28.5, None))
        for text, measure, why in [(RESULT, tools.COPY, "none left"), (RESULT, tools.FILL, "no fill"), ("error: no option", tools.READS, "no option")]:
            with self.assertRaisesRegex(NoFigure, why):
                peers.value_of(peers.cell(text, row(measure)))


class Comparison(unittest.TestCase):
    def test_drift_that_hits_both_is_no_difference(self):
        peer = [10, 20, 40, 15, 30, 22, 18]
        found = peers.ratio([value * 1.1 for value in peer], peer)
        self.assertAlmostEqual(found.median, 1.1)
        self.assertEqual((found.n, peers.verdict(found, False), peers.verdict(found, True)), (7, "ahead", "higher"))

    def test_rounds_without_a_figure_are_left_out(self):
        found = peers.ratio([1, None, 3], [2, 5, None])
        self.assertEqual((found.n, found.median, found.interval), (1, 0.5, None))
        self.assertEqual((peers.verdict(found, False), peers.ratio([None], [1])), ("too few rounds", None))

    def test_behind_needs_the_interval_and_the_margin(self):
        def against(*ours):
            return peers.verdict(peers.ratio(ours, [1] * 7), False)

        self.assertEqual(against(0.9, 0.91, 0.92, 0.9, 0.93, 0.94, 0.9), "**behind**")
        self.assertEqual(against(0.9, 0.91, 0.92, 0.9, 0.93, 0.94, 1.1), "no difference shown")
        self.assertEqual(against(0.99, 0.985, 0.99, 0.985, 0.99, 0.99, 0.99), "no difference shown")

    def test_a_line_for_each_peer(self):
        def part(tool, values, prints_best=False):
            made = peers.Part(tool, Way("fast", Call(f"/x/{tool}", ()), None), prints_best)
            made.series, made.best, made.huge = values, [value * 1.05 for value in values], [0.994]
            return made

        ours = part("memgauge", [220] * 7)
        ours.disturbed = 2
        reads = row(tools.READS, 16 << 10)
        outcomes = [
            (reads, [ours, part("mbw", [200] * 7), part("STREAM", [200] * 7, True), part("other", [9])]),
            (row(tools.HAND_OFF, 0, (0, 1)), [ours, part("mbw", [200] * 7)]),
        ]
        text = peers.ratios(outcomes)
        line = "| reads, 16 KiB, 1 CPU | GB/s | 220 (220–220) | fast | mbw | fast | 99 % | 200 (200–200) | **1.100** | 1.100–1.100 | 1.100–1.100 | 7 | ahead |"
        self.assertIn(line, text)
        self.assertIn("| 231 (231–231) | fast (best burst) | STREAM | fast | 99 % | 200 (200–200) | **1.155** |", text)
        self.assertIn("| **24.444** | 24.444–24.444 | — | 1 | too few rounds |", text)
        self.assertEqual(len(text.splitlines()), 5, "protocols are not divided")
        self.assertIn("| mbw, fast | 200 (200–200) |", peers.hand_offs(outcomes))
        self.assertIn("- memgauge, reads, 16 KiB, 1 CPU: 2 left out, others used the machine meanwhile\n", peers.failures(outcomes))


class Running(unittest.TestCase):
    def test_both_outputs_are_kept(self):
        output = peers.run(Call("sh", ("-c", "echo out; echo err >&2; exit 3")))
        self.assertEqual(output.text, "out\n\nerr\n")
        self.assertTrue(output.others is None or 0 <= output.others <= 1)

    def test_what_does_not_end_is_killed_with_its_children(self):
        with self.assertRaisesRegex(NoFigure, "not done after 0.1 s: sh -c"):
            peers.run(Call("sh", ("-c", "sleep 30 & sleep 30")), 0.1)
        with self.assertRaisesRegex(NoFigure, "cannot start"):
            peers.run(Call("/no/such/tool", ()))

    def test_shares_of_memory_and_time(self):
        self.assertEqual(peers.memory("Rss: 9 kB\nAnonymous:   4096 kB\nAnonHugePages:  2048 kB\n"), (4096, 0.5))
        self.assertIsNone(peers.memory("Anonymous: 0 kB\nAnonHugePages: 0 kB\n"))
        self.assertEqual(peers.others_between((1000, 150, 50), (1200, 250, 100)), 0.25)

    def test_the_fastest_way_takes_part_and_a_command_runs_once_a_round(self):
        runner = peers.Runner(1, 1, "", [], FOUND)

        def echo(name, text):
            return Way(name, Call("echo", (text,)), lambda text, row: tools.number_after("x" + text, "x"))

        choice = [echo("slow", "1"), echo("fast", "3"), echo("broken", "x"), echo("middle", "2")]
        done = {}
        self.assertEqual(runner.fastest(choice, row(tools.READS), 20, done).name, "fast")
        self.assertEqual(runner.fastest(choice[2:3], row(tools.READS), 20, {}).name, "broken", "it is not tried")
        self.assertEqual(runner.figure(choice[1], row(tools.READS), 20, done)[0], 3)
        self.assertEqual(runner.runs, 4)

    def test_programs_are_found_in_folders_first(self):
        with tempfile.TemporaryDirectory() as base:

            def put(path, mode):
                path = os.path.join(base, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w"):
                    os.chmod(path, mode)
                return path

            near = put("given/mbw/mbw", 0o755)
            put("given/mbw/old/a/mbw", 0o755)
            put("usr/mbw", 0o755)
            put("given/sysbench", 0o644)
            on_path = put("usr/sysbench", 0o755)
            found = peers.find(f"{base}/given", f"/none:{base}/usr")
            self.assertEqual(found["mbw"], near, "the nearest, in the folder before the path")
            # Root may run any file that somebody may.
            self.assertEqual(found["sysbench"], on_path, "a file that cannot be run is none")
            self.assertEqual(peers.find(None, ""), {})

    def test_slow_ones_only_when_named(self):
        names = [tool.name for tool in peers.chosen_tools([])]
        self.assertTrue("STREAM" in names and not {"tinymembench", "lmbench"} & set(names), names)
        self.assertEqual([tool.name for tool in peers.chosen_tools(["stream", "lmbench"])], ["STREAM", "lmbench"])
        with self.assertRaisesRegex(SystemExit, "likwid-bench"):
            peers.chosen_tools(["mlc"])


class Rows(unittest.TestCase):
    def names(self, asked=(), stream_bytes=None):
        return [found.name for rows in peers.groups(MACHINE, list(asked), stream_bytes) for found in rows]

    def test_sizes_are_in_the_caches_and_beyond_them(self):
        names = self.names()
        for name in [
            "latency, full-random, 16 KiB, 1 CPU",
            "latency, full-random, 512 KiB, 1 CPU",
            "latency, full-random, 4 MiB, 1 CPU",
            "latency, window-local, 512 MiB, 1 CPU",
            "reads, 16 KiB, 2 CPUs",
            "writes, NT stores, 512 MiB, 1 CPU",
            "writes, NT stores, 256 MiB, 2 CPUs",
            "hand-off, CPUs 0-1",
        ]:
            self.assertIn(name, names)
        self.assertFalse([name for name in names if "NT stores, 16 KiB" in name or "triad" in name and "base pages" in name])
        self.assertIn("triad, 768 MiB, 2 CPUs, base pages", self.names(stream_bytes=1536 << 20))

    def test_sizes_asked_for_replace_the_others(self):
        names = self.names([peers.size("32K"), peers.size("64MiB")])
        self.assertEqual({name.split(", ")[-2] for name in names if name.endswith(", 1 CPU")}, {"32 KiB", "64 MiB"})
        self.assertIn("writes, NT stores, 32 MiB, 2 CPUs", names)


if __name__ == "__main__":
    unittest.main()
