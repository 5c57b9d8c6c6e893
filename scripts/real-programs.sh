#!/usr/bin/env bash
# Real programs, unmodified, run natively and under vsrun, must print the same bytes and end with the same status:
# ./scripts/real-programs.sh [--short]
#
# Each runs natively; under `vsrun --once`, twice, which must be the same execution; and under `--search random`, of which
# the last execution's output is compared (vsrun itself notes whether the others printed something else). A server runs
# together with a client, whose output is compared, and is ended with SIGTERM, natively and under vsrun.
#
# Exit status 1 if anything differs, if vsrun reports a bug, or if a program that should use threads or processes did not.
# What is missing is installed where that is possible (see real/install.sh) and skipped otherwise, and said so.
# --short: few random executions, nothing is installed. VSRUN=PATH uses that binary instead of building one.
set -eu
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
cd "$(dirname "$0")/.."
. scripts/own.sh

few=50 many=200
case "${1:-}" in
    --short) few=5 many=5 ;;
    '') ./scripts/real/install.sh ;;
    *) echo "usage: scripts/real-programs.sh [--short]" >&2; exit 2 ;;
esac

. scripts/vsrun.sh
here=$(pwd)/scripts/real
cd "$dir"

# Text that compresses, but not to nothing; enough lines for sort to use threads.
awk 'BEGIN { srand(7); for (i = 0; i < 300000; i++) printf "%d %d\n", 1e6 * rand(), i }' >lines
head -c 1500000 lines >text

# A launcher that is a script would hand over to the interpreter only later.
python=$(command -v python3 >/dev/null && python3 -c 'import sys; print(sys.executable)') || python=python3

compared=0 differences=0 begun=0
# The program that is compared, and how it runs.
name= mode=native
# What stands before a command to run it as another user; further options of vsrun.
as=() options=()
row() { printf '%-18s %-12s %-14s %-9s %11s %9s\n' "$@"; }

# What went wrong, below the row, and once more at the end.
wrong() {
    printf '    %s\n' "$@"
    printf '%s, %s: %s\n' "$name" "$mode" "$*" >>all-differences
    differences=$((differences + 1))
}

# The field of the JSON object in the file `json`: a number, a string or what stands between braces.
field() { sed -n "s/.*\"$1\":{\{0,1\}\([^,}]*\).*/\1/p" json | tr -d '"' | tr : ' '; }

start_clock() { begun=$(date +%s%N); }

seconds() { awk "BEGIN { printf \"%.2f s\", ($(date +%s%N) - $begun) / 1e9 }"; }

is_there() {
    case "$1" in
        /*) [ -e "$1" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# NAME PROGRAM...: whether all of the programs, and files with a whole path, are there; says so if one is not.
there() {
    local program
    name=$1 mode=native
    shift
    for program; do
        if ! is_there "$program"; then
            row "$name" skipped "no ${program##*/}" "" "" ""
            return 1
        fi
    done
    compared=$((compared + 1))
}

