"""asr.audio and WAV: every encoding, any chunk order, and headers that do not tell the truth."""

import io
import os
import resource
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import wavfile

import asr
from asr import audio
from asr.audio import raw as raw_module
from asr.audio import wav as own

RATE = 16000
MASTER = (
    0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE // 4) / RATE)
    + 0.1 * np.sin(2 * np.pi * 1234.5 * np.arange(RATE // 4) / RATE)
).astype(np.float32)
GUID = bytes.fromhex("000000001000800000aa00389b71")
PCM, FLOAT, ALAW, MULAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE


def compand(x, law):
    """The nearest of the 256 values: what a perfect encoder would write."""
    table = raw_module._table(law)
    order = np.argsort(table)
    right = np.clip(np.searchsorted(table[order], x), 1, 255)
    left = np.abs(x - table[order][right - 1]) < np.abs(x - table[order][right])
    return order[right - left].astype(np.uint8).tobytes()


def encode(x, kind):
    """Samples as bytes of an encoding, little-endian."""
    if kind in ("alaw", "mulaw"):
        return compand(x, kind)
    if kind == "u8":
        return np.round(x * 128 + 128).astype(np.uint8).tobytes()
    if kind.startswith("f"):
        return x.astype(f"<{kind[0]}{int(kind[1:]) // 8}").tobytes()
    bits = int(kind[1:])
    values = np.round(x.astype(np.float64) * 2 ** (bits - 1)).astype("<i4")
    if bits == 24:
        return values.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return values.astype(f"<i{bits // 8}").tobytes()


KINDS = {  # tag, bits, the largest error: half a step, half the coarsest one of the companded
    "u8": (PCM, 8, 1 / 256),
    "s16": (PCM, 16, 1 / 65536),
    "s24": (PCM, 24, 1 / 2**24),
    "s32": (PCM, 32, 1 / 2**25),
    "f32": (FLOAT, 32, 0),
    "f64": (FLOAT, 64, 0),
    "alaw": (ALAW, 8, 1 / 50),
    "mulaw": (MULAW, 8, 1 / 50),
}


def fmt(kind="s16", channels=1, rate=RATE, extensible=False, size=16, order="<"):
    """The content of a fmt chunk."""
    tag, bits, _ = KINDS[kind]
    width = bits // 8
    fields = struct.pack(
        f"{order}HHIIHH",
        EXTENSIBLE if extensible else tag,
        channels,
        rate,
        rate * width * channels & 0xFFFFFFFF,
        width * channels & 0xFFFF,
        bits,
    )
    if extensible:
        return fields + struct.pack(f"{order}HHIH", 22, bits, 0, tag) + GUID
    return fields.ljust(size, b"\0")


def chunk(name, content, size=None, order="<", pad=True):
    """A chunk; its size may be a lie."""
    size = len(content) if size is None else size
    return name + struct.pack(f"{order}I", size) + content + b"\0" * (pad and len(content) % 2)


def riff(*chunks, size=None, name=b"RIFF", order="<"):
    body = b"WAVE" + b"".join(chunks)
    return name + struct.pack(f"{order}I", len(body) if size is None else size) + body


def read(content, **options):
    """Samples and warnings."""
    told = []
    return audio.read(content, warn=told.append, **options).samples, told


S16 = encode(MASTER, "s16")
EXPECTED = np.frombuffer(S16, "<i2") / np.float32(32768)


@pytest.mark.parametrize("extensible", [False, True], ids=["plain", "EXTENSIBLE"])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_every_encoding(kind, channels, extensible):
    """Within a step of the encoding of the float master, by libsndfile and by our own reader."""
    many = np.repeat(MASTER, channels)
    header = chunk(b"fmt ", fmt(kind, channels, extensible=extensible))
    good = riff(header, chunk(b"data", encode(many, kind)))
    endless = riff(header, chunk(b"data", encode(many, kind), size=0), size=0)
    found, told = read(good)
    assert (MASTER.shape, []) == (found.shape, told)
    assert np.abs(found - MASTER).max() <= KINDS[kind][2] + 1e-7
    ours, told = read(endless)
    assert told == []
    assert np.allclose(found, ours, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["alaw", "mulaw"])
def test_the_companding_tables_are_libsndfiles(kind):
    """All 256 codes decode to what libsndfile makes of them."""
    codes = bytes(range(256))
    good = riff(chunk(b"fmt ", fmt(kind)), chunk(b"data", codes))
    assert np.array_equal(read(good)[0], raw_module.decode(codes, kind))


JUNK = chunk(b"JUNK", b"\0" * 28)
LIST = chunk(b"LIST", b"INFOISFT\x05\0\0\0test\0\0")
ODD = chunk(b"bext", b"x" * 603)
UNPADDED = chunk(b"bext", b"x" * 603, pad=False)
FMT, DATA = chunk(b"fmt ", fmt()), chunk(b"data", S16)


@pytest.mark.parametrize("promise", [len(S16), 0xFFFFFFFF], ids=["true", "unknown"])
@pytest.mark.parametrize(
    "before",
    [
        [JUNK, FMT],
        [FMT, LIST],
        [LIST, JUNK, FMT, ODD],
        [ODD, FMT],
        [UNPADDED, FMT],
        [FMT, UNPADDED],
        [chunk(b"fmt ", fmt(size=18))],
        [chunk(b"fmt ", fmt(size=40))],
        [chunk(b"fmt ", fmt(extensible=True)), chunk(b"fact", b"\0\0\1\0")],
    ],
    ids=lambda chunks: " ".join(c[:4].decode().strip() for c in chunks),
)
def test_chunks_before_the_samples(before, promise):
    """Any chunk, padded or not, may stand before the samples and is none of them."""
    found, told = read(riff(*before, chunk(b"data", S16, size=promise)))
    assert ([], EXPECTED.tolist()) == (told, found.tolist())


def test_the_format_may_follow_the_samples():
    """Chunks have no order."""
    found, told = read(riff(DATA, LIST, FMT))
    assert ([], EXPECTED.tolist()) == (told, found.tolist())


@pytest.mark.parametrize(
    "after",
    [LIST, JUNK, b"TAG" + b"\1" * 125, b"ID3\4" + b"\1" * 400, b"\0" * 3000, b"\0", b"\1\2\3"],
    ids=["LIST", "JUNK", "ID3v1", "ID3v2", "zeros", "a pad byte", "three bytes"],
)
def test_what_follows_the_samples_is_none_of_them(after):
    """Chunks, tags of other formats and padding behind the data are not heard, and no damage."""
    found, told = read(riff(FMT, DATA, after))
    assert ([], EXPECTED.tolist()) == (told, found.tolist())


@pytest.mark.parametrize("claim", [0, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF024, 0xFFFFFFDB])
@pytest.mark.parametrize("of_riff", [0, 0xFFFFFFFF, None])
def test_a_size_that_says_unknown_means_to_the_end(claim, of_riff):
    """What a program writes that does not know the size (a pipe, a recorder that died)."""
    found, told = read(riff(FMT, chunk(b"data", S16, size=claim), size=of_riff))
    assert ([], EXPECTED.tolist()) == (told, found.tolist())


def test_a_file_that_says_it_is_empty_is_empty():
    """Size 0 and nothing, or only another chunk, behind it: no samples, no error."""
    for content in (riff(FMT, chunk(b"data", b"")), riff(FMT, chunk(b"data", b""), LIST)):
        found, told = read(content)
        assert (len(found), told) == (0, [])


@pytest.mark.parametrize("claim", [len(S16) + 1000, 3 * len(S16), 0x60000000])
def test_a_file_that_was_cut_is_heard_as_far_as_it_goes(claim):
    """The header promises more: what is there is heard, with a warning; strict refuses."""
    content = riff(FMT, chunk(b"data", S16, size=claim))
    found, told = read(content)
    assert EXPECTED.tolist() == found.tolist()
    assert [f"audio_damaged: its header promises {claim / 32000:.2f} s and it holds 0.25 s"] == told
    with pytest.raises(asr.AudioError, match="bytes: expected an undamaged file, found that its"):
        read(content, strict=True)
    with pytest.warns(RuntimeWarning, match="^bytes: audio_damaged"):
        audio.read(content)


def test_a_cut_inside_a_sample_loses_that_sample_only():
    """Half a sample is no sample."""
    found, told = read(riff(FMT, chunk(b"data", S16[:-1], size=len(S16), pad=False)))
    assert (EXPECTED[:-1].tolist(), 1) == (found.tolist(), len(told))


@pytest.mark.parametrize("claim", [2, 1000, len(S16) - 500])
@pytest.mark.parametrize("of_riff", [True, False])
def test_a_size_that_is_too_small_loses_nothing(claim, of_riff):
    """A recorder that died after its last update of the header: all is heard, with a warning."""
    size = claim + 36 if of_riff else None
    found, told = read(riff(FMT, chunk(b"data", S16, size=claim), size=size))
    assert (EXPECTED.tolist(), 1) == (found.tolist(), len(told))


def rf64(claim, content=S16, of_riff=0xFFFFFFFF, name=b"RF64"):
    sizes = struct.pack("<QQQI", len(content) + 72, claim, len(content) // 2, 0)
    return riff(
        chunk(b"ds64", sizes),
        FMT,
        chunk(b"data", content, size=0xFFFFFFFF),
        size=of_riff,
        name=name,
    )


@pytest.mark.parametrize("name", [b"RF64", b"BW64"])
def test_rf64(name):
    """Sizes of 64 bits stand in ds64; a wrong one costs a warning and no sample."""
    found, told = read(rf64(len(S16), name=name))
    assert ([], EXPECTED.tolist()) == (told, found.tolist())
    found, told = read(rf64(1 << 40, name=name))
    assert (EXPECTED.tolist(), 1) == (found.tolist(), len(told))


def test_rifx():
    """Big-endian WAV: header and samples."""
    big = np.frombuffer(S16, "<i2").astype(">i2").tobytes()
    header = chunk(b"fmt ", fmt(order=">"), order=">")
    for size in (None, 0xFFFFFFFF):
        content = riff(header, chunk(b"data", big, size, ">"), name=b"RIFX", order=">")
        assert EXPECTED.tolist() == read(content)[0].tolist()


def test_24_bits_in_samples_of_32():
    """The alignment says how wide a sample is; its bits stand at the left."""
    fields = struct.pack("<HHIIHH", EXTENSIBLE, 1, RATE, 4 * RATE, 4, 32)
    fields += struct.pack("<HHIH", 22, 24, 0, PCM) + GUID
    wide = (np.round(MASTER * (2**23 - 1)).astype("<i4") << 8).tobytes()
    for size in (None, 0):
        found, _ = read(riff(chunk(b"fmt ", fields), chunk(b"data", wide, size=size)))
        assert np.abs(found - MASTER).max() < 2e-7


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (riff(FMT, chunk(b"data", b"", size=100)), "found none in 44 bytes"),
        (riff(FMT), "could not decode"),
        (riff(DATA), "could not decode"),
        (
            riff(chunk(b"fmt ", fmt(channels=0)), DATA),
            "could not decode|without any",
        ),  # no PyAV, PyAV
        (riff(chunk(b"fmt ", fmt(rate=0)), DATA), "could not decode"),
        (riff(chunk(b"fmt ", fmt(rate=100)), DATA), "expected a rate of 4000 to 384000 Hz"),
        (riff(chunk(b"fmt ", fmt(rate=2**31 - 1)), DATA), "expected a rate of 4000 to 384000 Hz"),
        (riff(chunk(b"fmt ", fmt()[:8]), DATA), "could not decode"),
    ],
)
def test_a_wav_that_cannot_be_read_says_why(content, found):
    """One line that names the source."""
    with pytest.raises(asr.AudioError, match=found) as seen:
        audio.read(content)
    assert str(seen.value).startswith("bytes: ")
    assert len(str(seen.value).splitlines()) == 1


names = st.sampled_from([b"fmt ", b"data", b"LIST", b"JUNK", b"ds64", b"fact", b"ab\0\xff"])
sizes = st.one_of(
    st.none(), st.sampled_from([0, 1, 16, 0x7FFFFFFF, 0xFFFFFFFF]), st.integers(0, 2**32 - 1)
)
contents = st.one_of(
    st.builds(
        fmt,
        st.sampled_from(list(KINDS)),
        st.integers(0, 65535) | st.integers(1, 3),
        st.integers(0, 2**31) | st.sampled_from([8000, RATE, 48000]),
        st.booleans(),
    ),
    st.binary(max_size=100),
)
chunks = st.builds(chunk, names, contents, sizes, pad=st.booleans())


@given(st.lists(chunks, max_size=5), sizes, st.sampled_from([b"RIFF", b"RIFX", b"RF64", b"BW64"]))
def test_any_header_is_audio_or_an_error_of_ours(pieces, size, name):
    """Whatever the chunks claim, no more samples come out than bytes went in."""
    content = riff(*pieces, size=size, name=name)
    try:
        found, _ = read(content)
    except asr.AudioError as error:
        assert str(error).startswith("bytes: ")  # noqa: PT017 - either outcome is right
    else:
        assert len(found) <= 8 * len(content)  # ADPCM: two samples a byte, in blocks


@given(st.integers(0, 300), st.sampled_from(list(KINDS)), st.integers(1, 3), sizes)
def test_our_reader_finds_every_whole_frame(length, kind, channels, claim):
    """Our own walk and libsndfile's agree on files whose header is true."""
    samples = np.resize(MASTER, length * channels)
    header = chunk(b"fmt ", fmt(kind, channels))
    found, told = read(riff(header, chunk(b"data", encode(samples, kind))))
    assert (length, []) == (len(found), told)
    if claim in (None, 0xFFFFFFFF, 0x7FFFFFFF):
        endless = chunk(b"data", encode(samples, kind), size=claim, pad=False)
        ours, _ = read(riff(header, endless))
        assert np.allclose(found, ours, atol=1e-7)


TRUE_NAMES = st.sampled_from([b"LIST", b"JUNK", b"bext", b"id3 ", b"iXML", b"axml"])
true_chunks = st.lists(st.builds(chunk, TRUE_NAMES, st.binary(max_size=60)), max_size=3)


@given(
    st.sampled_from(list(KINDS)),
    st.integers(1, 8),
    st.integers(0, 400),
    st.integers(4000, 384000),
    st.booleans(),
    st.tuples(true_chunks, true_chunks, true_chunks),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_true_header_gives_what_it_was_made_of(
    kind, channels, length, rate, extensible, around, swap, seed
):
    """Any encoding, channels, rate, length, chunks in any order: what went in, libsndfile, SciPy.

    The two others are asked where they can read the file: the format first, an encoding they know.
    """
    master = np.random.default_rng(seed).uniform(-0.9, 0.9, (length, channels))
    content = encode(master.astype(np.float32).ravel(), kind)
    order = [
        chunk(b"fmt ", fmt(kind, channels, rate, extensible)),
        chunk(b"data", content),
    ][:: -1 if swap else 1]
    before, between, after = (b"".join(chunks) for chunks in around)
    file = riff(before, order[0], between, order[1], after)
    expected = raw_module.decode(content, kind if kind in raw_module.WIDTHS else f"{kind}le")
    expected = expected.reshape(length, channels)
    told = []
    if not length:
        assert len(audio.read(file, warn=told.append).samples) == 0
        return
    found = list(audio.read_channels(file, warn=told.append))
    assert [rate] * channels == [a.sample_rate_hz for a in found]
    assert np.allclose(expected, np.stack([a.samples for a in found], 1), rtol=0, atol=1e-7)
    assert told == []
    if swap:
        return
    other, other_rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
    assert rate == other_rate
    assert np.allclose(other, expected, rtol=0, atol=1e-7)
    if kind in ("s16", "s32", "f32", "f64", "u8"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # of chunks it does not know
            other_rate, values = wavfile.read(io.BytesIO(file))
        assert rate == other_rate
        scale = {"s16": 2**15, "s32": 2**31, "u8": 2**7}.get(kind, 1)
        values = (values.astype(float) - 128 * (kind == "u8")) / scale
        assert np.allclose(values.reshape(length, channels), expected, rtol=0, atol=1e-7)


def test_a_header_costs_no_memory(tmp_path):
    """2 GB, 4 GB and 2**40 bytes promised, 0.25 s there: peak memory is that of an honest file."""
    (tmp_path / "honest").write_bytes(riff(FMT, DATA))
    (tmp_path / "2G").write_bytes(riff(FMT, chunk(b"data", S16, size=0x7FFFFFFE)))
    (tmp_path / "4G").write_bytes(riff(FMT, chunk(b"data", S16, size=0xFFFFFFFE)))
    (tmp_path / "1T").write_bytes(rf64(1 << 40))
    program = (
        "import resource, sys, warnings; from asr import audio; warnings.simplefilter('ignore');"
        "kb = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "audio.read(sys.argv[1]); first = kb();"
        "[audio.read(n) for n in sys.argv[2:]]; print(kb() - first)"
    )
    command = [sys.executable, "-c", program]
    command += [tmp_path / n for n in ("honest", "2G", "4G", "1T")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 8_000
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


def test_many_tiny_chunks_end_soon(tmp_path):
    """A file of thousands of empty chunks is given up, not walked for minutes."""
    (tmp_path / "x.wav").write_bytes(riff(FMT, *[chunk(b"JUNK", b"")] * 5000, DATA))
    descriptor = os.open(tmp_path / "x.wav", os.O_RDONLY)
    try:
        assert own.sound(descriptor, "x") is None
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("pad", [True, False])
def test_an_odd_number_of_bytes_may_be_padded_or_not(pad):
    """8-bit samples, an odd number, and a chunk behind them: no byte of it is heard."""
    odd = encode(MASTER[:-1], "u8")
    assert len(odd) % 2
    notes = chunk(b"LIST", b"INFOICMT" + bytes(range(256)))
    found, told = read(riff(chunk(b"fmt ", fmt("u8")), chunk(b"data", odd, pad=pad), notes))
    assert (len(odd), []) == (len(found), told)
