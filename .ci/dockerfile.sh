#!/usr/bin/env bash
# Build deploy/Dockerfile as a user of buildx would, with buildah: no engine, no image registry.
# The kernel runs arm64 programs only while this script does.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
binfmt=/proc/sys/fs/binfmt_misc
name=asr-qemu-aarch64
mounted=no
store=(--root "$work/store" --runroot "$work/run" --storage-driver vfs)

clean_up() {
  [ -e $binfmt/$name ] && echo -1 >$binfmt/$name
  [ $mounted = yes ] && umount $binfmt
  rm -rf "$work"
}
trap clean_up EXIT

# A base with a shell, as any distribution's arm64 image has one.
mmdebstrap --quiet --architectures=arm64 --variant=extract \
  --include=dash,coreutils,libstdc++6,libgcc-s1 bookworm "$work/base"
[ -e "$work/base/bin/sh" ] || ln -s dash "$work/base/bin/sh"
rm -rf "$work/base/var/cache" "$work/base/usr/share/doc"
tar -C "$work/base" -cf "$work/base.tar" .
printf 'FROM scratch\nADD base.tar /\n' >"$work/Base"
buildah "${store[@]}" bud --quiet --platform linux/arm64/v8 -t base -f "$work/Base" "$work" >/dev/null

[ -e $binfmt/register ] || { mount -t binfmt_misc binfmt_misc $binfmt && mounted=yes; }
if ! grep -qs '^enabled' $binfmt/qemu-aarch64; then
  printf ':%s:M::%s:%s:%s:PF' $name \
    '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' \
    "$(command -v qemu-aarch64-static)" >$binfmt/register
fi
buildah "${store[@]}" bud --quiet --isolation chroot --platform linux/arm64/v8 --format docker \
  --build-arg BASE=localhost/base -t asr-edge -f deploy/Dockerfile . >/dev/null
buildah "${store[@]}" inspect --type image --format \
  'Dockerfile: {{.OCIv1.Architecture}}, user {{.Docker.Config.User}}, entry point {{.Docker.Config.Entrypoint}}, {{len .OCIv1.RootFS.DiffIDs}} layers' asr-edge
