"""Engines run named tensors and know nothing of speech."""
