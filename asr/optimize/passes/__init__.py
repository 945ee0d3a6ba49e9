"""Rewriting passes, one file each; each docstring states what it assumes and proves."""


class NoMatch(Exception):  # noqa: N818 - an answer, not an error: the graph is left as it is
    """A block is not built as a pass expects; the text says which and why."""
