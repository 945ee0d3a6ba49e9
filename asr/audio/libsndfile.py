"""What libsndfile decodes: WAV, FLAC, Ogg Vorbis and Opus, MP3, AIFF, AU, CAF, W64 ..."""

import contextlib
import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from asr.audio.sound import BLOCK_SAMPLES, Notes, Sound
from asr.errors import AudioError, SystemAccessError
from asr.records import Float32

if TYPE_CHECKING:
    import soundfile

#: Decoded front to back; libsndfile asks for a seek after each read, which fails in a damaged file.
_FORWARD = ("FLAC", "OGG", "MP3")
#: Formats of the RIFF family, whose header we can read ourselves.
_WAV = ("WAV", "WAVEX", "RF64")
#: Damaged places of one FLAC file behind which decoding goes on, and the longest one that is kept
#: as silence: the position in a frame is a claim like any other.
_MAX_DAMAGES, _MAX_GAP_S = 200, 30
_FULL_SCALE_16 = np.float32(2**-15)
#: What libsndfile notes of a header that is not as it should be.
_COMPLAINTS = ("should be", "***", " marker at ")


@contextmanager
def opened(descriptor: int, name: str) -> Iterator[Sound]:
    """Open a file of any format; what libsndfile cannot decode is handed on.

    Args:
        descriptor: of a regular file, at its start; stays open.
        name: what to call it.

    Raises:
        AudioError: no sound, or PyAV would be needed and is not there.
    """
    import soundfile

    with ExitStack() as stack:
        sound: Sound | None = None
        why = ""
        try:
            # By descriptor: by name, `clip.raw` would be taken for raw.
            file = stack.enter_context(soundfile.SoundFile(descriptor, closefd=False))
        except soundfile.LibsndfileError as error:
            why = error.error_string.strip(" .")
            sound = _by_other_means(stack, descriptor, name)
        else:
            if file.format in _WAV:
                # What libsndfile had to say costs no system call; of a sane file it is nothing.
                said = file.extra_info
                if file.format == "RF64" or any(s in said for s in _COMPLAINTS):
                    sound = _own_wav(descriptor, name)
            elif file.format in _FORWARD:
                file = _forward(stack, descriptor, file.format) or file
                file.seekable = _no
            sound = sound or _sound(file, descriptor, name)
        if sound is None:
            raise _refusal(name, descriptor, why)
        yield sound


def _refusal(name: str, descriptor: int, why: str) -> AudioError:
    return AudioError(
        f"{name}: expected a sound file (WAV, FLAC, Ogg, MP3), could not decode "
        f"{os.fstat(descriptor).st_size} bytes: {why}"
    )


def _by_other_means(stack: ExitStack, descriptor: int, name: str) -> Sound | None:
    """Decode what libsndfile refuses: lying headers by ourselves, other containers with PyAV."""
    from asr.audio.sniff import sniff

    kind = sniff(os.pread(descriptor, 256, 0))
    if kind is None:
        return None
    if kind.demuxer == "wav":
        sound = _own_wav(descriptor, name)
        if sound is not None:
            return sound
    if kind.demuxer == "mp3" and (file := _forward(stack, descriptor, "MP3")):
        return _sound(file, descriptor, name)
    if os.fstat(descriptor).st_size < 64:
        return None
    from asr.audio import packets

    if kind.native and not packets.is_installed():
        return None
    return packets.sound(descriptor, name, kind)


def _forward(stack: ExitStack, descriptor: int, kind: str) -> "soundfile.SoundFile | None":
    """Open a file with another start, where its own would not let it be read to its end."""
    start: tuple[bytes, int] | None = None
    if kind == "MP3":
        from asr.audio import mp3

        start = mp3.true_start(descriptor)
    elif kind == "FLAC" and len(head := os.pread(descriptor, 26, 0)) == 26 and head[:4] == b"fLaC":
        start = head[:21] + bytes([head[21] & 0xF0, 0, 0, 0, 0]), 26
    if start is None:
        return None
    import soundfile

    with contextlib.suppress(soundfile.LibsndfileError):
        file = stack.enter_context(soundfile.SoundFile(_Restarted(descriptor, *start)))
        file.seekable = _no
        return file
    return None


