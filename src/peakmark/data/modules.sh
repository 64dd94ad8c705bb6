# shellcheck shell=bash
# What loading the modules named by the arguments makes of the environment: name=value, each ended by a zero byte.
# The function `module` is usually exported by the login shell; a job's shell may have to look for it.
if ! type module > /dev/null 2>&1; then
  for init in "$MODULESHOME/init/bash" "$LMOD_PKG/init/bash" /etc/profile.d/modules.sh /etc/profile.d/lmod.sh \
      /usr/share/modules/init/bash /usr/share/lmod/lmod/init/bash; do
    # shellcheck disable=SC1090  # which of them is there
    if [ -r "$init" ]; then . "$init" > /dev/null 2>&1; type module > /dev/null 2>&1 && break; fi
  done
fi
type module > /dev/null 2>&1 || { echo "there is no command module" >&2; exit 3; }
for name in "$@"; do
  said=$(module load "$name" 2>&1) && module load "$name" > /dev/null 2>&1
  case $? in 0) ;; *) echo "$said" >&2; exit 4 ;; esac
  case "$said" in *ERROR*|*"unknown module"*) echo "$said" >&2; exit 4 ;; esac
done
exec env -0
