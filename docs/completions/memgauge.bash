_memgauge() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="memgauge"
                ;;
            memgauge,advise)
                cmd="memgauge__subcmd__advise"
                ;;
            memgauge,bandwidth)
                cmd="memgauge__subcmd__bandwidth"
                ;;
            memgauge,c2c)
                cmd="memgauge__subcmd__c2c"
                ;;
            memgauge,chase)
                cmd="memgauge__subcmd__chase"
                ;;
            memgauge,compare)
                cmd="memgauge__subcmd__compare"
                ;;
            memgauge,count)
                cmd="memgauge__subcmd__count"
                ;;
            memgauge,fleet)
                cmd="memgauge__subcmd__fleet"
                ;;
            memgauge,help)
                cmd="memgauge__subcmd__help"
                ;;
            memgauge,info)
                cmd="memgauge__subcmd__info"
                ;;
            memgauge,interleave)
                cmd="memgauge__subcmd__interleave"
                ;;
            memgauge,latency)
                cmd="memgauge__subcmd__latency"
                ;;
            memgauge,loaded)
                cmd="memgauge__subcmd__loaded"
                ;;
            memgauge,mlc)
                cmd="memgauge__subcmd__mlc"
                ;;
            memgauge,pmem)
                cmd="memgauge__subcmd__pmem"
                ;;
            memgauge,prefetch)
                cmd="memgauge__subcmd__prefetch"
                ;;
            memgauge,quick)
                cmd="memgauge__subcmd__quick"
                ;;
            memgauge,reference)
                cmd="memgauge__subcmd__reference"
                ;;
            memgauge,render)
                cmd="memgauge__subcmd__render"
                ;;
            memgauge,report)
                cmd="memgauge__subcmd__report"
                ;;
            memgauge,run)
                cmd="memgauge__subcmd__run"
                ;;
            memgauge,scan)
                cmd="memgauge__subcmd__scan"
                ;;
            memgauge,stamp)
                cmd="memgauge__subcmd__stamp"
                ;;
            memgauge,stream)
                cmd="memgauge__subcmd__stream"
                ;;
            memgauge,sweep)
                cmd="memgauge__subcmd__sweep"
                ;;
            memgauge,tiers)
                cmd="memgauge__subcmd__tiers"
                ;;
            memgauge,watch)
                cmd="memgauge__subcmd__watch"
                ;;
            memgauge,where)
                cmd="memgauge__subcmd__where"
                ;;
            memgauge__subcmd__fleet,baseline)
                cmd="memgauge__subcmd__fleet__subcmd__baseline"
                ;;
            memgauge__subcmd__fleet,export)
                cmd="memgauge__subcmd__fleet__subcmd__export"
                ;;
            memgauge__subcmd__fleet,help)
                cmd="memgauge__subcmd__fleet__subcmd__help"
                ;;
            memgauge__subcmd__fleet,history)
                cmd="memgauge__subcmd__fleet__subcmd__history"
                ;;
            memgauge__subcmd__fleet,ingest)
                cmd="memgauge__subcmd__fleet__subcmd__ingest"
                ;;
            memgauge__subcmd__fleet,outliers)
                cmd="memgauge__subcmd__fleet__subcmd__outliers"
                ;;
            memgauge__subcmd__fleet__subcmd__help,baseline)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__baseline"
                ;;
            memgauge__subcmd__fleet__subcmd__help,export)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__export"
                ;;
            memgauge__subcmd__fleet__subcmd__help,help)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__help"
                ;;
            memgauge__subcmd__fleet__subcmd__help,history)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__history"
                ;;
            memgauge__subcmd__fleet__subcmd__help,ingest)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__ingest"
                ;;
            memgauge__subcmd__fleet__subcmd__help,outliers)
                cmd="memgauge__subcmd__fleet__subcmd__help__subcmd__outliers"
                ;;
            memgauge__subcmd__help,advise)
                cmd="memgauge__subcmd__help__subcmd__advise"
                ;;
            memgauge__subcmd__help,bandwidth)
                cmd="memgauge__subcmd__help__subcmd__bandwidth"
                ;;
            memgauge__subcmd__help,c2c)
                cmd="memgauge__subcmd__help__subcmd__c2c"
                ;;
            memgauge__subcmd__help,chase)
                cmd="memgauge__subcmd__help__subcmd__chase"
                ;;
            memgauge__subcmd__help,compare)
                cmd="memgauge__subcmd__help__subcmd__compare"
                ;;
            memgauge__subcmd__help,count)
                cmd="memgauge__subcmd__help__subcmd__count"
                ;;
            memgauge__subcmd__help,fleet)
                cmd="memgauge__subcmd__help__subcmd__fleet"
                ;;
            memgauge__subcmd__help,help)
                cmd="memgauge__subcmd__help__subcmd__help"
                ;;
            memgauge__subcmd__help,info)
                cmd="memgauge__subcmd__help__subcmd__info"
                ;;
            memgauge__subcmd__help,interleave)
                cmd="memgauge__subcmd__help__subcmd__interleave"
                ;;
            memgauge__subcmd__help,latency)
                cmd="memgauge__subcmd__help__subcmd__latency"
                ;;
            memgauge__subcmd__help,loaded)
                cmd="memgauge__subcmd__help__subcmd__loaded"
                ;;
            memgauge__subcmd__help,mlc)
                cmd="memgauge__subcmd__help__subcmd__mlc"
                ;;
            memgauge__subcmd__help,pmem)
                cmd="memgauge__subcmd__help__subcmd__pmem"
                ;;
            memgauge__subcmd__help,prefetch)
                cmd="memgauge__subcmd__help__subcmd__prefetch"
                ;;
            memgauge__subcmd__help,quick)
                cmd="memgauge__subcmd__help__subcmd__quick"
                ;;
            memgauge__subcmd__help,reference)
                cmd="memgauge__subcmd__help__subcmd__reference"
                ;;
            memgauge__subcmd__help,render)
                cmd="memgauge__subcmd__help__subcmd__render"
                ;;
            memgauge__subcmd__help,report)
                cmd="memgauge__subcmd__help__subcmd__report"
                ;;
            memgauge__subcmd__help,run)
                cmd="memgauge__subcmd__help__subcmd__run"
                ;;
            memgauge__subcmd__help,scan)
                cmd="memgauge__subcmd__help__subcmd__scan"
                ;;
            memgauge__subcmd__help,stamp)
                cmd="memgauge__subcmd__help__subcmd__stamp"
                ;;
            memgauge__subcmd__help,stream)
                cmd="memgauge__subcmd__help__subcmd__stream"
                ;;
            memgauge__subcmd__help,sweep)
                cmd="memgauge__subcmd__help__subcmd__sweep"
                ;;
            memgauge__subcmd__help,tiers)
                cmd="memgauge__subcmd__help__subcmd__tiers"
                ;;
            memgauge__subcmd__help,watch)
                cmd="memgauge__subcmd__help__subcmd__watch"
                ;;
            memgauge__subcmd__help,where)
                cmd="memgauge__subcmd__help__subcmd__where"
                ;;
            memgauge__subcmd__help__subcmd__fleet,baseline)
                cmd="memgauge__subcmd__help__subcmd__fleet__subcmd__baseline"
                ;;
            memgauge__subcmd__help__subcmd__fleet,export)
                cmd="memgauge__subcmd__help__subcmd__fleet__subcmd__export"
                ;;
            memgauge__subcmd__help__subcmd__fleet,history)
                cmd="memgauge__subcmd__help__subcmd__fleet__subcmd__history"
                ;;
            memgauge__subcmd__help__subcmd__fleet,ingest)
                cmd="memgauge__subcmd__help__subcmd__fleet__subcmd__ingest"
                ;;
            memgauge__subcmd__help__subcmd__fleet,outliers)
                cmd="memgauge__subcmd__help__subcmd__fleet__subcmd__outliers"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,compare)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__compare"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,guard)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__guard"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,off)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__off"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,on)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__on"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,restore)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__restore"
                ;;
            memgauge__subcmd__help__subcmd__prefetch,status)
                cmd="memgauge__subcmd__help__subcmd__prefetch__subcmd__status"
                ;;
            memgauge__subcmd__prefetch,compare)
                cmd="memgauge__subcmd__prefetch__subcmd__compare"
                ;;
            memgauge__subcmd__prefetch,guard)
                cmd="memgauge__subcmd__prefetch__subcmd__guard"
                ;;
            memgauge__subcmd__prefetch,help)
                cmd="memgauge__subcmd__prefetch__subcmd__help"
                ;;
            memgauge__subcmd__prefetch,off)
                cmd="memgauge__subcmd__prefetch__subcmd__off"
                ;;
            memgauge__subcmd__prefetch,on)
                cmd="memgauge__subcmd__prefetch__subcmd__on"
                ;;
            memgauge__subcmd__prefetch,restore)
                cmd="memgauge__subcmd__prefetch__subcmd__restore"
                ;;
            memgauge__subcmd__prefetch,status)
                cmd="memgauge__subcmd__prefetch__subcmd__status"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,compare)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__compare"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,guard)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__guard"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,help)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__help"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,off)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__off"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,on)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__on"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,restore)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__restore"
                ;;
            memgauge__subcmd__prefetch__subcmd__help,status)
                cmd="memgauge__subcmd__prefetch__subcmd__help__subcmd__status"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        memgauge)
            opts="-o -q -v -h -V --mix --width --limit --prefetch --cpu --node --one-thread-per-core --size --pages --time --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --budget --panel --help --version info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__advise)
            opts="-o -q -h --model-bytes --model --tokens-per-second --output --format --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --model-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --model)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tokens-per-second)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__bandwidth)
            opts="-o -q -v -h --matrix --peak --ramp --search --delay --mix --width --limit --access --random-window --line-stride --line --patterns --hold --shared-buffer --contents --start-signal --counters --cpu --node --one-thread-per-core --size --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --prefetch --memory-dir --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --ramp)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access)
                    COMPREPLY=($(compgen -W "sequential random" -- "${cur}"))
                    return 0
                    ;;
                --random-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --line-stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --line)
                    COMPREPLY=($(compgen -W "whole part write-back check" -- "${cur}"))
                    return 0
                    ;;
                --patterns)
                    COMPREPLY=($(compgen -W "random address checkerboard moving-inversions walking-ones walking-zeros" -- "${cur}"))
                    return 0
                    ;;
                --hold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --contents)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-signal)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --memory-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__c2c)
            opts="-o -q -v -h --matrix --node-matrix --reader --holder --sharer --state --holder-pushes --reader-pushes --order --stride --touch-cpu --cpu --node --one-thread-per-core --size --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --prefetch --window --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --reader)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --holder)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sharer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -W "hit hitm" -- "${cur}"))
                    return 0
                    ;;
                --holder-pushes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --reader-pushes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "window-local full-random sequential" -- "${cur}"))
                    return 0
                    ;;
                --stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --touch-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__chase)
            opts="-o -q -v -h --size --cpu --node --passes --counters --format --output --quiet --figure-width --no-title --label --no-host-identity --pages --verbose --order --window --stride --seed --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --passes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "window-local full-random sequential" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__compare)
            opts="-o -q -v -h --runs --measure --keep --margin --across --seed --format --output --quiet --verbose --figure-width --no-title --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --measure)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --margin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__count)
            opts="-e -r -o -q -v -h --event --runs --format --output --quiet --panel --figure-width --no-title --label --no-host-identity --verbose --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --event)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -e)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --runs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -r)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet)
            opts="-h --help ingest outliers baseline history export help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__baseline)
            opts="-o -v -q -h --format --output --verbose --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__export)
            opts="-o -h --format --host --fingerprint --output --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "ocptv superbench superbench-baseline openmetrics hwloc" -- "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fingerprint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help)
            opts="ingest outliers baseline history export help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__baseline)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__export)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__ingest)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__help__subcmd__outliers)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__history)
            opts="-o -v -q -h --host --as-one --format --output --verbose --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__ingest)
            opts="-q -h --copy --batch --format --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --batch)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__fleet__subcmd__outliers)
            opts="-o -v -q -h --format --output --verbose --quiet --figure-width --no-title --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help)
            opts="info latency bandwidth loaded c2c quick run scan sweep pmem tiers interleave stream chase count stamp watch where prefetch render report compare advise fleet reference mlc help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__advise)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__bandwidth)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__c2c)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__chase)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__compare)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__count)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet)
            opts="ingest outliers baseline history export"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet__subcmd__baseline)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet__subcmd__export)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet__subcmd__history)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet__subcmd__ingest)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__fleet__subcmd__outliers)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__info)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__interleave)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__latency)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__loaded)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__mlc)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__pmem)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch)
            opts="status off on restore guard compare"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__compare)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__guard)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__off)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__on)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__restore)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__prefetch__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__quick)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__reference)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__render)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__report)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__run)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__scan)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__stamp)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__stream)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__sweep)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__tiers)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__watch)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__help__subcmd__where)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__info)
            opts="-o -q -v -h --machine --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__interleave)
            opts="-o -q -v -h --demand --threads --apply --restore --mix --width --limit --prefetch --cpu --one-thread-per-core --size --pages --time --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --node --budget --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --demand)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --apply)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__latency)
            opts="-o -q -v -h --matrix --per-cpu --order --window --stride --touch-cpu --hops --histogram --keep-awake --counters --cpu --node --one-thread-per-core --size --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --prefetch --memory-dir --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --order)
                    COMPREPLY=($(compgen -W "window-local full-random sequential" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --touch-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hops)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --histogram)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep-awake)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --memory-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__loaded)
            opts="-o -q -v -h --at --load-node --probe-cpu --probe-node --order --window --stride --touch-cpu --hops --histogram --mix --width --limit --access --random-window --line-stride --line --patterns --hold --shared-buffer --contents --start-signal --counters --cpu --node --one-thread-per-core --size --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --prefetch --memory-dir --delay --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --load-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "window-local full-random sequential" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --touch-cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hops)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --histogram)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access)
                    COMPREPLY=($(compgen -W "sequential random" -- "${cur}"))
                    return 0
                    ;;
                --random-window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --line-stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --line)
                    COMPREPLY=($(compgen -W "whole part write-back check" -- "${cur}"))
                    return 0
                    ;;
                --patterns)
                    COMPREPLY=($(compgen -W "random address checkerboard moving-inversions walking-ones walking-zeros" -- "${cur}"))
                    return 0
                    ;;
                --hold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --contents)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --start-signal)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --memory-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__mlc)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__pmem)
            opts="-o -q -v -h --ramp --loaded --out --cpu --one-thread-per-core --time --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --prefetch --budget --node --size --pages --machine --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --out)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help status off on restore guard compare help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__compare)
            opts="-o -q -v -h --cpu --node --one-thread-per-core --size --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__guard)
            opts="-h --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help)
            opts="status off on restore guard compare help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__compare)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__guard)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__off)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__on)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__restore)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 4 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__off)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__on)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__restore)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__prefetch__subcmd__status)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__quick)
            opts="-o -q -v -h --against --baseline --rules --no-history --state --keep --lock-wait --cpu --node --one-thread-per-core --size --time --seed --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --prefetch --budget --within --confidence --limit --pages --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --against)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --baseline)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rules)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --keep)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lock-wait)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__reference)
            opts="-h --sources --format --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__render)
            opts="-o -q -v -h --format --output --quiet --verbose --panel --figure-width --no-title --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__report)
            opts="-o -h --output --title --no-data --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --title)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__run)
            opts="-o -q -v -h --prefetch --pages --time --budget --within --confidence --seed --format --output --quiet --verbose --panel --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__scan)
            opts="-o -q -v -h --region --passes --bucket --integrity --patterns --hold --within --seed --cpu --node --one-thread-per-core --prefetch --size --pages --width --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --region)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --passes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bucket)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --patterns)
                    COMPREPLY=($(compgen -W "random address checkerboard moving-inversions walking-ones walking-zeros" -- "${cur}"))
                    return 0
                    ;;
                --hold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__stamp)
            opts="-o -q -v -h --check --format --output --quiet --panel --figure-width --no-title --label --no-host-identity --verbose --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__stream)
            opts="-o -q -v -h --size --cpu --node --passes --counters --format --output --quiet --figure-width --no-title --label --no-host-identity --pages --verbose --seed --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --passes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__sweep)
            opts="-o -q -v -h --min --max --points-per-octave --latency --bandwidth --per-domain --all-cpus --cpu --node --one-thread-per-core --prefetch --pages --order --window --stride --mix --width --limit --counters --time --within --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --budget --confidence --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --points-per-octave)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "window-local full-random sequential" -- "${cur}"))
                    return 0
                    ;;
                --window)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stride)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__tiers)
            opts="-o -q -v -h --hops --histogram --mix --width --limit --prefetch --cpu --one-thread-per-core --size --pages --time --within --confidence --seed --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --wait-quiet --no-stamp --plan --machine --budget --node --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --hops)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --histogram)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -W "best scalar sse2 avx2 avx512 neon string" -- "${cur}"))
                    return 0
                    ;;
                --limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch)
                    COMPREPLY=($(compgen -W "leave off on" -- "${cur}"))
                    return 0
                    ;;
                --cpu)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pages)
                    COMPREPLY=($(compgen -W "auto 4k thp 2m 1g" -- "${cur}"))
                    return 0
                    ;;
                --time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --within)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --confidence)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --wait-quiet)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machine)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --node)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__watch)
            opts="-o -q -v -h --every --for --curve --measure-curve --lines --textfile --listen --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --curve)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lines)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --textfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --listen)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        memgauge__subcmd__where)
            opts="-o -q -v -h --cgroup --every --for --prices --measure --touched --format --output --quiet --verbose --figure-width --no-title --label --no-host-identity --panel --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --cgroup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --for)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "text json csv openmetrics html" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --figure-width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --label)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --panel)
                    COMPREPLY=($(compgen -W "idle-latency latency-by-cpu bandwidth bandwidth-by-cpus bandwidth-by-node bandwidth-by-cache access-sizes persist-latency loaded-latency interleave transfers transfers-by-node core-to-core regions prefetchers latency-by-size bandwidth-by-size misses distribution state others memory-by-node expected-latency" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _memgauge -o nosort -o bashdefault -o default memgauge
else
    complete -F _memgauge -o bashdefault -o default memgauge
fi
