SUMMARY = "Speech to text on a Cortex-A76 board"
DESCRIPTION = "One program, one library for C, ONNX Runtime beside them, and a model; prebuilt."
LICENSE = "Apache-2.0 & MIT"
LIC_FILES_CHKSUM = "file://opt/asr/share/licences/project-asr-edge/LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

# Put asr-rust-${PV}-arm64.rootfs.tar.gz (asr deploy pack --format tar.gz) beside this recipe.
# local.conf: DEFAULTTUNE = "cortexa76"
SRC_URI = "file://asr-rust-${PV}-arm64.rootfs.tar.gz;subdir=${BP}"

inherit bin_package

COMPATIBLE_HOST = "aarch64.*-linux"
RDEPENDS:${PN} = "glibc libgcc libstdc++"
# Built elsewhere: nothing to strip, no hash style of ours to check; libonnxruntime.so.1 is private.
INSANE_SKIP:${PN} = "already-stripped ldflags dev-so"
PRIVATE_LIBS:${PN} = "libonnxruntime.so.1"

do_install() {
    install -d ${D}/opt ${D}/models
    cp -R --no-preserve=ownership ${S}/opt/asr ${D}/opt/
    cp -R --no-preserve=ownership ${S}/models/. ${D}/models/
}

FILES:${PN} = "/opt/asr /models"
