#!/usr/bin/env bash
# Install what is missing and nothing else: Debian packages where that is allowed, Python packages into .venv.
#   envs/install.sh run              what measuring needs
#   envs/install.sh test             and what the tests need
#   envs/install.sh packages [test]  the Debian packages alone: for root, where the checkout is somebody else's
# "run again" and "test again" also ask for packages that could not be had a while ago.
# Safe to repeat: it does nothing when all is there. It changes no file it did not make.
set -euo pipefail
cd "$(dirname "$0")/.."

only_packages=""
if [ "${1:-}" = packages ]; then
    only_packages=yes
    shift
    set -- "${1:-run}" again
fi
purpose=${1:-run}
# shellcheck disable=SC2034  # for debian.bash
again=${2:-}
lists=(envs/debian.txt)
requirements=envs/requirements.txt
if [ "$purpose" = test ]; then
    lists+=(envs/debian-test.txt)
    requirements=envs/requirements-test.txt
fi
# shellcheck disable=SC2034
work=""
# The environment is made by a Python outside of it.
PATH=${PATH//"$PWD/.venv/bin:"/}

say() { printf 'install: %s\n' "$*"; }
end() {
    say "$*" >&2
    exit 1
}

# shellcheck source=envs/debian.bash
. envs/debian.bash

# Programs that set-up starts write into this folder too, unless this user has chosen another.
own=$PWD/build/install
export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$own/pip-cache}

interrupted() {
    say "stopped; the same command goes on from here" >&2
    trap - INT
    kill -INT $$
}
trap interrupted INT

