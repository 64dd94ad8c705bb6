#!/bin/sh
# Short real runs of every workload; $1 is the folder of the programs. Used under $RUNNER, an emulator.
set -eu
for workload in RS WS RR WR; do
    ${RUNNER:-} "$1/diskbench" --workload "$workload" --record 4KiB --size 256KiB --total 512KiB --threads 2 --warmup 0 \
        --directory "${TMPDIR:-/tmp}" >/dev/null
done
${RUNNER:-} "$1/diskbench" --workload META --files 20 --seconds 0.01 --threads 2 --warmup 0 --directory "${TMPDIR:-/tmp}" >/dev/null
