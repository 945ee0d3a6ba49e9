#!/usr/bin/env bash
# Checks what the build needs and prints the line that installs what is missing.
set -u
python=${1:-python3}
msrv=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' "$(dirname "$0")/../Cargo.toml")
missing=0
need() { printf 'missing: %s\n  install: %s\n' "$1" "$2" >&2; missing=1; }

command -v cc >/dev/null || need "a C compiler (the Rust linker)" "apt-get install gcc libc6-dev"
if ! command -v "$python" >/dev/null; then
  need "$python" "apt-get install python3 python3-venv"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  need "Python 3.10 or newer ($("$python" --version) found)" "apt-get install python3 python3-venv"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  need "Python's venv module" "apt-get install python3-venv"
fi
rust_hint="curl https://sh.rustup.rs -sSf | sh   (Debian 12's own rustc is too old)"
if ! command -v rustc >/dev/null || ! command -v cargo >/dev/null; then
  need "Rust $msrv or newer" "$rust_hint"
else
  have=$(rustc --version | awk '{print $2}')
  oldest=$(printf '%s\n%s\n' "$msrv" "${have%%-*}" | sort -V | head -n 1)
  [ "$oldest" = "$msrv" ] || need "Rust $msrv or newer (found $have)" "rustup update, or $rust_hint"
fi
[ "$missing" = 0 ] || { echo "then run make again" >&2; exit 7; }
