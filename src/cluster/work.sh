#!/bin/sh
# A task of an engine, written by vsrun cluster: work.sh PLACE VSRUN GRAIN LIST [NUMBER]
#
# Explores the NUMBER-th piece of PLACE/LIST (Slurm tells the number by itself) until its turn is over, or nobody wants it any more: then
# PLACE/go is gone. How that ended is written beside the list.
place=$1 vsrun=$2 grain=$3 list=$4 number=${5:-$SLURM_ARRAY_TASK_ID}
told=$place/$list.$number
[ -e "$place/go" ] && piece=$(sed -n "${number}p" "$place/$list") && [ -n "$piece" ] || exit 0
"$vsrun" pieces work --time "$grain" "${place%/*}/$piece" >/dev/null 2>"$told.err" </dev/null &
work=$!
trap 'kill -TERM $work 2>/dev/null' TERM
(while [ -e "$place/go" ]; do sleep 1; done; kill -TERM $work 2>/dev/null) &
watch=$!
wait $work
status=$?
# A signal has ended the wait, and not vsrun.
while kill -0 $work 2>/dev/null; do wait $work; status=$?; done
kill $watch 2>/dev/null
echo $status >"$told.new" && mv "$told.new" "$told.exit"
