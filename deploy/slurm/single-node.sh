#!/usr/bin/env bash
# A Slurm of one node on loopback, for trying things out, as root:
#   single-node.sh install         Debian's packages, without starting their services
#   single-node.sh start FOLDER    all that it writes is in FOLDER; `source FOLDER/environment` to use it
#   single-node.sh stop FOLDER
set -euo pipefail

command=${1:?install, start or stop}
folder=$(realpath -m "${2:-.slurm}")
host=$(hostname -s)

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

install() {
    if command -v slurmctld slurmd munged > /dev/null; then
        return
    fi
    # Debian starts a service when it is installed, unless this file says no.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
        trap 'rm /usr/sbin/policy-rc.d' EXIT
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends slurm-wlm munge
}

start() {
    mkdir -p "$folder"/{state,spool,log}
    chmod 711 "$folder"
    (umask 077 && dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none)
    chmod 400 "$folder/munge.key"
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.sock" --pid-file="$folder/munged.pid" \
        --log-file="$folder/log/munged.log" --seed-file="$folder/munged.seed"
    cat > "$folder/slurm.conf" <<CONF
ClusterName=single
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.sock
CredType=cred/munge
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
KillWait=5
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024 * 9 / 10)) State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    echo "export SLURM_CONF='$folder/slurm.conf'" > "$folder/environment"
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -c
    slurmd -c
    for _ in $(seq 60); do
        if [ "$(sinfo --noheader --format=%T 2> /dev/null)" = idle ]; then
            echo "Slurm runs: source $folder/environment"
            return
        fi
        sleep 1
    done
    echo "Slurm does not come up; see $folder/log" >&2
    stop
    exit 1
}

stop() {
    for daemon in slurmd slurmctld munged; do
        if [ -s "$folder/$daemon.pid" ]; then
            kill "$(cat "$folder/$daemon.pid")" 2> /dev/null || true
        fi
    done
    for _ in $(seq 50); do
        if ! ls "$folder"/*.pid > /dev/null 2>&1; then
            break
        fi
        sleep 0.2
    done
    rm -f "$folder/munge.key"
}

case $command in
    install | start | stop) "$command" ;;
    *) echo "install, start or stop, not $command" >&2; exit 2 ;;
esac
