"""The first bytes of a file -> what it is."""

from typing import NamedTuple


class Kind(NamedTuple):
    """What the first bytes say.

    Attributes:
        words: what to call it.
        demuxer: FFmpeg's name of the container. It is always given: a demuxer that FFmpeg chose
            by itself could be a playlist, which opens other files and addresses.
    """

    words: str
    demuxer: str

    @property
    def native(self) -> bool:
        """Whether libsndfile reads it, unless it is damaged or holds a rare codec."""
        return self.demuxer in _NATIVE


_NATIVE = ("wav", "w64", "flac", "ogg", "aiff", "au", "caf", "voc", "nistsphere", "mp3")
_MARKS = (
    (0, b"RIFF", 8, b"AVI ", "AVI", "avi"),
    (0, b"RIFF", 0, b"", "WAV", "wav"),
    (0, b"RIFX", 0, b"", "WAV", "wav"),
    (0, b"RF64", 0, b"", "WAV (RF64)", "wav"),
    (0, b"BW64", 0, b"", "WAV (BW64)", "wav"),
    (0, b"riff\x2e\x91\xcf\x11", 0, b"", "W64", "w64"),
    (0, b"fLaC", 0, b"", "FLAC", "flac"),
    (0, b"OggS", 0, b"", "Ogg", "ogg"),
    (0, b"FORM", 8, b"AIF", "AIFF", "aiff"),
    (0, b".snd", 0, b"", "AU", "au"),
    (0, b"caff", 0, b"", "CAF", "caf"),
    (0, b"Creative Voice File", 0, b"", "VOC", "voc"),
    (0, b"NIST_1A", 0, b"", "NIST SPHERE", "nistsphere"),
    (4, b"ftyp", 0, b"", "MP4 (M4A, video)", "mov"),
    (4, b"moov", 0, b"", "MP4 (M4A, video)", "mov"),
    (4, b"mdat", 0, b"", "MP4 (M4A, video)", "mov"),
    (4, b"wide", 0, b"", "MP4 (M4A, video)", "mov"),
    (4, b"free", 0, b"", "MP4 (M4A, video)", "mov"),
    (0, b"\x1a\x45\xdf\xa3", 0, b"", "Matroska or WebM", "matroska"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", 0, b"", "WMA (ASF)", "asf"),
    (0, b"FLV\x01", 0, b"", "FLV", "flv"),
    (0, b"wvpk", 0, b"", "WavPack", "wv"),
    (0, b"#!AMR", 0, b"", "AMR", "amr"),
    (0, b"MAC ", 0, b"", "Monkey's Audio", "ape"),
    (0, b"TTA1", 0, b"", "True Audio", "tta"),
    (0, b"\x0b\x77", 0, b"", "AC-3", "ac3"),
    (0, b"\x00\x00\x01\xba", 0, b"", "MPEG video", "mpeg"),
    (0, b"ADIF", 0, b"", "AAC", "aac"),
)  # fmt: skip


def sniff(head: bytes) -> Kind | None:
    """Say what a file is by its first bytes; None when it is no sound that anything here reads.

    Args:
        head: 64 bytes or more, or the whole file.
    """
    for place, mark, other_place, other, words, demuxer in _MARKS:
        if head.startswith(mark, place) and head.startswith(other, other_place):
            return Kind(words, demuxer)
    if head[:3] == b"ID3":
        return Kind("MP3 or AAC with tags", "mp3")
    if len(head) >= 2 and head[0] == 0xFF:
        if head[1] & 0xF6 == 0xF0:
            return Kind("AAC", "aac")
        if head[1] & 0xE0 == 0xE0 and head[1] & 0x06:
            return Kind("MP3", "mp3")
    if head[:1] == b"\x47" and (len(head) < 189 or head[188:189] == b"\x47"):
        return Kind("MPEG transport stream", "mpegts")
    return None
