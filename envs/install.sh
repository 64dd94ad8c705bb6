#!/usr/bin/env bash
# Install what is missing and nothing else: Debian packages where that is allowed, Python packages into .venv.
#   envs/install.sh run     what measuring needs
#   envs/install.sh test    and what the tests need
# Safe to repeat: it does nothing when all is there. It changes no file it did not make.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
lists=(envs/debian.txt)
requirements=envs/requirements.txt
if [ "$purpose" = test ]; then
    lists+=(envs/debian-test.txt)
    requirements=envs/requirements-test.txt
fi

say() { printf 'install: %s\n' "$*"; }

# The wanted packages of one kind that dpkg does not know as installed, one a line.
missing() {
    local package kind _
    while read -r package kind _; do
        case "$package" in '' | '#'*) continue ;; esac
        [ "$kind" = "$1" ] || continue
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || echo "$package"
    done < <(cat "${lists[@]}")
}

apt() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive apt-get "$@"
    fi
}

may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# iozone3 is in Debian's non-free component. The machine's own mirror is asked for it with lists of our own below
# build/, so that the machine's list of sources stays as it is.
install_non_free() {
    local work options=() file
    work=$PWD/build/apt
    rm -rf "$work"
    mkdir -p "$work/parts" "$work/lists/partial" "$work/archives/partial"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        grep -q '^Components:.*main' "$file" || continue
        sed 's/^Components:.*/Components: non-free/' "$file" >"$work/parts/$(basename "$file")"
    done
    if [ -f /etc/apt/sources.list ]; then
        sed -nE 's/^(deb .* )main.*/\1non-free/p' /etc/apt/sources.list >"$work/parts/main.list"
    fi
    options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists"
        -o "Dir::Cache::Archives=$work/archives" -o APT::Sandbox::User=root)
    apt "${options[@]}" update -qq && apt "${options[@]}" install -y -qq --no-install-recommends "$@"
}

debian_packages() {
    local needed optional non_free
    mapfile -t needed < <(missing needed)
    mapfile -t optional < <(missing optional)
    mapfile -t non_free < <(missing non-free)
    [ $((${#needed[@]} + ${#optional[@]} + ${#non_free[@]})) -gt 0 ] || return 0
    if may_install; then
        say "Debian packages: ${needed[*]} ${optional[*]} ${non_free[*]}"
        if [ $((${#needed[@]} + ${#optional[@]})) -gt 0 ]; then
            apt update -qq || say "the package lists could not be refreshed; going on with those that are here"
            if ! apt install -y -qq --no-install-recommends "${needed[@]}" "${optional[@]}" >/dev/null; then
                # One package that cannot be had must not cost the others.
                local package
                for package in "${needed[@]}" "${optional[@]}"; do
                    apt install -y -qq --no-install-recommends "$package" >/dev/null || say "could not install $package"
                done
            fi
        fi
        if [ ${#non_free[@]} -gt 0 ]; then
            install_non_free "${non_free[@]}" >/dev/null || say "could not install ${non_free[*]}: its columns stay empty"
        fi
        return 0
    fi
    local columns
    columns=$(grep -hE "^($(IFS='|'; echo "${optional[*]:-none}"))[[:space:]]" "${lists[@]}" | sed -E 's/^(\S+)\s+\S+\s+/  \1: /' || true)
    [ -z "$columns" ] || printf 'install: not installed, as this user may not; without them:\n%s\n' "$columns"
    [ ${#non_free[@]} -eq 0 ] || say "not installed: ${non_free[*]} (component non-free): IOZone columns stay empty"
    say "to install them: apt-get install ${needed[*]} ${optional[*]} ${non_free[*]}"
}

check_programs() {
    local program
    for program in gcc make; do
        command -v "$program" >/dev/null || { say "$program is needed and not here: install it, then run this again"; exit 1; }
    done
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed and not here; if it is elsewhere: make PYTHON=/path/to/python3 ..." >&2
    exit 1
}

python_packages() {
    local python stamp pip
    python=$(find_python)
    stamp=.venv/peakmark-$(cat envs/requirements-build.txt "$requirements" pyproject.toml | sha256sum | cut -c1-16)
    [ ! -f "$stamp" ] || return 0
    say "Python packages into .venv"
    # A half-made environment of an interrupted run is no environment.
    [ -x .venv/bin/pip ] || { rm -rf .venv; "$python" -m venv .venv; }
    pip=(.venv/bin/pip install --quiet --disable-pip-version-check)
    "${pip[@]}" --require-hashes -r envs/requirements-build.txt
    # Without isolation: what builds the few source packages is then pinned as well.
    "${pip[@]}" --require-hashes --no-build-isolation -r "$requirements"
    "${pip[@]}" --no-deps --no-build-isolation --no-index -e .
    rm -f .venv/peakmark-*
    touch "$stamp"
}

# The checker of PDF/A and PDF/UA for the tests of the report, which skip what needs it when it cannot be had.
verapdf() {
    local folder=.venv/verapdf stamp
    stamp=$folder/$(cat envs/verapdf/* | sha256sum | cut -c1-16)
    [ ! -f "$stamp" ] || return 0
    if ! { command -v java && command -v mvn; } >/dev/null; then
        say "veraPDF needs java and mvn, which are not here: the tests that use it are skipped"
        return 0
    fi
    say "veraPDF into $folder"
    rm -rf "$folder"
    if mvn --quiet --batch-mode -f envs/verapdf/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
        "-DoutputDirectory=$PWD/$folder" >/dev/null &&
        (cd "$folder" && sha256sum --quiet --check --strict ../../envs/verapdf/SHA256SUMS); then
        touch "$stamp"
    else
        rm -rf "$folder"
        say "veraPDF could not be installed: the tests that use it are skipped"
    fi
}

if command -v dpkg-query >/dev/null; then
    debian_packages
fi
check_programs
python_packages
[ "$purpose" != test ] || verapdf
