"""Every exception this package raises on purpose.

Each message is one line: which file or value, what was expected, what was found, what to do.
Each class also derives from the builtin that fits, so both ``except AsrError`` and
``except ValueError`` work. ``exit_code`` is what the command line returns for it.
"""


class AsrError(Exception):
    """Base of all errors raised on purpose; anything else that escapes is our bug."""

    exit_code = 70


class UsageError(AsrError, ValueError):
    """An argument has a value that cannot be used (unknown language, negative thread count)."""

    exit_code = 2


class AudioError(AsrError, ValueError):
    """Audio that cannot be read or holds values that are not sound (NaN, wrong shape)."""

    exit_code = 3


class LayoutError(AsrError, ValueError):
    """A model directory that is incomplete, damaged, or of an unknown kind."""

    exit_code = 4


class EngineError(AsrError, RuntimeError):
    """The inference runtime refused to load or run the network."""

    exit_code = 4


class RecordError(AsrError, ValueError):
    """A measurement record, workload or budget file that is not what it should be."""

    exit_code = 4


class FrontEndError(AsrError, ValueError):
    """The front end got a recipe or an array it cannot work on."""

    exit_code = 4


class DecodeError(AsrError, ValueError):
    """The network returned scores that cannot be decoded (NaN, infinity, wrong shape)."""

    exit_code = 4


class SystemAccessError(AsrError, OSError):
    """The operating system would not let us read or write a file."""

    exit_code = 5


class SourceError(AsrError, OSError):
    """A model's source cannot be reached, or what it sent has the wrong checksum."""

    exit_code = 6


class MissingToolError(AsrError, ImportError):
    """A program or package that this action needs is not installed."""

    exit_code = 7


class TextChangedError(AsrError, RuntimeError):
    """The same sound gave another text: a faster run with other text is not faster."""

    exit_code = 12


class NoisyError(AsrError, RuntimeError):
    """The machine was too busy, or the build unfit, for a number that somebody relies on."""

    exit_code = 15
