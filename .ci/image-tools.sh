#!/usr/bin/env bash
# What `make image` and `make verify-image` need besides the compiler and Python: Debian's packages,
# installed where we may, else named.
set -euo pipefail

packages=()
want() { command -v "$1" >/dev/null || packages+=("$2"); }
want buildah buildah
want cpio cpio
want mksquashfs squashfs-tools
want mmdebstrap mmdebstrap
want python3.11 python3.11
want qemu-aarch64-static qemu-user-static
want qemu-system-aarch64 qemu-system-arm
want skopeo skopeo
want systemd-analyze systemd
[ ${#packages[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ]; then
  echo "make image: expected ${packages[*]}; sudo apt-get install -y --no-install-recommends ${packages[*]}" >&2
  exit 7
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
