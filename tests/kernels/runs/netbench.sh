#!/bin/sh
# Short real runs of every mode; $1 is the folder of the programs. Used under $RUNNER, an emulator.
set -eu
export NETBENCH_KEY="a secret of this run"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for mode in TCP UDP "latency --protocol TCP" "latency --protocol UDP"; do
    : >"$log" # the server may be slow to start, and the log of the server before must not be read
    ${RUNNER:-} "$1/netbench" serve --address 127.0.0.1 --port 0 --deadline 30 >/dev/null 2>"$log" &
    server=$!
    # Its first line names the port. A server that cannot start ends, and the wait with it.
    until grep -q 'listening on port' "$log"; do
        kill -0 "$server" || { cat "$log" >&2; exit 1; }
    done
    port=$(sed -n 's/.*listening on port \([0-9]*\).*/\1/p' "$log")
    # shellcheck disable=SC2086 # a mode is several words
    ${RUNNER:-} "$1/netbench" $mode --streams 2 --seconds 0.05 --warmup 0.01 --port "$port" 127.0.0.1 >/dev/null
    wait "$server"
done
