"""Say the clips of `asr doctor` again: `python golden/make_doctor_clips.py`.

Programs, voices and licences are those of make_audio.py; needs soundfile besides. Five languages,
because token tables and tags differ between them. espeak-ng reads kana, but hardly any kanji.
"""

import tempfile
from pathlib import Path

import soundfile
from make_audio import say

FOLDER = Path(__file__).parents[1] / "asr" / "doctor" / "clips"
CLIPS = [  # name, program, voice, words
    ("en-count", "espeak-ng", "en-us", "one two three four five six seven eight nine"),
    ("en-digits", "flite", "rms", "four two eight six"),
    ("en-seven", "flite", "slt", "seven"),
    ("en-yes", "flite", "rms", "yes"),
    ("en-stop", "flite", "awb", "stop"),
    ("en-left-right", "flite", "rms", "left right"),
    ("en-computer", "flite", "slt", "computer"),
    ("en-home", "flite", "rms", "it is time to go home"),
    ("en-light", "flite", "slt", "turn on the light"),
    ("en-timer", "flite", "awb", "set a timer for ten minutes"),
    ("zh-count", "espeak-ng", "cmn", "一二三四五六七八九"),
    ("zh-lights", "espeak-ng", "cmn", "打开客厅的灯"),
    ("zh-weather", "espeak-ng", "cmn", "今天天气怎么样"),
    ("yue-cool", "espeak-ng", "yue", "請你打開冷氣"),
    ("yue-weather", "espeak-ng", "yue", "今日天氣點樣"),
    ("ja-count", "espeak-ng", "ja", "いち に さん よん ご"),
    ("ja-light", "espeak-ng", "ja", "でんきを けしてください"),
    ("ja-music", "espeak-ng", "ja", "おんがくを とめて"),
    ("ko-light", "espeak-ng", "ko", "불을 켜 주세요"),
    ("ko-music", "espeak-ng", "ko", "음악을 꺼 줘"),
]


def main() -> None:
    """Write every clip as 16 kHz mono 16-bit FLAC."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "said.wav"
        for name, program, voice, words in CLIPS:
            soundfile.write(FOLDER / f"{name}.flac", say(program, voice, words, raw), 16000)


if __name__ == "__main__":
    main()
