#!/bin/sh
# A task of an engine, written by vsrun cluster: work.sh PLACE VSRUN GRAIN LIST [NUMBER]
#
# Explores the NUMBER-th piece of PLACE/LIST (Slurm tells the number by itself) until its turn is over, or nobody wants it any more: then
# PLACE/go is gone. How that ended is written beside the list.
place=$1 vsrun=$2 grain=$3 list=$4 number=${5:-$SLURM_ARRAY_TASK_ID}
told=$place/$list.$number
[ -e "$place/go" ] && piece=$(sed -n "${number}p" "$place/$list") && [ -n "$piece" ] || exit 0
"$vsrun" pieces work --time "$grain" --while "$place/go" "${place%/*}/$piece" >/dev/null 2>"$told.err" </dev/null
echo $? >"$told.new" && mv "$told.new" "$told.exit"
