################################################################################
#
# asr-edge: /opt/asr and /models out of the image's tar.gz; libc is Buildroot's
#
################################################################################

ASR_EDGE_ROOTFS = $(call qstrip,$(BR2_PACKAGE_ASR_EDGE_ROOTFS))
ASR_EDGE_VERSION = 0.1.0
ASR_EDGE_SITE = $(dir $(ASR_EDGE_ROOTFS))
ASR_EDGE_SITE_METHOD = file
ASR_EDGE_SOURCE = $(notdir $(ASR_EDGE_ROOTFS))
ASR_EDGE_STRIP_COMPONENTS = 0
ASR_EDGE_LICENSE = Apache-2.0, MIT (ONNX Runtime)
ASR_EDGE_LICENSE_FILES = \
	opt/asr/share/licences/project-asr-edge/LICENSE \
	opt/asr/share/licences/wheel-onnxruntime/onnxruntime-LICENSE

define ASR_EDGE_INSTALL_TARGET_CMDS
	mkdir -p $(TARGET_DIR)/opt $(TARGET_DIR)/models
	cp -a $(@D)/opt/asr $(TARGET_DIR)/opt/
	cp -a $(@D)/models/. $(TARGET_DIR)/models/
endef

$(eval $(generic-package))
