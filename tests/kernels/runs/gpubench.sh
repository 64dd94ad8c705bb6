#!/bin/sh
# Without a driver gpubench says so; $1 is the folder of the programs. Used under $RUNNER, an emulator.
set -eu
export PEAKMARK_LIBCUDA=/nowhere/libcuda.so.1
for arguments in --list "--workload FP64" "--workload RWR --gpus all"; do
    status=0
    # shellcheck disable=SC2086 # several words
    ${RUNNER:-} "$1/gpubench" $arguments 2>/dev/null || status=$?
    [ "$status" -eq 77 ]
done
