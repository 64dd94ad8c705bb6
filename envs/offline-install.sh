#!/bin/sh
# Install peakmark from this archive, without a network: sh install.sh [FOLDER], default .venv in the current folder.
# It needs a Python alone, the one that the archive was made for: PYTHON=/path/to/python3 sh install.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-.venv}
"${PYTHON:-python3}" "$here/check.py"
"${PYTHON:-python3}" -m venv --without-pip "$folder"
for pip in "$here"/wheels/pip-*.whl; do break; done
"$folder/bin/python" "$pip/pip" install --quiet --disable-pip-version-check --no-index --find-links "$here/wheels" peakmark
echo "peakmark is installed; gcc and make compile its kernels at the first run (names of packages: $here/packages.txt)"
echo "to measure this machine: $folder/bin/peakmark run quick"
