"""Bytes that look like sound: small true files of every kind, and what damage makes of them."""

import importlib.util
import io
import random
import struct
from functools import cache

import numpy as np

RATE = 8000
#: libsndfile's containers and codecs.
WAVES = (("WAV", "PCM_16"), ("WAV", "MS_ADPCM"), ("WAVEX", "PCM_24"), ("RF64", "PCM_16"),
         ("WAV", "GSM610"), ("WAV", "ULAW"), ("WAV", "FLOAT"), ("WAV", "DOUBLE"))  # fmt: skip
COMPRESSED = (("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
              ("MP3", "MPEG_LAYER_III"))  # fmt: skip
OTHERS = (("AIFF", "PCM_16"), ("AU", "ULAW"), ("CAF", "ALAC_16"), ("W64", "PCM_16"),
          ("VOC", "PCM_16"), ("NIST", "PCM_16"), ("CAF", "PCM_24"))  # fmt: skip
#: FFmpeg's: container and codec.
CONTAINERS = (("ipod", "aac"), ("adts", "aac"), ("webm", "libopus"), ("matroska", "pcm_s16le"),
              ("mpegts", "aac"), ("flv", "aac"), ("avi", "pcm_s16le"), ("wv", "wavpack"),
              ("ac3", "ac3"), ("ipod", "alac"), ("wav", "adpcm_ima_wav"))  # fmt: skip
#: Numbers at which programs break.
EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@cache
def seeds(kinds: tuple[tuple[str, str], ...]) -> tuple[bytes, ...]:
    """A true file of each kind, a fifth of a second of noise in one or two channels."""
    import soundfile

    noise = np.random.default_rng(1).normal(0, 0.1, (RATE // 5, 2)).astype(np.float32)
    files = []
    for number, (container, codec) in enumerate(kinds):
        file = io.BytesIO()
        channels = noise if number % 2 and codec != "GSM610" else noise[:, 0]
        rate = 48000 if codec == "OPUS" else RATE if codec != "MPEG_LAYER_III" else 16000
        soundfile.write(file, channels, rate, format=container, subtype=codec)
        files.append(file.getvalue())
    return tuple(files)


@cache
def containers() -> tuple[bytes, ...]:
    """A true file of each of FFmpeg's kinds; none without PyAV."""
    if importlib.util.find_spec("av") is None:
        return ()
    return tuple(_encoded(*kind) for kind in CONTAINERS)


def _encoded(container: str, codec: str) -> bytes:
    import av

    file = io.BytesIO()
    rate = 48000
    noise = np.random.default_rng(1).normal(0, 0.1, (1, rate // 5)).astype(np.float32)
    with av.open(file, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(noise, "fltp", "mono")
        frame.sample_rate, frame.pts = rate, 0
        context = stream.codec_context
        resampler = av.AudioResampler(context.format.name, "mono", rate)
        fifo = av.AudioFifo()
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            fifo.write(piece)
        while piece := fifo.read(context.frame_size or 1024):
            out.mux(stream.encode(piece))
        out.mux(stream.encode(None))
    return file.getvalue()


def mutate(dice: random.Random, data: bytes) -> bytes:
    """Damage as discs, networks and programs do it, mostly near the front, where headers are."""
    out = bytearray(data)
    for _ in range(dice.choice((0, 1, 1, 2, 3, 8))):
        most = len(out) if dice.random() < 0.5 else min(len(out), 128)
        at = dice.randrange(most + 1)
        width = dice.choice((1, 1, 2, 4, 4, 8))
        kind = dice.randrange(8)
        if kind == 0:
            out[at : at + 1] = bytes([dice.randrange(256)])
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << dice.randrange(8)
        elif kind == 2:
            order = dice.choice(("little", "big"))
            number = dice.choice(EDGES) & (1 << 8 * width) - 1
            out[at : at + width] = number.to_bytes(width, order)
        elif kind == 3:
            del out[at:]
        elif kind == 4:
            del out[at : at + dice.choice((1, 2, 7, 64, 500))]
        elif kind == 5:
            out[at:at] = out[at : at + dice.choice((1, 4, 64, 500))]
        elif kind == 6:
            out[at : at + 64] = dice.randbytes(dice.choice((1, 4, 64)))
        else:
            other = dice.randrange(len(out) + 1)
            out[at : at + 16] = out[other : other + 16]
    return bytes(out)


def wav(dice: random.Random) -> bytes:
    """A WAV file of chunks in any order, with true and false fields."""
    big = dice.random() < 0.1
    order = ">" if big else "<"
    chunks = [_fmt(dice, order)] * dice.choice((0, 1, 1, 1, 1, 2))
    chunks += [(b"data", dice.randbytes(dice.choice((0, 1, 2, 7, 64, 64, 1000, 5001))))] * (
        dice.choice((0, 1, 1, 1, 1, 2))
    )
    for _ in range(dice.choice((0, 0, 1, 2))):
        name = dice.choice(
            (b"LIST", b"JUNK", b"fact", b"ds64", b"bext", b"id3 ", dice.randbytes(4))
        )
        chunks.append((name, dice.randbytes(dice.choice((0, 1, 4, 28, 28, 100)))))
    if dice.random() < 0.3:
        dice.shuffle(chunks)
    body = b"WAVE"
    for name, content in chunks:
        size = len(content)
        if dice.random() < 0.2:
            size = dice.choice((*EDGES, max(0, size - 1), size + 1, dice.getrandbits(32)))
        pad = b"\0" * (len(content) % 2 and dice.random() < 0.9)
        body += name + struct.pack(f"{order}I", size) + content + pad
    head = b"RIFX" if big else dice.choice((b"RIFF",) * 8 + (b"RF64", b"BW64"))
    size = len(body) if dice.random() < 0.8 else dice.choice(EDGES)
    tail = dice.choice((b"", b"", b"", b"TAG", bytes(5), dice.randbytes(40)))
    return head + struct.pack(f"{order}I", size) + body + tail


def _fmt(dice: random.Random, order: str) -> tuple[bytes, bytes]:
    tag, bits = dice.choice(((1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64), (6, 8), (7, 8)))
    channels = dice.choice((1, 1, 1, 2, 2, 3, 8, 0, 1024, 1025, 65535))
    rate = dice.choice((8000, 16000, 44100, 4000, 384000, 3999, 0, 0xFFFFFFFF))
    width = bits // 8
    align, extensible = width * channels & 0xFFFF, dice.random() < 0.2
    if dice.random() < 0.1:
        tag = dice.choice((0, 2, 0x11, 0x31, 0x55, dice.getrandbits(16)))
    if dice.random() < 0.1:
        bits, align = dice.getrandbits(16), dice.choice((0, align, dice.getrandbits(16)))
    fields = struct.pack(
        f"{order}HHIIHH", 0xFFFE if extensible else tag, channels, rate,
        rate * width & 0xFFFFFFFF, align, bits,
    )  # fmt: skip
    if extensible:
        guid = bytes.fromhex("000000001000800000aa00389b71")
        fields += struct.pack(f"{order}HHIH", 22, bits, dice.getrandbits(32), tag) + guid
    return b"fmt ", fields + bytes(dice.choice((0, 0, 0, 2, 24)))
