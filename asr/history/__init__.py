"""Records of measurements, kept; what changed between them, and when."""