def _own_wav(descriptor: int, name: str) -> Sound | None:
    from asr.audio import wav

    return wav.sound(descriptor, name)


def _sound(file: "soundfile.SoundFile", descriptor: int, name: str) -> Sound:
    first = True

    def blocks(notes: Notes) -> Iterator[Float32]:
        nonlocal first
        if first:
            first = False
            yield from _decode(file, descriptor, notes)
            return
        import soundfile

        with ExitStack() as stack:  # seeking back is what damaged files do not survive
            os.lseek(descriptor, 0, os.SEEK_SET)
            again = _forward(stack, descriptor, file.format)
            if again is None:
                again = stack.enter_context(soundfile.SoundFile(descriptor, closefd=False))
                if again.format in _FORWARD:
                    again.seekable = _no
            yield from _decode(again, descriptor, notes)

    floats = file.subtype not in ("PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "ALAW", "ULAW")
    return Sound(name, file.samplerate, file.channels, floats, blocks)


def _decode(file: "soundfile.SoundFile", descriptor: int, notes: Notes) -> Iterator[Float32]:
    reasons: list[str] = []
    done = 0
    for block in _blocks(file, reasons):
        done += len(block)
        yield block
    rate = file.samplerate
    if reasons and file.format == "FLAC":
        for block in _after_damage(descriptor, done, reasons):
            done += len(block)
            yield block
    if not done:
        if reasons:
            raise _refusal(notes.name, descriptor, reasons[0])
        _refuse_cut_off(notes.name, descriptor)
    elif reasons:
        notes.damaged(f"{reasons[0]}; {done / rate:.2f} s could be decoded")
    elif promised := _promise(file, descriptor, done):
        notes.damaged(f"it promises {promised / rate:.2f} s and holds {done / rate:.2f} s")
    elif file.format == "OGG" and not _ogg_is_whole(descriptor):
        notes.damaged(f"it ends after {done / rate:.2f} s without its last page")
    elif file.format not in (*_WAV, *_FORWARD) and _log_says_cut(file.extra_info):
        notes.damaged(f"its header promises more than the {done / rate:.2f} s that it holds")


def _blocks(file: "soundfile.SoundFile", reasons: list[str]) -> Iterator[Float32]:
    """Decode to the end, or to where the decoder gives up; it then says why."""
    import soundfile

    # libsndfile is slow to make floats of 16 bits: NumPy makes the same ones.
    kind = np.int16 if file.subtype == "PCM_16" else np.float32
    step = max(1, BLOCK_SAMPLES // file.channels)
    shape = () if file.channels == 1 else (file.channels,)
    done = 0
    while (wanted := min(step, file.frames - done)) > 0:
        space = np.empty((wanted, *shape), kind)
        try:
            block = file.read(out=space)
        except soundfile.LibsndfileError as error:
            block = space[: max(0, min(file.tell() - done, wanted))]
            reasons.append(error.error_string.strip(" .").removeprefix("Error : "))
        done += len(block)
        if len(block):
            if kind is np.int16:
                yield np.multiply(block, _FULL_SCALE_16, dtype=np.float32)
            else:
                # A view would keep the whole space: a header's claim, not the sound that is there.
                yield block if 2 * len(block) > wanted else block.copy()
        if len(block) < wanted or reasons:
            return


def _after_damage(descriptor: int, done: int, reasons: list[str]) -> Iterator[Float32]:
    """Go on with the next frames of a FLAC file; what is missing is silence, so that times hold."""
    import soundfile

    from asr.audio import flac

    head = os.pread(descriptor, 42, 0)
    head = head[:4] + bytes([0x80]) + head[5:21] + bytes([head[21] & 0xF0, 0, 0, 0, 0]) + head[26:]
    place = 42
    for _ in range(_MAX_DAMAGES):
        found = flac.next_frame(descriptor, place, done)
        if found is None:
            return
        place, first = found
        with ExitStack() as stack, contextlib.suppress(soundfile.LibsndfileError):
            part = _Restarted(descriptor, head, place)
            file = stack.enter_context(soundfile.SoundFile(part))
            file.seekable = _no
            more: list[str] = []
            gap = first - done if first - done <= _MAX_GAP_S * file.samplerate else 0
            for block in _blocks(file, more):
                if gap:
                    yield np.zeros((gap, *block.shape[1:]), np.float32)
                    done, gap = done + gap, 0
                done += len(block)
                yield block
            if not more:
                return
        place += 1


def _promise(file: "soundfile.SoundFile", descriptor: int, done: int) -> int | None:
    """Frames a compressed file's header promises, where they are not those decoded."""
    promised = tolerance = 0
    if file.format == "FLAC":
        promised = _flac_frames(os.pread(descriptor, 42, 0))
    elif file.format == "OGG":
        promised = file.frames if file.frames < 1 << 62 else 0
        tolerance = file.samplerate // 20  # what encoders take off at the end
    elif file.format == "MP3":
        head = os.pread(descriptor, 1 << 14, 0)
        tag = max(head.find(b"Xing"), head.find(b"Info"))
        if tag >= 0 and head[tag + 7 : tag + 8] and head[tag + 7] & 1:  # else it is an estimate
            frames = int.from_bytes(head[tag + 8 : tag + 12], "big")
            each = 1152 if file.samplerate >= 32000 else 576
            promised = frames * each
            tolerance = 3 * each  # what encoders add at both ends, and decoders take off
    return promised if promised and abs(promised - done) > tolerance else None


def _log_says_cut(log: str) -> bool:
    lines = [line for line in log.splitlines() if "should be" in line]
    return any(not {"4294967295", "-1", "0"} & set(line.split()) for line in lines)


def _no() -> bool:
    return False


def _flac_frames(head: bytes) -> int:
    """Total samples of STREAMINFO; 0 when the encoder did not know."""
    if head[:4] != b"fLaC" or len(head) < 26:
        return 0
    return (head[21] & 0x0F) << 32 | int.from_bytes(head[22:26], "big")


def _ogg_is_whole(descriptor: int) -> bool:
    """Whether the last page says that it is the last; a recording cut off does not."""
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, 1 << 16, max(0, size - (1 << 16)))
    page = tail[tail.rfind(b"OggS") :] if b"OggS" in tail else b""
    if len(page) < 27 or len(page) < 27 + page[26] or not page[5] & 4:
        return False
    return len(page) >= 27 + page[26] + sum(page[27 : 27 + page[26]])


class _Restarted(io.RawIOBase):
    """A file with another start."""

    def __init__(self, descriptor: int, head: bytes, skipped: int) -> None:
        self._descriptor = descriptor
        self._head = head
        self._shift = skipped - len(head)
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        end = max(len(self._head), os.fstat(self._descriptor).st_size - self._shift)
        self._at = max(0, (0, self._at, end)[whence] + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever has a buffer
        data = self._head[self._at : self._at + len(buffer)]
        if len(data) < len(buffer):
            place = self._at + len(data) + self._shift
            data += os.pread(self._descriptor, len(buffer) - len(data), place)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _refuse_cut_off(name: str, descriptor: int) -> None:
    """Refuse a file without samples unless it says itself that it has none: a failed download."""
    try:
        head = os.pread(descriptor, 1 << 16, 0)
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot read the file: {error.strerror}") from None
    if head[:4] == b"RIFF":
        promise = head.partition(b"data")[2][:4]
        empty = promise in (b"\0\0\0\0", b"\xff\xff\xff\xff")
    else:
        empty = head[:4] != b"OggS" and head[:3] != b"ID3" and head[:1] != b"\xff"
        empty = empty and not _flac_frames(head)
    if not empty:
        raise AudioError(
            f"{name}: expected samples behind the header, found none in "
            f"{os.fstat(descriptor).st_size} bytes; copy or download it again"
        )