check_folder() {
    case $PWD in
    *[\'\"\$\`\\:]* | *$'\n'*)
        end "the name of this folder, $(printf %q "$PWD"), has a quote, a \$, a backslash or a colon, with which Python and make cannot work: move it"
        ;;
    esac
    if ! [ -w . ]; then
        end "$(id -un) may not write into $PWD: its owner runs 'make setup kernels' there once, then anybody measures elsewhere with
  $PWD/.venv/bin/snakemake --snakefile $PWD/Snakefile --profile $PWD/local --directory FOLDER"
    fi
    if [ ! -x envs/install.sh ]; then
        end "$PWD lies on a filesystem mounted noexec, where nothing can be run: clone it to another one"
    fi
}

# Compilers and pip put their files there.
check_temporary() {
    local file
    if file=$(mktemp 2>/dev/null) && head -c 1000000 /dev/zero 2>/dev/null >"$file"; then
        rm -f "$file"
        return
    fi
    rm -f "$file"
    end "temporary files cannot be written to ${TMPDIR:-/tmp}: it is full, or closed to $(id -un); make room, or set TMPDIR to another folder"
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            type -P "$candidate"
            return
        fi
    done
}

# What is needed is tried, not looked up: it may come from elsewhere than Debian's packages.
check_needed() {
    local lacking=()
    try() {
        local package=$1
        shift
        "$@" >/dev/null 2>&1 || lacking+=("$package")
    }
    compiles_or_has() {
        type -P gcc || { test -e "$1" && return; }
        echo "$2 int main(void) { return 0; }" | gcc -x c -o /dev/null -
    }
    has_venv() { "$python" -c 'import venv, ensurepip'; }
    try gcc type -P gcc
    try make type -P make
    try libc6-dev compiles_or_has /usr/include/stdio.h $'#include <stdio.h>\n#include <linux/types.h>\n'
    if [ -n "$python" ]; then
        try python3-venv has_venv
    fi
    [ ${#lacking[@]} -eq 0 ] ||
        end "needed, and not here: ${lacking[*]}; on Debian: $(as_root "apt-get install -y --no-install-recommends ${lacking[*]}")"
    [ -n "$python" ] ||
        end "Python 3.11, 3.12 or 3.13 is needed, and not here (for 3.14 Snakemake's immutables is not built yet); if it is elsewhere: make PYTHON=/path/to/python3 ..."
}

pip() { LC_ALL=C.UTF-8 .venv/bin/python -m pip "$@" >>"$log" 2>&1; }

# What an environment was made of, where, and by which Python: pip finds nothing in one that was moved.
stamp_of() {
    local made
    made=$({ cat envs/install.sh envs/requirements-build.txt "$requirements" pyproject.toml && pwd -P && "$python" -VV; } | sha256sum | cut -c1-16)
    echo ".venv/peakmark-$made"
}

# Whether the environment there was made here by this Python, and is whole enough to be brought up to date.
is_ours() {
    [ -x .venv/bin/pip ] && head -n 3 .venv/bin/pip | grep -qF "$(pwd -P)/.venv/bin/" &&
        [ "$(.venv/bin/python -VV 2>&1)" = "$("$python" -VV)" ] && .venv/bin/python -c 'import pip' 2>/dev/null
}

# An environment that cannot be brought up to date is kept, as it may hold files of the user. One that this script had only
# begun is made again.
make_environment() {
    local begun=.venv/peakmark-begun aside
    if [ -e "$begun" ]; then
        rm -rf .venv
    elif [ -e .venv ] || [ -L .venv ]; then
        aside=.venv-$(date +%Y%m%d-%H%M%S)
        mv .venv "$aside"
        say "the .venv that was here belongs to another folder or Python: it is now $aside, and not used any more"
    fi
    mkdir -p .venv
    touch "$begun"
    "$python" -m venv "$(pwd -P)/.venv" >>"$log" 2>&1 ||
        end "the virtual environment could not be made: $(why_pip); all it said is in build/install/pip.log"
}

python_packages() {
    local stamp log
    stamp=$(stamp_of)
    [ ! -f "$stamp" ] || return 0
    say "Python packages into .venv"
    mkdir -p "$own"
    log=$own/pip.log
    : >"$log"
    is_ours || make_environment
    # Without isolation: what builds the few source packages is then pinned as well.
    if ! { pip install --retries 2 --disable-pip-version-check --require-hashes -r envs/requirements-build.txt &&
        pip install --retries 2 --disable-pip-version-check --require-hashes --no-build-isolation --use-pep517 -r "$requirements" &&
        pip install --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .; }; then
        end "Python packages could not be installed: $(why_pip); all it said is in build/install/pip.log"
    fi
    # Until 3.12 Python reads this file in the encoding of the locale, which may lack a letter of this folder's name.
    echo ../../../../src | tee .venv/lib/python*/site-packages/_peakmark.pth >/dev/null
    rm -f .venv/peakmark-*
    rm -rf "$own/pip-cache"
    touch "$stamp"
}

why_pip() {
    if grep -qE 'NewConnectionError|NameResolutionError|Temporary failure in name|ConnectTimeout|Network is unreachable|ProxyError' "$log"; then
        echo "the package index cannot be reached, this needs a network or pip's own configuration for a mirror"
    elif grep -q 'No space left on device' "$log"; then
        echo "no space is left on the disk of ${TMPDIR:-/tmp} or of $PWD"
    else
        grep -iE '^ERROR' "$log" | head -n 1 | cut -c1-300 || echo "pip failed"
    fi
}

# The checker of PDF/A and PDF/UA for the tests of the report, which skip what needs it when it cannot be had.
verapdf() {
    local folder=.venv/verapdf stamp
    stamp=$folder/$(cat dev/verapdf/* | sha256sum | cut -c1-16)
    [ ! -f "$stamp" ] || return 0
    # As with packages that could not be had: once a day.
    [ -n "$again" ] || [ -z "$(find "$own/no-verapdf" -mtime -1 2>/dev/null)" ] || return 0
    mkdir -p "$own"
    touch "$own/no-verapdf"
    if ! { command -v java && command -v mvn; } >/dev/null; then
        say "veraPDF needs java and mvn, which are not here: the tests that use it are skipped"
        return 0
    fi
    say "veraPDF into $folder"
    rm -rf "$folder"
    if LC_ALL=C.UTF-8 MAVEN_OPTS="${MAVEN_OPTS:-} -XX:-UsePerfData" mvn --quiet --batch-mode -f dev/verapdf/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
        "-Dmaven.repo.local=$own/maven" "-DoutputDirectory=$PWD/$folder" >>"$own/maven.log" 2>&1 &&
        (cd "$folder" && sha256sum --quiet --check --strict ../../dev/verapdf/SHA256SUMS); then
        touch "$stamp"
        rm -rf "$own/maven"
    else
        rm -rf "$folder"
        say "veraPDF could not be installed (build/install/maven.log says why): the tests that use it are skipped"
    fi
}

main() {
    check_folder
    check_temporary
    if command -v dpkg-query >/dev/null; then
        debian_packages
    fi
    python=$(find_python)
    check_needed
    python_packages
    [ "$purpose" != test ] || verapdf
}

if [ -n "$only_packages" ]; then
    debian_packages
else
    main
fi