# MODE OPTION...: vsrun with the options on the command in `command`; MODE is for the table.
under_vsrun() {
    local code=0 status same=differs
    mode=$1
    shift
    start_clock
    timeout 300 "${as[@]}" "$vsrun" "${options[@]}" "$@" --format json --output ours "${command[@]}" </dev/null >json 2>errors || code=$?
    status=$(field program_status)
    cmp -s native ours && same=same
    row "" "$mode" "${status:-none}" "$same" "$(field transitions)" "$(seconds)"
    [ "$code" -eq 3 ] || [ "$code" -eq 0 ] ||
        wrong "vsrun ended with $code: $(sed -n 's/.*"summary":"\([^"]*\)".*/\1/p' json) $(tail -n 2 errors)"
    [ "$same" = same ] || wrong "the output differs: $(cmp native ours 2>&1 || true)"
    # A shell says 128 and the number of the signal.
    [ "$status" = "exit $native_status" ] || [ "$status" = "signal $((native_status - 128))" ] ||
        wrong "the status is ${status:-unknown}, natively $native_status"
    [ "$(field transitions)" != 0 ] || wrong "it has no visible operation: no threads or processes were used"
    if grep -q 'differ in what they printed' json; then
        wrong "$(sed -n 's/.*"notes":\[\([^]]*\)\].*/\1/p' json)"
    fi
}

# What a report says but for how long it took: executions with equal ones took the same steps.
steps() { sed 's/"seconds":[^,]*,//' json; }

# EXECUTIONS OPTION...: all runs under vsrun.
runs() {
    local executions=$1 first
    shift
    under_vsrun once --once "$@"
    first=$(steps)
    under_vsrun 'once again' --once "$@"
    [ "$first" = "$(steps)" ] || wrong "the two executions differ:" "$first" "$(steps)"
    [ -n "$(field trace)" ] || wrong "nothing tells what steps were taken"
    # A client that asks again and again for some seconds gives up in some execution where timeouts come at any moment.
    under_vsrun "random $executions" --search random --timeouts urgent --max-executions "$executions" "$@"
}

# NAME EXECUTIONS COMMAND...: all runs of one program.
compare() {
    local name=$1 executions=$2
    shift 2
    command=("$@")
    native_status=0
    start_clock
    "$@" >native 2>&1 </dev/null || native_status=$?
    row "$name" native "exit $native_status" "" "" "$(seconds)"
    runs "$executions"
}

# NAME EXECUTIONS CLIENT SERVER...: a server and a client, a shell command that waits for the server to be there.
serve() {
    local name=$1 executions=$2 client=$3 pid
    shift 3
    native_status=0
    start_clock
    # In a group of its own: some kill all of theirs at their end.
    setsid "${as[@]}" "$@" >log 2>&1 </dev/null &
    pid=$!
    timeout 30 sh -c "$client" >native 2>&1 </dev/null || wrong "natively the client of $name fails: $(tail -n 2 log)"
    end_own "$pid" || true
    wait "$pid" || native_status=$?
    row "$name" native "exit $native_status" "" "" "$(seconds)"
    # The server is executed by a shell that sends what it prints away.
    command=(sh -c 'exec "$@" >/dev/null 2>&1' server "$@")
    printf '%s\n' "$client" >client
    runs "$executions" --stop-signal TERM --with "sh $dir/client"
}

row program run status output transitions time
there 'pigz -p2' pigz && compare 'pigz -p2' $few pigz -p2 -c text
there 'xz -T2' xz && compare 'xz -T2' $few xz -T2 --block-size=256KiB -1 -c text
there 'zstd -T2' zstd && compare 'zstd -T2' $few zstd -q -T2 -B524288 -3 -c text
there 'pbzip2 -p2' pbzip2 && compare 'pbzip2 -p2' $many pbzip2 -p2 -b1 -c -k text
there 'lbzip2 -n2' lbzip2 && compare 'lbzip2 -n2' $few lbzip2 -n2 -c -k text
there 'sort --parallel=2' sort && compare 'sort --parallel=2' $few sort --parallel=2 -S 64M lines

if there 'make -j2' make gcc; then
    mkdir project
    printf 'int twice(int n) { return 2 * n; }\n' >project/twice.c
    printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); }\n' >project/main.c
    printf 'all: a b answer\n\t@cat a b\n\t@./answer\n\n' >project/Makefile
    printf 'a b:\n\t@echo $@ >$@\n\nanswer: main.o twice.o\n\t@gcc -o $@ main.o twice.o\n' >>project/Makefile
    printf '%%.o: %%.c\n\t@gcc -O1 -c -o $@ $<\n' >>project/Makefile
    # The clock under vsrun shows the beginning of 2026.
    touch -d 2025-01-01 project/*
    compare 'make -j2' $few sh -c 'cd project; rm -f a b answer *.o; make -s -j2'
fi

pipeline='(echo background >&2) & seq 1000 | sort -rn | head -3 | (cat; echo sub) | tr 0-9 a-j; wait'
there 'shell pipeline' sh && compare 'shell pipeline' $few sh -c "$pipeline"

there 'Python threads' "$python" && compare 'Python threads' $few "$python" "$here/queue_work.py"
there 'Python servers' "$python" && compare 'Python servers' $few "$python" "$here/servers.py"

if there 'C++20 threads' "${CXX:-g++}"; then
    "${CXX:-g++}" -std=c++20 -O2 -o threads "$here/threads.cc" -lpthread
    compare 'C++20 threads' $few ./threads
fi

if there 'ZeroMQ' "${CC:-gcc}" /usr/include/zmq.h; then
    "${CC:-gcc}" -O2 -o zmq "$here/zmq.c" -lzmq -lpthread
    compare 'ZeroMQ' $few ./zmq
fi

if there 'libuv' "${CC:-gcc}" /usr/include/uv.h; then
    "${CC:-gcc}" -O2 -o uv "$here/uv.c" -luv
    compare 'libuv' $few ./uv
fi

if there 'mpirun -np 2' mpicc mpirun; then
    mpicc -O1 -o ring "$here/mpi_ring.c"
    # Both processes destroy a lock that they share.
    options=(--allow-misuse)
    root=
    [ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
    compare 'mpirun -np 2' $few mpirun $root --oversubscribe -np 2 ./ring
    options=()
fi

there 'ps in a script' ps mkfifo && mkfifo fifo && compare 'ps in a script' $few sh -c '
    cat fifo & p=$!
    [ "$(ps -o pid= -p $p | tr -d " ")" = $p ] && echo found
    [ "$(ps -o ppid= -p $p | tr -d " ")" = $$ ] && echo mine
    [ "$(ps -e -o pid= | grep -cw $p)" = 1 ] && echo listed
    [ "$(grep -cw -e $p -e $$ /proc/$p/status)" -ge 2 ] && echo told
    kill $p; wait $p 2>/dev/null; ps -p $p >/dev/null || echo gone'

# Three processes write to one database at a time.
insert='for n in 1 2 3; do sqlite3 -cmd ".timeout 20000" db "insert into t values($n)" & done; wait'
there sqlite3 sqlite3 && compare sqlite3 $few sh -c "
    rm -f db; sqlite3 db 'create table t(n integer)'; $insert; sqlite3 db 'select count(*), sum(n) from t'"

if there rsync rsync; then
    # What stands for the remote shell: the rest of its arguments is the command.
    printf '#!/bin/sh\nshift\nexec "$@"\n' >remote
    chmod +x remote
    mkdir -p tree/a/b
    head -c 300000 text >tree/a/text
    seq 1000 >tree/a/b/numbers
    ln -s a/text tree/link
    # The times of files are real: in the second in which they were made rsync need not set those of the copy.
    find tree -exec touch -h -d 2020-01-01 {} +
    compare rsync $few sh -c "
        rm -rf copy; rsync -a -e ./remote tree/ host:copy; diff -r tree copy
        (cd copy; find . | sort); echo more >>copy/a/text; rsync -rlc --out-format=%n -e ./remote tree/ host:copy"
fi

if there memcached memcached "$python"; then
    serve memcached $many "'$python' '$here/memcached_client.py' 21211" \
        memcached -u "$(id -un)" -p 21211 -l 127.0.0.1 -t 2
fi

if there redis redis-server redis-cli; then
    serve redis $many '
        ask() { redis-cli -p 21212 "$@"; }
        for i in $(seq 50); do if ask ping >/dev/null 2>&1; then break; fi; sleep 0.1; done
        ask set n 1; ask incr n; ask lpush l x y z; ask lrange l 0 -1; ask eval "return 6 * 7" 0' \
        redis-server --port 21212 --bind 127.0.0.1 --save ''
fi

if there nginx nginx curl; then
    mkdir -p web/html web/logs
    echo hello >web/html/index.html
    head -c 300000 text >web/html/text
    # Workers that change to another user would have to be allowed to see the directory.
    printf '%s\n' "user $(id -un) $(id -gn);" 'worker_processes 2; daemon off; pid nginx.pid;' \
        'error_log stderr; events { worker_connections 64; }' \
        'http { access_log off; server { listen 127.0.0.1:21213; root html; } }' >web/nginx.conf
    serve 'nginx, 2 workers' $many '
        at=http://127.0.0.1:21213
        for i in $(seq 50); do if curl -s $at/; then break; fi; sleep 0.1; done
        curl -s $at/text | cksum & curl -s -o /dev/null -w "%{http_code}\n" $at/nothing >missing; wait; cat missing' \
        nginx -p "$dir/web" -e stderr -c "$dir/web/nginx.conf"
fi

if there mosquitto mosquitto mosquitto_pub mosquitto_sub; then
    serve mosquitto $few '
        say() { mosquitto_pub -p 21214 -q 1 -t "$1" -m "$2"; }
        for i in $(seq 50); do if say up yes 2>/dev/null; then break; fi; sleep 0.1; done
        mosquitto_sub -p 21214 -q 1 -t news -C 2 & sleep 0.5; say news first; say news second; wait' \
        mosquitto -p 21214
fi

if there lighttpd lighttpd curl; then
    mkdir -p light
    echo hello >light/index.html
    printf 'server.%s\n' "document-root = \"$dir/light\"" 'port = 21215' 'bind = "127.0.0.1"' \
        "errorlog = \"$dir/light/log\"" >light.conf
    serve lighttpd $few '
        at=http://127.0.0.1:21215
        for i in $(seq 50); do if curl -s $at/index.html; then break; fi; sleep 0.1; done
        curl -s -o /dev/null -w "%{http_code}\n" $at/nothing' \
        lighttpd -D -f "$dir/light.conf"
fi

if there haproxy haproxy curl; then
    printf '%s\n' global 'nbthread 2' defaults 'mode http' 'timeout connect 1s' 'timeout client 1s' 'timeout server 1s' \
        'frontend f' 'bind 127.0.0.1:21216' 'http-request return status 200 content-type text/plain string "hi"' >ha.conf
    serve haproxy $few '
        for i in $(seq 50); do if curl -s http://127.0.0.1:21216/; then break; fi; sleep 0.1; done' \
        haproxy -db -f "$dir/ha.conf"
fi

if there iperf3 iperf3; then
    # What it says of speed differs from run to run.
    serve iperf3 $few '
        for i in $(seq 50); do
            if iperf3 -c 127.0.0.1 -p 21218 -n 100K >report 2>&1; then break; fi; sleep 0.1
        done; grep -c receiver report' \
        iperf3 -s -p 21218
fi

if there rsyslog rsyslogd logger; then
    printf '%s\n' 'module(load="imuxsock" SysSock.Use="off")' 'module(load="imtcp")' \
        "input(type=\"imuxsock\" Socket=\"$dir/syslog\")" 'input(type="imtcp" port="21219" address="127.0.0.1")' \
        'template(name="line" type="string" string="%programname%%msg%\n")' \
        "action(type=\"omfile\" file=\"$dir/messages\" template=\"line\")" >rsyslog.conf
    serve rsyslog $few "
        rm -f messages
        by_tcp() { logger --tcp -n 127.0.0.1 -P 21219 --rfc3164 -t \"\$1\" \"\$2\" 2>/dev/null; }
        until_there() { for i in \$(seq 50); do if grep -q \"\$1\" messages 2>/dev/null; then break; fi; sleep 0.1; done; }
        for i in \$(seq 50); do if by_tcp up yes; then break; fi; sleep 0.1; done; until_there yes
        logger -u $dir/syslog -t one first; until_there first; by_tcp two second; until_there second; cat messages" \
        rsyslogd -n -f "$dir/rsyslog.conf" -i "$dir/rsyslog.pid"
fi

# socat itself would give up after half a second of silence; a shell that reads does not.
socat_client='
    ask() { (exec 3<>/dev/tcp/127.0.0.1/$0 && echo "$1" >&3 && read -r answer <&3 && echo "$answer") 2>/dev/null; }
    for i in $(seq 50); do if ask hello; then break; fi; sleep 0.1; done; ask 1; ask 2 & wait'
if there 'socat' socat bash; then
    printf '%s\n' "$socat_client" >socat_client
    serve 'socat, EXEC' $few 'bash -c "$(cat socat_client)" 21220' \
        socat TCP-LISTEN:21220,bind=127.0.0.1,reuseaddr,fork EXEC:cat
    serve 'socat, PIPE' $few 'bash -c "$(cat socat_client)" 21221' \
        socat TCP-LISTEN:21221,bind=127.0.0.1,reuseaddr,fork PIPE
fi

if there dnsmasq dnsmasq "$python"; then
    serve dnsmasq $few "
        ask() { '$python' '$here/dns_client.py' \$1 21222 2>/dev/null; }
        for i in \$(seq 50); do if ask box.example; then break; fi; sleep 0.1; done; ask nobody.example" \
        dnsmasq -k -C /dev/null -u "$(id -un)" -p 21222 --listen-address=127.0.0.1 --bind-interfaces --no-resolv --no-hosts \
        --address=/box.example/10.1.2.3 --local=/example/ -x "$dir/dnsmasq.pid"
fi

modules=$(ls -d /usr/lib/apache2/modules 2>/dev/null || true)
if there apache2 apache2 curl "${modules:-.}/mod_mpm_event.so"; then
    mkdir -p apache/html apache/logs
    echo hello >apache/html/index.html
    # Those who serve become another user where root starts them.
    chmod 755 "$dir"
    # In the private copies of files they would meet directories of root alone.
    options=(--files real)
    for mpm in event worker prefork; do
        printf '%s\n' "ServerRoot $dir/apache" 'ServerName localhost' "PidFile $dir/apache/pid" 'Listen 127.0.0.1:21223' \
            "LoadModule mpm_${mpm}_module $modules/mod_mpm_$mpm.so" "LoadModule authz_core_module $modules/mod_authz_core.so" \
            "LoadModule dir_module $modules/mod_dir.so" 'User www-data' 'Group www-data' "ErrorLog $dir/apache/logs/error" \
            "DocumentRoot $dir/apache/html" 'StartServers 2' "<Directory $dir/apache/html>" 'Require all granted' \
            '</Directory>' >"apache/$mpm.conf"
        serve "apache2, $mpm" $few '
            at=http://127.0.0.1:21223
            for i in $(seq 50); do if curl -s $at/; then break; fi; sleep 0.1; done
            curl -s $at/index.html; curl -s -o /dev/null -w "%{http_code}\n" $at/nothing' \
            apache2 -f "$dir/apache/$mpm.conf" -DFOREGROUND
    done
    options=()
fi

# Its processes start one another, share memory and semaphores, and wake each other by signals and sockets. It does not run as root.
postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if there PostgreSQL "${postgres:-.}/postgres" psql setpriv; then
    if [ "$(id -u)" -eq 0 ]; then
        as=(setpriv --reuid postgres --regid postgres --clear-groups)
        chmod 755 "$dir"
        cp "$vsrun" shared-vsrun
        chmod 755 shared-vsrun
        vsrun=$dir/shared-vsrun
    fi
    mkdir pg
    touch json ours
    if [ "$(id -u)" -eq 0 ]; then chown postgres pg json ours; fi
    "${as[@]}" "$postgres/initdb" -D "$dir/pg/data" -A trust >/dev/null
    # Each run begins with the same database.
    options=(--files private)
    serve PostgreSQL $few '
        ask() { psql -X -q -A -t -h 127.0.0.1 -p 21217 -U postgres -c "$1" postgres; }
        for i in $(seq 50); do if ask "select 1" 2>/dev/null; then break; fi; sleep 0.1; done
        ask "create table t(n integer)"
        ask "insert into t select generate_series(1, 100)" & answer=$(ask "select 6 * 7"); wait; echo "$answer"
        ask "select count(*), sum(n) from t"; ask "drop table t"' \
        "$postgres/postgres" -D "$dir/pg/data" -p 21217 -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$dir/pg"
    as=() options=()
fi

if [ "$differences" -gt 0 ]; then
    cut -c 1-1000 all-differences
    echo "$differences differences in $compared programs"
    exit 1
fi
echo "no differences in $compared programs"
