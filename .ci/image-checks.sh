#!/usr/bin/env bash
# What `asr deploy verify` does not see of build/deploy: the second build, the other formats, the
# recipes that use them.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$1
out=$work/out
again=$work/again
asr=.venv/bin/asr

check() { printf '  ok  %-24s %s\n' "$1" "$2"; }

echo "$out"
rm -rf "$again" && mkdir -p "$again" && ln -s ../fetched "$again/fetched"
trap 'rm -rf "$again"' EXIT
wheel=$(echo "$out"/*-manylinux*aarch64.whl)
# A commit after `make image` is no other tree.
time_of() { .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["built_at_s"])' \
  <"$work/$1/root/opt/asr/manifest.json"; }
SOURCE_DATE_EPOCH=$(time_of rust) $asr deploy build --work "$again" --profile rust \
  --with-model tiny-en --built target/cross/aarch64-unknown-linux-gnu/release >/dev/null
$asr deploy pack --work "$again" --profile rust --format oci --format squashfs --format deb >/dev/null
SOURCE_DATE_EPOCH=$(time_of python) $asr deploy build --work "$again" --profile python \
  --built "$wheel" >/dev/null
$asr deploy pack --work "$again" --profile python --format oci >/dev/null
for file in "$again"/out/*; do
  cmp "$file" "$out/$(basename "$file")"
  check "assembled twice" "$(basename "$file"): the same bytes"
done

for file in "$out"/*.rootfs.tar.gz; do
  tar -tzf "$file" opt/asr/manifest.json >/dev/null
  check "tar.gz" "$(basename "$file"): $(tar -tzf "$file" | wc -l) entries"
done
for file in "$out"/*.squashfs; do
  unsquashfs -cat "$file" opt/asr/manifest.json >/dev/null
  check "squashfs" "$(basename "$file"): $(unsquashfs -l "$file" | wc -l) entries"
done

tree=$(mktemp -d)
trap 'rm -rf "$again" "$tree"' EXIT
deb=$(echo "$out"/*.deb)
dpkg-deb -x "$deb" "$tree"
test -x "$tree/opt/asr/bin/asr-edge" -a -L "$tree/usr/bin/asr-edge" -a -f "$tree/opt/asr/models/bundle.json"
check "deb" "$(dpkg-deb -f "$deb" Package Version Architecture Depends | tr '\n' ' ')"

# The unit, with a program that this machine has in place of the board's.
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$tree/lib/systemd/system/asr-edge.service" >"$tree/asr-edge.service"
systemd-analyze verify --man=no "$tree/asr-edge.service"
exposure=$(systemd-analyze security --offline=true --threshold=15 --no-pager "$tree/asr-edge.service" | tail -n 1)
check "systemd unit" "${exposure#* }"

.venv/bin/python -m pip install --quiet --no-deps --target "$tree/lib" "$out"/*manylinux*x86_64.whl
built=$(PYTHONPATH="$tree/lib" .venv/bin/python -P -c \
  'from asr import _rust_fe as r; print(r.__file__, r.build_info()["version"])')
check "x86-64 wheel" "imports: ${built##*/}"

check "Dockerfile" "$(bash .ci/dockerfile.sh)"
