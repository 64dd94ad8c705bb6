#!/bin/sh
# Short real runs of every workload; $1 is the folder of the programs. Used under $RUNNER, an emulator.
set -eu
for workload in RS WS RWS RR WR RWR TRIAD; do
    for pool in block 4MiB; do
        ${RUNNER:-} "$1/rambench" --workload "$workload" --block 1KiB --pool "$pool" --threads 2 --seconds 0.05 --warmup 0.01 >/dev/null
    done
done
${RUNNER:-} "$1/rambench" --workload LAT --block 1MiB --threads 2 --seconds 0.05 --warmup 0.01 >/dev/null
# Where there are not two CPUs, no line goes from one to another.
${RUNNER:-} "$1/rambench" --workload C2C --threads 2 --cpus 0,1 --warmup 0.01 >/dev/null || [ "$(nproc)" -lt 2 ]
for workload in LADDER-LAT LADDER-RS; do
    ${RUNNER:-} "$1/rambench" --workload "$workload" --pool 1MiB --steps 1 --seconds 0.05 --warmup 0.01 --huge-pages off >/dev/null || [ $? = 77 ]
done
# Where there are not two NUMA nodes, nothing goes from one to another.
for workload in NUMA-RS NUMA-WS NUMA-LAT; do
    ${RUNNER:-} "$1/rambench" --workload "$workload" --threads 2 --pool 64MiB --seconds 0.05 --warmup 0.01 >/dev/null || [ $? = 77 ]
done
# An architecture without streaming stores has no load.
${RUNNER:-} "$1/rambench" --workload LOADED --threads 2 --rates 2 --pool 8MiB --seconds 0.05 --warmup 0.01 >/dev/null || [ $? = 77 ]
