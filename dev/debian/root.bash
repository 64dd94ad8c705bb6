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

# Make $layer an empty one over $root, for what within runs.
make_layer() {
    rm -rf "$layer"
    mkdir -p "$layer/upper" "$layer/work" "$layer/root"
}

# Run a shell command in a copy of $root, as USER, with these namespaces more. Its writes stay in $layer; /mnt is the folder brought.
within() {
    local user=$1 command=$2 home=/home/$1 id=1000 sbin=
    shift 2
    [ "$user" != root ] || home=/root id=0 sbin=/usr/local/sbin:/usr/sbin:/sbin:
    # shellcheck disable=SC2016  # for the inner shell
    unshare --mount --propagation private --pid --fork --kill-child --ipc "$@" bash -ec '
        layer=$1 root=$2 id=$3 home=$4 sbin=$5 command=$6
        mount -t overlay overlay -o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
        mount --bind -o ro "$layer/../brought" "$layer/root/mnt"
        mount -t proc proc "$layer/root/proc"
        mount --rbind /sys "$layer/root/sys"
        mount --rbind /dev "$layer/root/dev"
        ip link set lo up
        exec chroot --userspec="$id:$id" --groups="" "$layer/root" /usr/bin/env -i HOME="$home" USER="${home##*/}" \
            PATH="$home/.local/bin:$sbin/usr/local/bin:/usr/bin:/bin" sh -euc "cd; $command"' bash "$layer" "$root" "$id" "$home" "$sbin" "$command"
}

# Files that were written after $layer/installed, outside of these FOLDERS of the home, the cache and the locks.
written_outside() {
    local folders
    folders=$(IFS='|' && echo "$*|[.]cache/peakmark")
    find "$layer/upper" -newer "$layer/installed" ! -type d -printf '%P\n' |
        grep -vE "^(root|home/user)/($folders)/|^tmp/peakmark-(campaign|cell)[.]lock$" || true
}
