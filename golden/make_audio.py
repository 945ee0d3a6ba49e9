"""Say the speech clips again with free voices: `python golden/make_audio.py [FOLDER]`.

Needs Debian's flite 2.2 and espeak-ng 1.51, and SciPy for resampling. The committed files are the
ones that count; this script is their recipe. Voices and licences: golden/README.md.
"""

import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

CLIPS = [  # name, program, voice, words
    ("transcribe_me", "flite", "slt", "one two three four five six seven eight nine"),
    ("count-espeak-us", "espeak-ng", "en-us", "one two three four five six seven eight nine"),
    ("digits-awb", "flite", "awb", "nine eight seven six five"),
    ("digits-rms", "flite", "rms", "four two eight six"),
    ("digits-kal", "flite", "kal16", "three five nine"),
    ("digits-espeak-gb", "espeak-ng", "en-gb", "three five nine"),
    ("seven-slt", "flite", "slt", "seven"),
    ("yes-rms", "flite", "rms", "yes"),
    ("no-kal", "flite", "kal16", "no"),
    ("up-slt", "flite", "slt", "up"),
    ("down-rms", "flite", "rms", "down"),
    ("left-right-rms", "flite", "rms", "left right"),
    ("on-awb", "flite", "awb", "on"),
    ("off-slt", "flite", "slt", "off"),
    ("stop-awb", "flite", "awb", "stop"),
    ("go-espeak-us", "espeak-ng", "en-us+f3", "go"),
    ("computer-slt", "flite", "slt", "computer"),
    ("alexa-rms", "flite", "rms", "alexa"),
    ("jarvis-awb", "flite", "awb", "jarvis"),
    ("sentence-rms", "flite", "rms", "it is time to go home"),
    ("sentence-slt", "flite", "slt", "turn on the light"),
]


def say(program: str, voice: str, words: str, path: Path) -> np.ndarray:
    """Run the synthesiser; return float64 samples at 16 kHz."""
    if program == "flite":
        command = ["flite", "-voice", voice, "-t", words, "-o", str(path)]
    else:
        command = ["espeak-ng", "-v", voice, "-w", str(path), words]
    subprocess.run(command, check=True)
    with wave.open(str(path)) as clip:
        rate = clip.getframerate()
        samples = np.frombuffer(clip.readframes(clip.getnframes()), "<i2") / 32768.0
    return samples if rate == 16000 else resample_poly(samples, 16000, rate)


def trim(samples: np.ndarray) -> np.ndarray:
    """Cut everything before the first and after the last sample above a fifth of the peak."""
    loud = np.flatnonzero(np.abs(samples) > 0.2 * np.abs(samples).max())
    return samples[loud[0] : loud[-1] + 1]


def write(path: Path, samples: np.ndarray) -> None:
    """Write 16 kHz mono 16-bit WAV."""
    with wave.open(str(path), "wb") as clip:
        clip.setnchannels(1)
        clip.setsampwidth(2)
        clip.setframerate(16000)
        clip.writeframes(np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def main() -> None:
    """Say every clip; the trimmed one starts and ends in the middle of speech."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "audio"
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "said.wav"
        for name, program, voice, words in CLIPS:
            write(folder / f"{name}.wav", say(program, voice, words, raw))
        write(folder / "seven-awb-trimmed.wav", trim(say("flite", "awb", "seven", raw)))


if __name__ == "__main__":
    main()
