"""What a phrase list buys: the table of docs/phrases.md, on the test split.

Every list holds what is said in its set. Speech that is not on the list is up to `OTHERS` clips of
every other set in which no text, and of the short lists no word, of the list is said.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asr.phrases import PhraseList
from asr.recognizer import Recognizer
from asr.text import join_segments
from audio import SAMPLE_RATE
from corpus import DIGITS, SPLITS_FILE, Splits
from synthesise import speak_held_out
from testsets import TestSets, Utterance

BUILT_IN = Path(__file__).parents[2] / "asr" / "builtin" / "tiny-en"
OTHERS = 100
WITHOUT_LIST = ("'(hey) computer', other corpus", "speechocean762 sentences", "LJSpeech sentences")
"""Sets that are only speech that is not on a list."""
SUBSET = "- "
"""Sets whose names begin so are part of another."""


@dataclass
class Row:
    """A line of the table.

    Attributes:
        clips: how many.
        free: right without a list.
        shown: right with it, and shown.
        withheld: right with it, and withheld.
        wrong: wrong with it.
        wrong_shown: of those, shown.
    """

    clips: int = 0
    free: int = 0
    shown: int = 0
    withheld: int = 0
    wrong: int = 0
    wrong_shown: int = 0


def hear(recognizer: Recognizer, said: Utterance, phrases: PhraseList | None) -> tuple[str, str]:
    """What was heard, and what of it is shown."""
    found = recognizer.transcribe(said.waveform, sample_rate=SAMPLE_RATE, phrases=phrases)
    return join_segments(segment.text for segment in found.segments), found.text


def measure(recognizer: Recognizer, said: list[Utterance], phrases: PhraseList) -> Row:
    """One set with its list."""
    row = Row(clips=len(said))
    for one in said:
        row.free += hear(recognizer, one, None)[0] == one.text
        text, shown = hear(recognizer, one, phrases)
        row.shown += text == one.text and bool(shown)
        row.withheld += text == one.text and not shown
        row.wrong += text != one.text
        row.wrong_shown += text != one.text and bool(shown)
    return row


def not_listed(sets: dict[str, list[Utterance]], texts: set[str]) -> list[Utterance]:
    """Clips of the sets in which nothing of the list is said."""
    short = {text for text in texts if " " not in text}
    chosen: list[Utterance] = []
    for said in sets.values():
        order = np.random.default_rng(0).permutation(len(said))
        others = [
            said[index]
            for index in order
            if said[index].text not in texts and short.isdisjoint(said[index].text.split())
        ]
        chosen += others[:OTHERS]
    return chosen


def percent(part: int, whole: int) -> str:
    """One digit after the point."""
    return f"{100 * part / whole:.1f}" if whole else "none"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="manifest of the corpora (TSV)")
    parser.add_argument("--model", type=Path, default=BUILT_IN, help="model folder; the built-in")
    parser.add_argument("--synthetic", type=Path, help="synthesise.py's manifest; else spoken now")
    parser.add_argument("--split", default="test", help="dev to choose by, test to report")
    options = parser.parse_args()
    splits = Splits(SPLITS_FILE)
    recognizer = Recognizer.load(options.model, threads=1)
    with tempfile.TemporaryDirectory() as temporary:
        synthetic = options.synthetic or speak_held_out(splits, Path(temporary))
        makers = TestSets(options.data, synthetic, splits, options.split).makers
        sets = {n: list(make()) for n, make in makers.items() if not n.startswith(SUBSET)}
    silent = [one for said in sets.values() for one in said if not one.text]
    speech = {name: said for name, said in sets.items() if said and said[0].text}
    heads = ["list, mode", "clips", "right without", "right and shown", "right, withheld"]
    print(f"| {' | '.join([*heads, 'of the wrong, shown'])} |\n|{'---|' * (len(heads) + 1)}")
    others = others_shown = noises = noises_shown = 0
    for name, said in speech.items():
        if name in WITHOUT_LIST:
            continue
        many = "strings" in name
        texts = {text for one in said for text in (one.text.split() if many else [one.text])}
        texts |= set(DIGITS) if "digit" in name else set()
        phrases = PhraseList(sorted(texts), recognizer.layout.vocabulary, many=many)
        row = measure(recognizer, said, phrases)
        cells = [percent(value, row.clips) for value in (row.free, row.shown, row.withheld)]
        mode = "many" if many else "one"
        wrong = f"{row.wrong_shown} of {row.wrong}"
        print(f"| {name}, `{mode}` | {row.clips} | {' | '.join(cells)} | {wrong} |", flush=True)
        strangers = not_listed(speech, texts)
        others += len(strangers)
        others_shown += sum(bool(hear(recognizer, one, phrases)[1]) for one in strangers)
        noises += len(silent)
        noises_shown += sum(bool(hear(recognizer, one, phrases)[1]) for one in silent)
    print(
        f"| speech that is not on the list | {others} | | | | {percent(others_shown, others)} % |"
    )
    print(f"| noise, hum, clicks, silence | {noises} | | | | {percent(noises_shown, noises)} % |")


if __name__ == "__main__":
    main()
