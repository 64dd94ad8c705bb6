#!/bin/sh
# Short real runs of every workload; $1 is the folder of the programs. Used under $RUNNER, an emulator.
set -eu
for workload in QP HP SP DP FP32 DPMIX FP32MIX QPDOT; do
    ${RUNNER:-} "$1/cpubench" --workload "$workload" --threads 2 --seconds 0.05 --warmup 0.01 >/dev/null
done
# Not every CPU has these: then the exit code is 77.
for workload in FP16 BF16DOT QPMM BF16MM; do
    status=0
    ${RUNNER:-} "$1/cpubench" --workload "$workload" --threads 2 --seconds 0.05 --warmup 0.01 >/dev/null || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
done
