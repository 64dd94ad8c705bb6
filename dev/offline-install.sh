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
# Where no compiler is. They need the C library of the machine that made the archive, or a newer one.
if "$here/kernels/cpubench" --version >/dev/null 2>&1; then
    packed=$("$folder/bin/python" -c 'from peakmark.resources import ROOT; print(ROOT)')
    cp -r "$here/kernels" "$packed/"
    echo "peakmark is installed; the kernels are compiled at the first run, without gcc those of this archive measure"
else
    echo "peakmark is installed; gcc and make compile its kernels at the first run (names of packages: $here/packages.txt)"
fi
echo "to measure this machine: $folder/bin/peakmark run quick"
