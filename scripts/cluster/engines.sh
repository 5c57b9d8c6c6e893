# Sourced by scripts/cluster.sh and scripts/simulate.sh: engines on this machine, each with four workers of CPUS CPUs (1), told more of them than there are.
#
# Wants `work`, a directory that its user removes, and `own`, processes that its user ends; sets `failed` where what is installed does not come up. Slurm runs as
# who calls this; SCHEDULER: its SchedulerParameters (by default what makes it quick).
# shellcheck shell=bash disable=SC2034,SC2154

start_slurm() {
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v sbatch >/dev/null || return 1
    local dir=$work/slurm host n cpus=${CPUS:-1} scheduler=${SCHEDULER-batch_sched_delay=0,sched_interval=1,sched_min_interval=1}
    host=$(hostname -s)
    mkdir -p "$dir"/{state,log,spool-n1,spool-n2,spool-n3,spool-n4}
    cat >"$dir/slurm.conf" <<END
ClusterName=vsruntest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/none
CredType=cred/none
CryptoType=crypto/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldLogFile=$dir/log/ctld
SlurmdLogFile=$dir/log/%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
${scheduler:+SchedulerParameters=$scheduler}
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17004] CPUs=$cpus State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    export SLURM_CONF=$dir/slurm.conf
    slurmctld -D >"$dir/log/out" 2>&1 &
    own+=($!)
    for n in 1 2 3 4; do
        slurmd -D -N "n$n" >"$dir/log/out-n$n" 2>&1 &
        own+=($!)
    done
    for n in $(seq 100); do
        [ "$(sinfo --noheader --format='%D %t' 2>/dev/null)" != "4 idle" ] || return 0
        sleep 0.3
    done
    echo "cluster: FAILED: Slurm's four nodes are not idle: $(sinfo 2>&1 | tail -n 2)"
    failed=1
    return 1
}

start_hq() {
    python3 -c 'import hyperqueue' 2>/dev/null || return 1
    export HQ_SERVER_DIR=$work/hq
    python3 -c '
import signal, sys
from hyperqueue.cluster import LocalCluster, WorkerConfig
cluster = LocalCluster(sys.argv[1])
for _ in range(4):
    cluster.start_worker(WorkerConfig(cores=int(sys.argv[2])))
print("up", flush=True)
signal.sigwait({signal.SIGTERM})
' "$HQ_SERVER_DIR" "${CPUS:-1}" >"$work/hq-up" 2>"$work/hq-said" &
    own+=($!)
    local n
    for n in $(seq 100); do
        ! grep -q up "$work/hq-up" || return 0
        sleep 0.2
    done
    echo "cluster: FAILED: HyperQueue does not come up: $(tail -n 1 "$work/hq-said")"
    failed=1
    return 1
}
