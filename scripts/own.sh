# For scripts of bash, which read it in.

# end_own [-SIGNAL] PID...: sends a signal to background jobs of this shell; with job control (set -m), to all of the job's group. It goes by the job's number:
# bash knows what it has waited for, and sends nothing there. The number of such a process may be another's by then. False: one of them is over.
end_own() {
    local signal=-TERM pid job status=0
    case ${1:-} in -*) signal=$1 && shift ;; esac
    for pid; do
        job=$(jobs -l | awk -v pid="$pid" '$2 == pid && /Running|Stopped/ { gsub(/[^0-9]/, "", $1); print $1 }')
        [ -n "$job" ] && kill "$signal" "%$job" 2>/dev/null || status=1
    done
    return $status
}
