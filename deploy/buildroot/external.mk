include $(sort $(wildcard $(BR2_EXTERNAL_ASR_PATH)/package/*/*.mk))
