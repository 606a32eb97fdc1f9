# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_memgauge_global_optspecs
    string join \n mix= width= limit= prefetch= cpu= node= one-thread-per-core size= pages= time= within= confidence= seed= format= o/output= q/quiet v/verbose figure-width= no-title label= no-host-identity wait-quiet= no-stamp plan machine= budget= panel= h/help V/version
end

function __fish_memgauge_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_memgauge_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_memgauge_using_subcommand
    set -l cmd (__fish_memgauge_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c memgauge -n "__fish_memgauge_needs_command" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_needs_command" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_needs_command" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_needs_command" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_needs_command" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_needs_command" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_needs_command" -l budget -d 'Measure one cell for at most this long [default: 0.48s]' -r
complete -c memgauge -n "__fish_memgauge_needs_command" -l panel -d 'Draw only one of these panels: idle-latency, bandwidth, bandwidth-by-node, loaded-latency, transfers, transfers-by-node, distribution; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_needs_command" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_needs_command" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_needs_command" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_needs_command" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_needs_command" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_needs_command" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_needs_command" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_needs_command" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_needs_command" -s V -l version -d 'Print version'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "info" -d 'Show the machine as memgauge sees it: CPUs, caches, memory nodes, page pools, and limits of this process'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "latency" -d 'Measure idle latency: one CPU and node, or all of them'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "bandwidth" -d 'Measure bandwidth: one mix of reads and writes, the usual ten, a node matrix, or 1 to n CPUs'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "loaded" -d 'Measure latency while other CPUs load memory, from idle to saturation'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "c2c" -d 'Measure transfers from one CPU\'s cache to another\'s'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "quick" -d 'Check the machine\'s memory in under 45 s: a verdict, findings with advice, and an exit status for schedulers'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "run" -d 'Measure what a file tells each CPU to do'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "scan" -d 'Measure the bandwidth of every GiB of free memory, find weak regions, and check that memory keeps what is written'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "sweep" -d 'Measure latency and bandwidth over the working set, and find the caches in them'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "pmem" -d 'Measure persistent memory, or any directory\'s files: latency, bandwidth and their curves for every socket and directory'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "tiers" -d 'Compare the kinds of memory: DRAM, HBM, CXL, persistent memory; alone, and disturbed by load on another'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "interleave" -d 'Find the weights for interleaving pages over tiers of memory: DRAM, CXL, HBM'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "stream" -d 'Read a buffer from start to end: bandwidth of one thread, with a checksum of what was read'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "chase" -d 'Follow pointers through a buffer: nanoseconds per hop of one thread, and where it ended'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "count" -d 'Count hardware events of a program and its children: miss rates, parallelism, latency per miss'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "stamp" -d 'Tell states of the machine apart: a stamp now, against an earlier one, or before and after a program'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "watch" -d 'Watch the state of the machine: a line for each change, for minutes or days'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "where" -d 'Show on which nodes the memory of programs lies, what that costs, and what would help'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "prefetch" -d 'Show, compare and switch hardware prefetchers'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "render" -d 'Show a saved result in another format'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "report" -d 'Make one page of results, to send or to print: HTML that opens offline, with figures, tables and the data'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "compare" -d 'Compare results before a change with results after it: better, worse, the same, or not known yet'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "advise" -d 'Advise from results: threads, tokens a second, nodes, pages, prefetchers; each with the numbers behind it'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "fleet" -d 'Keep the results of many hosts together, and ask about them'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "reference" -d 'List published latencies and bandwidths by CPU generation, with their sources'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "mlc" -d 'Take the command lines of Intel MLC and print its tables: memgauge mlc --help, man mlc'
complete -c memgauge -n "__fish_memgauge_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l machine -d 'Show a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand info" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l order -d 'Order of the lines that the chase visits; may be repeated [default: window-local and full-random]' -r -f -a "window-local\t''
full-random\t''
sequential\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l window -d 'Window within which the window-local chase is random [default: 512K]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l stride -d 'Distance between chased lines [default: two lines]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l touch-cpu -d 'CPU that touches the chase\'s buffer first; the buffer is on that CPU\'s node [default: CPUs of the buffer\'s node]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l hops -d 'Chase N hops instead of for a fixed time: exactly N in each of several new buffers, after 20 ms that warm it up, or at least N for each point of a curve. pass = as many hops as the buffer has lines' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l histogram -d 'Also time single batches of BATCH hops (1, 8 or 64) and show their distribution [default BATCH: 8]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l keep-awake -d 'CPUs to keep busy meanwhile [default: one of each other package, so that these packages stay awake]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l memory-dir -d 'Use files in DIR as buffers: persistent memory (a file system mounted with -o dax), a tmpfs, or the page cache of any other file system, which is DRAM. The files have no names and disappear at the end of the run' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l panel -d 'Draw only one of these panels: idle-latency, latency-by-cpu, distribution; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l matrix -d 'From every node with CPUs to every node with memory'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l per-cpu -d 'From every CPU to its own node, or to the node given with --node'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand latency" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l ramp -d 'Growing numbers of CPUs: 1, 2, 4 ... all, or a LIST such as 1,2,4-48:2' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l delay -d 'Core cycles to wait after every four lines (injection delay); one result for each value [default: none]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l access -d 'Order in which lines are visited' -r -f -a "sequential\t''
random\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l random-window -d 'With random access: finish a window of this size before the next begins [default: the whole buffer]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l line-stride -d 'Visit one line in every SIZE bytes' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l line -d 'Use of each line: touch all or part of it, write it back to memory after the store (CLWB, CLFLUSHOPT), or check after each pass that the data that was read is the data that was written' -r -f -a "whole\t''
part\t''
write-back\t''
check\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l patterns -d 'Patterns that --line check also writes and compares, before it reads [default: random words and their complement]' -r -f -a "random\t''
address\t''
checkerboard\t''
moving-inversions\t''
walking-ones\t''
walking-zeros\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l hold -d 'With --line check: compare what was written only after this time [default: as soon as a sweep ends]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l contents -d 'Fill buffers with the lines of FILE, again and again: 128 hexadecimal digits each, 64 bytes. Stores write the first line' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l start-signal -d 'Wait before each cell until another program writes 1 into the shared-memory word NAME (/dev/shm/NAME; on Windows Local\\NAME): 2 = measuring, 3 = done' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l memory-dir -d 'Use files in DIR as buffers: persistent memory (a file system mounted with -o dax), a tmpfs, or the page cache of any other file system, which is DRAM. The files have no names and disappear at the end of the run' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l panel -d 'Draw only one of these panels: bandwidth, bandwidth-by-cpus, bandwidth-by-node; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l matrix -d 'From every node with CPUs to every node with memory'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l peak -d 'Ten usual mixes of reads and writes; others with --mix'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l search -d 'The highest bandwidth of each mix: over several numbers of CPUs and injection delays, because too many requests at once can cost bandwidth'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l shared-buffer -d 'Let all loaders read one buffer; if it is small, this is the bandwidth of shared caches'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand bandwidth" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l at -d 'Also find the latency at these shares of the peak bandwidth, such as 50%,75%,90%' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l load-node -d 'Nodes of the loaders\' memory, while the chase stays in its own: shows how one node or tier disturbs another. The CPUs nearest to these nodes load' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l probe-cpu -d 'CPU that chases [default: the first of --cpu]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l probe-node -d 'Node of the chase\'s buffer; the loaders\' buffers stay where they are [default: the node of its CPU]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l order -d 'Order of the lines that the chase visits' -r -f -a "window-local\t''
full-random\t''
sequential\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l window -d 'Window within which the window-local chase is random [default: 512K]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l stride -d 'Distance between chased lines [default: two lines]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l touch-cpu -d 'CPU that touches the chase\'s buffer first; the buffer is on that CPU\'s node [default: CPUs of the buffer\'s node]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l hops -d 'Chase N hops instead of for a fixed time: exactly N in each of several new buffers, after 20 ms that warm it up, or at least N for each point of a curve. pass = as many hops as the buffer has lines' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l histogram -d 'Also time single batches of BATCH hops (1, 8 or 64) and show their distribution [default BATCH: 8]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l access -d 'Order in which lines are visited' -r -f -a "sequential\t''
random\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l random-window -d 'With random access: finish a window of this size before the next begins [default: the whole buffer]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l line-stride -d 'Visit one line in every SIZE bytes' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l line -d 'Use of each line: touch all or part of it, write it back to memory after the store (CLWB, CLFLUSHOPT), or check after each pass that the data that was read is the data that was written' -r -f -a "whole\t''
part\t''
write-back\t''
check\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l patterns -d 'Patterns that --line check also writes and compares, before it reads [default: random words and their complement]' -r -f -a "random\t''
address\t''
checkerboard\t''
moving-inversions\t''
walking-ones\t''
walking-zeros\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l hold -d 'With --line check: compare what was written only after this time [default: as soon as a sweep ends]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l contents -d 'Fill buffers with the lines of FILE, again and again: 128 hexadecimal digits each, 64 bytes. Stores write the first line' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l start-signal -d 'Wait before each cell until another program writes 1 into the shared-memory word NAME (/dev/shm/NAME; on Windows Local\\NAME): 2 = measuring, 3 = done' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l memory-dir -d 'Use files in DIR as buffers: persistent memory (a file system mounted with -o dax), a tmpfs, or the page cache of any other file system, which is DRAM. The files have no names and disappear at the end of the run' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l delay -d 'Core cycles to wait after every four lines (injection delay), one point for each value [default: chosen while measuring]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l panel -d 'Draw only one of these panels: loaded-latency, distribution; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l shared-buffer -d 'Let all loaders read one buffer; if it is small, this is the bandwidth of shared caches'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand loaded" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l reader -d 'CPU that reads the lines [default: the first of --cpu]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l holder -d 'CPU that holds the lines; measures only this one pair' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l sharer -d 'A third CPU that loads the lines before the reader does, so that they are shared' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l state -d 'State of the lines in the holder\'s cache; may be repeated [default: both]' -r -f -a "hit\t''
hitm\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l holder-pushes -d 'Bytes of another buffer that the holder reads once it has the lines, so that they move to an outer cache' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l reader-pushes -d 'Bytes of another buffer that the reader reads before it reads the lines' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l order -d 'Order of the lines that the chase visits' -r -f -a "window-local\t''
full-random\t''
sequential\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l stride -d 'Distance between chased lines [default: two lines]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l touch-cpu -d 'CPU that touches the chase\'s buffer first; the buffer is on that CPU\'s node [default: CPUs of the buffer\'s node]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l window -d 'Window within which the window-local chase is random [default: half of an L2]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l panel -d 'Draw only one of these panels: transfers, transfers-by-node, core-to-core; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l matrix -d 'Every pair of CPUs instead of representatives'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l node-matrix -d 'Modified lines from every node with CPUs to every other, and a near pair'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand c2c" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l against -d 'Compare with a result that memgauge quick wrote as JSON' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l baseline -d 'Judge by the hosts like this one: a fleet\'s folder, or what memgauge fleet baseline wrote as JSON' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l rules -d 'Judge by the rules in FILE (TOML, see below)' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l state -d 'For a timer: keep the result in FOLDER, under the time of the check, with a link latest.json to the newest. One check at a time uses the folder' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l keep -d 'Keep N results in the folder, and remove older ones' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l lock-wait -d 'Wait this long for another check to end that uses the folder, then give up with status 4; 0 = do not wait' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l budget -d 'Measure one cell for at most this long [default: 0.5s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l within -d 'End the whole check after this time: everything is measured more coarsely until it fits [default: 45s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1.5%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l pages -d 'Pages to use: auto takes transparent huge pages, else base pages, and leaves reserved huge pages alone' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l no-history -d 'Neither compare with the earlier checks of this machine nor keep this one'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand quick" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand run" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l region -d 'Size of a region [default: 1G, or less where fewer than four regions would fit]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l passes -d 'How many times to read each region [default: 10]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l bucket -d 'Width of the histogram\'s buckets in GB/s [default: 5]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l patterns -d 'Patterns of --integrity, in this order [default: all that fit the time, at most 10 minutes or half of --within]' -r -f -a "random\t''
address\t''
checkerboard\t''
moving-inversions\t''
walking-ones\t''
walking-zeros\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l hold -d 'How long each pattern stays in the memory at least before it is compared [default: as long as a sweep takes]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l within -d 'End the scan within this time; patterns for which half of it is too short are left out' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l seed -d 'Seed of the order in which regions are read, and of random patterns' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l size -d 'Take at most this much memory of each node [default: what is free, less a margin]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l width -d 'Width of loads; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l panel -d 'Draw only this panel: regions' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l integrity -d 'Also write test patterns to all of it, and compare what is read back'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand scan" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l min -d 'Smallest working set of a CPU [default: 4K]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l max -d 'Largest working set of a CPU [default: 1G, or less where there is less memory to take]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l points-per-octave -d 'Number of sizes in each doubling [default: 4]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l order -d 'Order of the lines that the chase visits' -r -f -a "window-local\t''
full-random\t''
sequential\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l window -d 'Window within which the window-local chase is random [default: 512K]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l stride -d 'Distance between chased lines [default: two lines]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l budget -d 'Measure one cell for at most this long [default: 0.25s, with --counters 0.35s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 2%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l panel -d 'Draw only one of these panels: latency-by-size, bandwidth-by-size, misses; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l latency -d 'Measure only latency; with --bandwidth, and without either, both'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l bandwidth -d 'Measure only bandwidth'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l per-domain -d 'A curve for each last-level cache, measured on the CPUs that share it [default: the first CPU only]'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l all-cpus -d 'One curve for all CPUs together, each with its own working set'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand sweep" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l out -d 'Write a text file of each run, the result as JSON and CSV, figures and a summary to FOLDER, which must be new or empty' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l budget -d 'Measure one cell for at most this long [default: 0.48s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l node -d 'Nodes whose CPUs measure, such as 0,2 [default: all nodes with CPUs]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l size -d 'Size of each file: that of the chase and those of the loaders [default: 400000K or more for loaders, see below]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l panel -d 'Draw only one of these panels: idle-latency, bandwidth, bandwidth-by-cpus, access-sizes, persist-latency, loaded-latency, distribution; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l ramp -d 'Also measure the bandwidth of growing numbers of CPUs: 1, 2, 4, 6 … all of each node, reads and 2:1'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l loaded -d 'Also measure latency under load at 20 delays, sequential and random'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand pmem" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l hops -d 'Chase N hops instead of for a fixed time: exactly N in each of several new buffers, after 20 ms that warm it up, or at least N for each point of a curve. pass = as many hops as the buffer has lines' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l histogram -d 'Also time single batches of BATCH hops (1, 8 or 64) and show their distribution [default BATCH: 8]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l budget -d 'Measure one cell for at most this long [default: 0.48s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l node -d 'Memory nodes to compare, such as 0,2, each as a tier [default: the nearest of each kind]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l panel -d 'Draw only one of these panels: idle-latency, bandwidth-by-node, loaded-latency, distribution; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand tiers" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l demand -d 'Find the least latency while this much is moved, in GB/s, for each socket [default: find the most bandwidth]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l threads -d 'Numbers of CPUs that load, for each socket, with a search for each: 4 or 2,4,8 [default: all but the one that chases]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l apply -d 'Set the kernel\'s weights: those found, or those given as NODE=WEIGHT,...' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l mix -d 'Mix of reads and writes: all-reads, 9:1, 4:1, 3:1, 3:1-x2, 2:1, 3:2, 1:1, nt-write, 3:1-nt, 2:1-nt-x1, triad (2:1-nt), 1:1-nt, copy, fill; may be repeated; help says what each of them does' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l width -d 'Width of loads and stores; best = the fastest here, as measured' -r -f -a "best\t''
scalar\t''
sse2\t''
avx2\t''
avx512\t''
neon\t''
string\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l limit -d 'Peak bandwidth of all the machine\'s memory, to judge results by: populated channels x MT/s x 8 B / 1000 [default: what firmware states about the memory devices, which on Linux only root may read]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l prefetch -d 'Hardware prefetchers during the run. As root, on and off write documented registers of all CPUs and put them back afterwards, which taints the kernel' -r -f -a "leave\t''
off\t''
on\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l node -d 'Memory nodes to interleave over, such as 0,2; also --nodes [default: each socket\'s own and the nodes without CPUs near it]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l budget -d 'Measure one cell for at most this long [default: 1s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l panel -d 'Draw only this panel: interleave' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l restore -d 'Put back the kernel\'s weights from before the first --apply'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand interleave" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l size -d 'The same as SIZES' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l cpu -d 'CPU to run on [default: wherever this process may run]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l node -d 'Memory node of the buffer [default: what this process\'s memory policy says]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l passes -d 'Passes to time; each is a sample for the median and its interval' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l pages -d 'Pages to use: auto takes transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l seed -d 'Seed of the buffer\'s contents' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand stream" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l size -d 'The same as SIZES' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l cpu -d 'CPU to run on [default: wherever this process may run]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l node -d 'Memory node of the buffer [default: what this process\'s memory policy says]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l passes -d 'Passes to time; each is a sample for the median and its interval' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l pages -d 'Pages to use: auto takes transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l order -d 'Order of the lines that the chase visits' -r -f -a "window-local\t''
full-random\t''
sequential\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l window -d 'Window within which the window-local chase is random' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l stride -d 'Distance between chased lines' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l seed -d 'Seed of the order' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l counters -d 'Count hardware events in exactly the measured windows: miss rates, parallelism, latency per miss, DRAM bytes. Events that this machine cannot count are left out, and a note says why'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand chase" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s e -l event -d 'Events to count instead of those for the metrics; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s r -l runs -d 'How many times to run the program' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand count" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l check -d 'Compare the machine now with the last stamp in FILE, which memgauge wrote as JSON' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand stamp" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l every -d 'Begin a stamp every DURATION; at least 100 times as long as a stamp may take [default: 20s, 50s on large machines]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l for -d 'End after DURATION, such as 10m or 8h [default: Ctrl-C ends it]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l curve -d 'Estimate the bandwidth of others by the curve of latency under load in FILE, a result of this machine as JSON' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l lines -d 'Append a JSON line for each stamp to FILE; - is standard output, in place of text' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l textfile -d 'Replace FILE after each stamp by OpenMetrics, for the textfile collector of node_exporter' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l listen -d 'Answer with OpenMetrics over HTTP at PORT of 127.0.0.1, or at ADDRESS:PORT' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l panel -d 'Draw only one of these panels: state, others; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l measure-curve -d 'Measure that curve first: it loads all CPUs for some seconds'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand watch" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l cgroup -d 'All processes of a control group and of those below it: its folder, or its path below /sys/fs/cgroup' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l every -d 'Read where memory is every DURATION, until Ctrl-C or until the processes end [default: once; of a command every second]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l for -d 'Observe for DURATION [default: 1s]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l prices -d 'Latencies and bandwidths by node from FILE, a result of this machine as JSON (memgauge latency --matrix)' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l panel -d 'Draw only one of these panels: memory-by-node, expected-latency; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l measure -d 'Measure latencies and bandwidths by node first, in at most 10 s: it loads all CPUs'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l touched -d 'Count only pages that were touched while they were observed: the kernel is asked to forget earlier accesses (/proc/PID/clear_refs)'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand where" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "status" -d 'Show which prefetchers of which CPUs are on'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "off" -d 'Switch all documented prefetchers of all CPUs off, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "on" -d 'Switch all documented prefetchers of all CPUs on, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "restore" -d 'Put back what off, on, or a run that was killed has changed'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "guard" -d 'The process that restores registers when a run is killed'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "compare" -d 'Measure with prefetchers on and off: one CPU\'s bandwidth and latency from every node; puts them back'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and not __fish_seen_subcommand_from status off on restore guard compare help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from off" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from on" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics) or .html (a page); may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from guard" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l cpu -d 'CPUs to measure from, such as 0-3,8 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l node -d 'Memory nodes to measure, such as 0,2 [default: all that this process may use]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l size -d 'Size of the buffer; for bandwidth, of each CPU\'s buffer: 512M, 2G, 16K [default: four times the caches]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l pages -d 'Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages' -r -f -a "auto\t''
4k\t''
thp\t''
2m\t''
1g\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l time -d 'Measure each cell for exactly this long: 2s, 500ms' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l budget -d 'Measure one cell for at most this long [default: 4s, or 1s in large matrices]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l within -d 'End the whole run after this time: everything is measured more coarsely until it fits, and the plan says how' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l confidence -d 'Stop when the 95 % interval is within this share of the median: 0.5%, 2% [default: 1%, in a virtual machine 5%]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l seed -d 'Seed of the random orders; the same seed repeats them exactly' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l label -d 'Add a label of your own to the result, such as rack=12; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l wait-quiet -d 'Begin once the CPUs that will be used were idle for a second, or after this time with a warning: 60s' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l machine -d 'Plan for a recorded machine: a directory that holds its sys/ and proc/' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l one-thread-per-core -d 'Use only the first hardware thread of each core'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l no-host-identity -d 'Leave the hostname, the hashed machine ID and the names of other processes out of the result'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l no-stamp -d 'Take no stamp at the beginning and the end: nothing then tells whether the machine\'s state changed meanwhile'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -l plan -d 'Show what would be measured, and for how long; measure nothing'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from compare" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show which prefetchers of which CPUs are on'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "off" -d 'Switch all documented prefetchers of all CPUs off, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "on" -d 'Switch all documented prefetchers of all CPUs on, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "restore" -d 'Put back what off, on, or a run that was killed has changed'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "guard" -d 'The process that restores registers when a run is killed'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "compare" -d 'Measure with prefetchers on and off: one CPU\'s bandwidth and latency from every node; puts them back'
complete -c memgauge -n "__fish_memgauge_using_subcommand prefetch; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -l format -d 'Format of standard output. Text is as wide as the terminal, or as COLUMNS says; 100 columns where it goes to a file or a pipe' -r -f -a "text\t''
json\t''
csv\t''
openmetrics\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .prom (OpenMetrics), .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -s q -l quiet -d 'Print only the verdict or headline, in one line, and show no progress'
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -s v -l verbose -d 'Explain everything: legends, the evidence for each table and each mark; in JSON also which kernels were tried, and how fast each was'
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand render" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand report" -s o -l output -d 'Write the page to this file, which ends in .html [default: standard output]' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand report" -l title -d 'Title of the page [default: the name of the machine, or those of the results]' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand report" -l no-data -d 'Leave the results as JSON out of the page, which makes it smaller'
complete -c memgauge -n "__fish_memgauge_using_subcommand report" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l runs -d 'Runs per side: measure the machine now this often, or in the two states that the commands behind -- make, separated by ---' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l measure -d 'What memgauge measures with --runs: its own command line; quotes keep a word with spaces together' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l keep -d 'Keep the results of --runs in this folder, as before-1.json, after-1.json …' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l margin -d 'Differences up to this count as none' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l seed -d 'Seed of the bootstrap' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l format -d 'Format of standard output' -r -f -a "text\t''
json\t''
csv\t''
html\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, .html (a page), or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l across -d 'Compare runs of unlike machines, and runs in different states of the machine, too'
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -s q -l quiet -d 'Print only the verdict, in one line'
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -s v -l verbose -d 'Show every number, also those that are the same'
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand compare" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -l model-bytes -d 'Bytes that a model reads for each token, such as 8G or 8.5GB; separated by commas' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -l model -d 'A model with its name and the bytes that it reads for each token; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -l tokens-per-second -d 'Tokens a second that you see of one model while it decodes one sequence; says what could explain the difference from the ceiling' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt or .json; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -l format -d 'Format of standard output; JSON has everything' -r -f -a "text\t''
json\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -s q -l quiet -d 'Print only the answer, in one line'
complete -c memgauge -n "__fish_memgauge_using_subcommand advise" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "ingest" -d 'Read results into a fleet\'s folder; damaged, old and duplicate ones are named and left out'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "outliers" -d 'Find the hosts that are slower than hosts like them'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "baseline" -d 'Show what hosts of each kind measure, and from where on a host is flagged'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "history" -d 'Show when the numbers of a host changed, and what changed with them'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "export" -d 'Write runs in the format of another tool: OCPTV, SuperBench, OpenMetrics, hwloc'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and not __fish_seen_subcommand_from ingest outliers baseline history export help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from ingest" -l batch -d 'Commit after this many runs. Smaller batches lose less when the ingest is killed, and make more files' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from ingest" -l format -d 'Format of standard output; JSON names every file that was left out' -r -f -a "text\t''
json\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from ingest" -l copy -d 'Keep a copy of each result in the fleet\'s folder, so that the originals may go'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from ingest" -s q -l quiet -d 'Print only the first line'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from ingest" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -l format -d 'Format of standard output' -r -f -a "text\t''
json\t''
csv\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json, .csv, or .svg, .png, .pdf for figures; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -l figure-width -d 'Width of the figure: 85mm, 8.5cm, 3.3in or 800px. Text keeps its size; numbers that have no room are left out of matrices' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -l panel -d 'Draw only this panel; may be repeated' -r -f -a "idle-latency\t''
latency-by-cpu\t''
bandwidth\t''
bandwidth-by-cpus\t''
bandwidth-by-node\t''
bandwidth-by-cache\t''
access-sizes\t''
persist-latency\t''
loaded-latency\t''
interleave\t''
transfers\t''
transfers-by-node\t''
core-to-core\t''
regions\t''
prefetchers\t''
latency-by-size\t''
bandwidth-by-size\t''
misses\t''
distribution\t''
state\t''
others\t''
memory-by-node\t''
expected-latency\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -s v -l verbose -d 'Show everything: long lists whole, and each number'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -s q -l quiet -d 'Print only the first line'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -l no-title -d 'Leave out titles, explanations and the line about the machine, for a document that has its own'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from outliers" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from baseline" -l format -d 'Format of standard output' -r -f -a "text\t''
json\t''
csv\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from baseline" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json or .csv; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from baseline" -s v -l verbose -d 'Show everything: long lists whole, and each number'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from baseline" -s q -l quiet -d 'Print only the first line'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from baseline" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -l host -d 'The host\'s name, or the first eight or more digits of its machine id' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -l format -d 'Format of standard output' -r -f -a "text\t''
json\t''
csv\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -s o -l output -d 'Also write to FILE; its ending chooses the format: .txt, .json or .csv; may be repeated' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -l as-one -d 'Show all machines that HOST means as one: a host that was installed again, or renamed'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -s v -l verbose -d 'Show everything: long lists whole, and each number'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -s q -l quiet -d 'Print only the first line'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from export" -l format -d 'The other tool\'s format' -r -f -a "ocptv\t''
superbench\t''
superbench-baseline\t''
openmetrics\t''
hwloc\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from export" -l host -d 'Only this host, by its name or by the first eight or more digits of its machine id; may be repeated' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from export" -l fingerprint -d 'Only hosts of this kind: the name of a folder below the fleet\'s values/, or a part of it' -r
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from export" -s o -l output -d 'Write to FILE instead of standard output' -r -F
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "ingest" -d 'Read results into a fleet\'s folder; damaged, old and duplicate ones are named and left out'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "outliers" -d 'Find the hosts that are slower than hosts like them'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "baseline" -d 'Show what hosts of each kind measure, and from where on a host is flagged'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "history" -d 'Show when the numbers of a host changed, and what changed with them'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write runs in the format of another tool: OCPTV, SuperBench, OpenMetrics, hwloc'
complete -c memgauge -n "__fish_memgauge_using_subcommand fleet; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand reference" -l format -d 'Format of standard output; JSON has everything' -r -f -a "text\t''
json\t''"
complete -c memgauge -n "__fish_memgauge_using_subcommand reference" -l sources -d 'Show each value with its method and where it is published'
complete -c memgauge -n "__fish_memgauge_using_subcommand reference" -s h -l help -d 'Print help'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "info" -d 'Show the machine as memgauge sees it: CPUs, caches, memory nodes, page pools, and limits of this process'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "latency" -d 'Measure idle latency: one CPU and node, or all of them'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "bandwidth" -d 'Measure bandwidth: one mix of reads and writes, the usual ten, a node matrix, or 1 to n CPUs'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "loaded" -d 'Measure latency while other CPUs load memory, from idle to saturation'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "c2c" -d 'Measure transfers from one CPU\'s cache to another\'s'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "quick" -d 'Check the machine\'s memory in under 45 s: a verdict, findings with advice, and an exit status for schedulers'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "run" -d 'Measure what a file tells each CPU to do'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "scan" -d 'Measure the bandwidth of every GiB of free memory, find weak regions, and check that memory keeps what is written'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "sweep" -d 'Measure latency and bandwidth over the working set, and find the caches in them'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "pmem" -d 'Measure persistent memory, or any directory\'s files: latency, bandwidth and their curves for every socket and directory'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "tiers" -d 'Compare the kinds of memory: DRAM, HBM, CXL, persistent memory; alone, and disturbed by load on another'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "interleave" -d 'Find the weights for interleaving pages over tiers of memory: DRAM, CXL, HBM'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "stream" -d 'Read a buffer from start to end: bandwidth of one thread, with a checksum of what was read'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "chase" -d 'Follow pointers through a buffer: nanoseconds per hop of one thread, and where it ended'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "count" -d 'Count hardware events of a program and its children: miss rates, parallelism, latency per miss'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "stamp" -d 'Tell states of the machine apart: a stamp now, against an earlier one, or before and after a program'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "watch" -d 'Watch the state of the machine: a line for each change, for minutes or days'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "where" -d 'Show on which nodes the memory of programs lies, what that costs, and what would help'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "prefetch" -d 'Show, compare and switch hardware prefetchers'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "render" -d 'Show a saved result in another format'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "report" -d 'Make one page of results, to send or to print: HTML that opens offline, with figures, tables and the data'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "compare" -d 'Compare results before a change with results after it: better, worse, the same, or not known yet'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "advise" -d 'Advise from results: threads, tokens a second, nodes, pages, prefetchers; each with the numbers behind it'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "fleet" -d 'Keep the results of many hosts together, and ask about them'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "reference" -d 'List published latencies and bandwidths by CPU generation, with their sources'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "mlc" -d 'Take the command lines of Intel MLC and print its tables: memgauge mlc --help, man mlc'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and not __fish_seen_subcommand_from info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "status" -d 'Show which prefetchers of which CPUs are on'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "off" -d 'Switch all documented prefetchers of all CPUs off, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "on" -d 'Switch all documented prefetchers of all CPUs on, until restore or the next boot'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "restore" -d 'Put back what off, on, or a run that was killed has changed'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "guard" -d 'The process that restores registers when a run is killed'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from prefetch" -f -a "compare" -d 'Measure with prefetchers on and off: one CPU\'s bandwidth and latency from every node; puts them back'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "ingest" -d 'Read results into a fleet\'s folder; damaged, old and duplicate ones are named and left out'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "outliers" -d 'Find the hosts that are slower than hosts like them'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "baseline" -d 'Show what hosts of each kind measure, and from where on a host is flagged'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "history" -d 'Show when the numbers of a host changed, and what changed with them'
complete -c memgauge -n "__fish_memgauge_using_subcommand help; and __fish_seen_subcommand_from fleet" -f -a "export" -d 'Write runs in the format of another tool: OCPTV, SuperBench, OpenMetrics, hwloc'
