# shellcheck shell=bash disable=SC2154
# Debian packages, for install.sh: which are missing, installing them, or the command that would.

# Where a package that cannot be had is noted, so that it is asked for once a day and not by each target.
asked=build/install/asked-for.$purpose

# Whether this is Debian 13 or later.
is_debian13() {
    grep -qx 'ID=debian' /etc/os-release && [ "$(sed -n 's/^VERSION_ID="\([0-9]*\)".*/\1/p' /etc/os-release)" -ge 13 ]
} 2>/dev/null

# Package, kind, what it is for: one a line, of the wanted lists and of the reference tools.
wanted() {
    local elsewhere=d
    ! is_debian13 || elsewhere='s// optional /'
    sed "/^#/d; /^$/d; / debian13 /$elsewhere" "${lists[@]}"
    packages_of_tools
}

# The package that each module of a reference tool names, in Debian's component "non-free" or not.
packages_of_tools() {
    awk -F '"' '
        function print_package() { if (package) print package, kind, heading " columns"; package = "" }
        FNR == 1 { print_package(); kind = "optional" }
        /^    (name|heading) = "/ { heading = $2 }
        /^    package = "/ { package = $2 }
        /^    component = "/ { kind = $2 }
        END { print_package() }' src/peakmark/tools/programs/*.py
}

installed() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed'; }

# The wanted packages of some kinds that dpkg does not know as installed, one a line.
missing() {
    local package kind _
    while read -r package kind _; do
        [[ " $* " == *" $kind "* ]] || continue
        installed "$package" || echo "$package"
    done < <(wanted)
}

# A Slurm that came from elsewhere, or that is set up: nothing of ours may come between.
other_slurm() {
    [ -n "${SLURM_CONF:-}" ] || [ -e /etc/slurm/slurm.conf ] || [ -e /etc/slurm-llnl/slurm.conf ] ||
        { ! installed slurm-wlm && type -P sinfo slurmd slurmctld >/dev/null; }
}

apt() {
    local front=(env)
    [ "$(id -u)" = 0 ] || front=(sudo -n env)
    "${front[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >>"$work/log" 2>&1
}

# Root, a sudo that asks nothing, or one that may ask, as somebody sits there.
may_install() {
    type -P apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] && return 0
    type -P sudo >/dev/null || return 1
    sudo -n true 2>/dev/null && return 0
    [ -t 0 ] && [ -t 2 ] || return 1
    say "sudo may ask for your password, to install: $*; without it (Enter three times) they are left out"
    sudo -v
}

apt_install() {
    apt "${options[@]}" -o "DPkg::Path=$work/services:/usr/sbin:/usr/bin:/sbin:/bin" install -y -qq --no-install-recommends "$@"
}

# For packages in Debian's non-free component the machine's own mirror is asked with lists of our own, so that the machine's
# list of sources stays as it is.
non_free_sources() {
    local file
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
}

# Services of packages that come new stay off: see units-stay-off.
services_stay_off() {
    local name
    mkdir -p "$work/services"
    dpkg-query -W -f '${Status} ${Package}\n' | sed -n 's/^install ok installed //p' >"$work/services/installed"
    for name in invoke-rc.d update-rc.d deb-systemd-helper deb-systemd-invoke; do
        cp envs/units-stay-off "$work/services/$name"
    done
    chmod -R a+rX "$work"
    [ -x "$work/services/invoke-rc.d" ]
}

install_debian() {
    local package known non_free options=()
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    if ! services_stay_off; then
        say "${TMPDIR:-/tmp} is mounted noexec, and services could not be kept off: set TMPDIR to another folder; nothing is installed"
        return
    fi
    say "Debian packages: $*"
    if ! apt update -qq -o APT::Update::Error-Mode=any; then
        say "the package lists could not be refreshed (is there a network?): going on with those that are here"
    fi
    # One package that cannot be had must not cost the others.
    mapfile -t known < <(apt-cache show "$@" 2>/dev/null | sed -n 's/^Package: //p' | sort -u)
    if [ ${#known[@]} -gt 0 ] && ! apt_install "${known[@]}"; then
        for package in "${known[@]}"; do
            ! grep -q 'Failed to fetch' "$work/log" || break
            apt_install "$package" || true
        done
    fi
    mapfile -t non_free < <(missing non-free)
    if [ ${#non_free[@]} -gt 0 ]; then
        non_free_sources
        if apt "${options[@]}" update -qq; then
            apt_install "${non_free[@]}" || true
        fi
    fi
}

# The command as this user can paste it.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        echo "$1"
    elif type -P sudo >/dev/null; then
        echo "sudo sh -c $(quoted "$1")"
    else
        echo "su -c $(quoted "$1")"
    fi
}

# In single quotes for a shell.
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# Debian packages that are missing: installed where that is allowed, else told with the command that would.
debian_packages() {
    local kinds=(needed optional non-free cluster) absent tried=""
    if other_slurm && [ -n "$(missing cluster)" ]; then
        kinds=(needed optional non-free)
    fi
    mapfile -t absent < <(missing "${kinds[@]}")
    [ ${#absent[@]} -gt 0 ] || return 0
    # What could not be had is asked for once a day, or when somebody asks for it by name.
    if [ -z "$again" ] && [ -n "$(find "$asked" -mtime -1 2>/dev/null)" ] && [ "$(cat "$asked")" = "${absent[*]}" ]; then
        return 0
    fi
    [ ${#kinds[@]} = 4 ] || say "a Slurm is here already: $(missing cluster | paste -sd' ') stay out, cluster tests are skipped"
    if may_install "${absent[@]}"; then
        tried=yes
        install_debian "${absent[@]}"
        mapfile -t absent < <(missing "${kinds[@]}")
    fi
    if [ -O . ] && [ -w . ]; then
        mkdir -p "${asked%/*}" && echo "${absent[*]}" >"$asked"
    fi
    [ ${#absent[@]} -eq 0 ] || tell_missing
}

tell_missing() {
    local plain non_free package words _ script
    script=$(printf %q "$PWD/envs/install.sh")
    say "not installed${tried:+, as the package sources of this machine do not give them}; without them:"
    while read -r package _ words; do
        [[ " ${absent[*]} " != *" $package "* ]] || printf '  %-21s %s\n' "$package" "$words"
    done < <(wanted)
    [ -z "$tried" ] || return 0
    mapfile -t plain < <(missing needed optional)
    mapfile -t non_free < <(missing non-free)
    if [ "$purpose" = test ]; then
        say "to install them: $(as_root "$script packages test")"
        return
    fi
    if [ ${#plain[@]} -gt 0 ]; then
        say "to install them: $(as_root "apt-get update && apt-get install -y --no-install-recommends ${plain[*]}")"
    fi
    if [ ${#non_free[@]} -gt 0 ]; then
        say "${non_free[*]} is in Debian's component non-free; this gets it without a change to the machine's package sources:"
        echo "  $(as_root "$script packages")"
    fi
}
