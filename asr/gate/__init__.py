"""Judging: verdicts on pairs of processes and on budgets, and how they are told."""
