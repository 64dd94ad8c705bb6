# shellcheck shell=bash disable=SC2154
# A minimal Debian in the folder $root, of release $suite with $packages and, where $home is not root's, an ordinary user.
# Sourced by the scripts here, which say with "end" what ends them.
[ "$(id -u)" = 0 ] || end "a chroot is made and entered by root only: run it as root"
type -P debootstrap >/dev/null || end "debootstrap makes the chroot and is not here: apt-get install debootstrap"

# The mirror that this machine takes Debian from; debootstrap knows a default.
# shellcheck disable=SC2016  # apt's own placeholder
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -n 1 || true
}

make_root() {
    local partly=$root.partly file
    rm -rf "$partly"
    mkdir -p "$partly"
    # shellcheck disable=SC2046  # none is no word
    debootstrap --variant=minbase "--include=$packages" "$suite" "$partly" $(mirror) >"$root.log" 2>&1 ||
        end "debootstrap failed: $(tail -n 1 "$root.log"); all it said is in $root.log"
    for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
        # Proxies and the like.
        if grep -qsE '^ *Acquire::(https?::|Check-|Retries)' "$file"; then
            cp "$file" "$partly/etc/apt/apt.conf.d/"
        fi
    done
    mkdir -p "$partly/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$partly/etc/ssl/certs/"
    [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$partly/etc/"
    [ "$home" = /root ] || chroot "$partly" /usr/sbin/useradd --create-home --shell /bin/bash user
    mv "$partly" "$root"
}

# As it stands from an earlier time, or made now.
find_root() {
    [ -d "$root" ] || make_root
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
}
