"""Measuring: workers, interleaved pairs, statistics, the machine."""
