#!/bin/sh
# probe.sh NAME FILES... -- COMPILER FLAGS... tries to compile and assemble each file of an instruction set.
# Prints lines for make when that fails: LEFT_OUT += NAME and WHY_NAME := the error. Warnings are no failure.
set -u
name=$1
files=""
shift
while [ "$1" != "--" ]; do
    files="$files $1"
    shift
done
shift
for file in $files; do
    if ! output=$(LC_ALL=C "$@" -w -c -o /dev/null "$file" 2>&1); then
        why=$(printf '%s\n' "$output" | sed -n 's/.*[Ee]rror: *//p' | head -n 1 | tr -cd "A-Za-z0-9 _.,:;{}()%=+/-")
        printf 'LEFT_OUT += %s\nWHY_%s := %s\n' "$name" "$name" "${why:-it failed without a message}"
        exit 0
    fi
done
