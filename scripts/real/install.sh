#!/usr/bin/env bash
# Installs the programs of scripts/real-programs.sh, and Slurm for scripts/cluster.sh, where they are missing: ./scripts/real/install.sh
#
# Only where that changes nothing else: as root, with apt-get, and where systemd does not run, which would start the
# daemons. Elsewhere it says what is missing. Exit status 0 in any case: what is not there is skipped.
set -eu
PATH=$PATH:/usr/sbin:/sbin

missing=
for pair in pigz:pigz xz:xz-utils zstd:zstd pbzip2:pbzip2 lbzip2:lbzip2 make:make gcc:gcc g++:g++ python3:python3 \
    sqlite3:sqlite3 rsync:rsync memcached:memcached redis-server:redis-server redis-cli:redis-tools nginx:nginx-light \
    curl:curl mosquitto:mosquitto mosquitto_pub:mosquitto-clients lighttpd:lighttpd haproxy:haproxy psql:postgresql \
    setpriv:util-linux logger:bsdutils iperf3:iperf3 rsyslogd:rsyslog socat:socat dnsmasq:dnsmasq-base apache2:apache2 \
    ps:procps mpirun:openmpi-bin mpicc:libopenmpi-dev /usr/include/zmq.h:libzmq3-dev /usr/include/uv.h:libuv1-dev \
    slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client; do
    [ -e "${pair%%:*}" ] || command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && [ ! -d /run/systemd/system ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    if apt-get -qq update && apt-get -qq install --no-install-recommends -y $missing >/dev/null; then
        exit 0
    fi
fi
echo "not installed, so skipped:$missing" >&2
