#!/bin/sh
# Short real runs of every mode; $1 is the folder of the programs. Used under the sanitizers and $RUNNER, an emulator.
set -eu
export NETBENCH_KEY="a secret of this run"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for mode in TCP UDP "latency --protocol TCP" "latency --protocol UDP"; do
    : >"$said" # the server may be slow to start, and what the one before has said is no port of this one's
    ${RUNNER:-} "$1/netbench" serve --address 127.0.0.1 --port 0 --deadline 30 >/dev/null 2>"$said" &
    server=$!
    # Its first line tells the port. A server that cannot start ends, and the wait with it.
    until grep -q 'listening on port' "$said"; do
        kill -0 "$server" || { cat "$said" >&2; exit 1; }
    done
    port=$(sed -n 's/.*listening on port \([0-9]*\).*/\1/p' "$said")
    # shellcheck disable=SC2086 # a mode is several words
    ${RUNNER:-} "$1/netbench" $mode --streams 2 --seconds 0.05 --warmup 0.01 --port "$port" 127.0.0.1 >/dev/null
    wait "$server"
done
