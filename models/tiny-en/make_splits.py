"""Writes splits.tsv: which speakers, clips, noises and synthetic voices train, validate and test.

Run once, before any training; the result is committed and never made again from other data.
Test speakers are those the manifest marks. Everything that may not train shipped weights
(tier B) is `unused`, except FSDD: its test speaker tests and two others validate.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from pathlib import Path

from audio import AudioStore
from corpus import SPLITS_FILE, clean_text, read_table
from engines import KOKORO_VOICES

SEED = 20
DEV_SPEAKERS = {"speech_commands": 20, "speechocean762": 12}
DEV_FSDD = ("fsdd-jackson", "fsdd-nicolas")
TEST_SPEAKERS = ("precise/pcd-computer", "precise/pcd-heycomputer")
WAKE_TEST_SHARE, WAKE_DEV_SHARE = 0.09, 0.04
KATHLEEN_DEV_PROMPTS = 40
NOISE_TEST_FOLD, NOISE_DEV_FOLD = "5", "4"
BACKGROUND_TEST_SHARE, BACKGROUND_DEV_SHARE = 0.2, 0.1
ESPEAK_TRAIN = (
    "en-us en-gb en-us+m1 en-us+m2 en-us+m3 en-us+m5 en-us+m6 en-us+m7 en-us+m8 en-us+f1 en-us+f2 "
    "en-us+f4 en-us+f5 en-gb+m2 en-gb+m3 en-gb+f4 en-gb-scotland+m7 en-gb-scotland+f3 "
    "en-gb-x-rp+f3 en-gb-x-rp+m1 en-gb-x-gbclan+m5 en-029+m3 en-us+klatt2 en-us+klatt4 en-us+Alex "
    "en-us+Alicia en-gb+Andrea en-us+Andy en-us+Annie en-us+Denis en-us+Gene en-gb+Henrique "
    "en-us+Hugo en-us+Jacky en-us+Lee en-us+Marco en-us+Mario en-us+Michael en-us+Mike en-us+adam "
    "en-us+anika en-gb+belinda en-us+benjamin en-us+boris en-us+david en-gb+edward en-us+john "
    "en-us+linda en-us+max en-us+paul en-us+quincy en-gb+rob en-us+robert en-us+shelby "
    "en-us+steph en-us+victor en-us+zac en-us+grandma en-us+grandpa"
).split()
VOICES = {
    "train": [
        "flite/slt",
        "flite/awb",
        "flite/kal16",
        "flite/kal",
        "festival/kal_diphone",
        "festival/cmu_us_slt_arctic_hts",
        *(f"espeak/{name}" for name in ESPEAK_TRAIN),
        "pico/en-US",
        *(f"kokoro/{name}" for name in KOKORO_VOICES),
    ],
    "dev": ["espeak/en-us+m4", "espeak/en-gb-x-rp+f2", "pico/en-GB"],
    "test": ["flite/rms", "festival/ked_diphone"],
}


def number_in(path: str) -> int:
    """The last number of a file name: neighbours often share a speaker or a recording."""
    return int(re.findall(r"\d+", Path(path).stem)[-1])


def speaker_rows(rows: list[dict[str, str]], rng: random.Random) -> list[tuple[str, str, str]]:
    """One row per speaker of the manifest."""
    facts = {f"{r['source']}/{r['speaker']}": r for r in rows}
    chosen = set()
    for source, count in DEV_SPEAKERS.items():
        names = [k for k, r in facts.items() if r["source"] == source and r["split"] == "train"]
        chosen.update(rng.sample(sorted(names), count))
    table = []
    for key, row in sorted(facts.items()):
        split = row["split"]
        if row["source"] == "fsdd" and row["speaker"] in DEV_FSDD:
            split = "dev"
        elif row["tier"] != "A" and split == "train":
            split = "unused"
        elif key in TEST_SPEAKERS:
            split = "test"
        elif key in chosen:
            split = "dev"
        table.append(("speaker", key, split))
    return table


def wake_word_rows(rows: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    """Held-out wake words: per word the last files by number, since speakers carry no label."""
    by_word = defaultdict(list)
    for row in rows:
        if row["source"] == "wake_words":
            by_word[row["transcript"]].append(row["path"])
    table = []
    for paths in by_word.values():
        paths.sort(key=number_in)
        test = round(len(paths) * WAKE_TEST_SHARE)
        dev = round(len(paths) * WAKE_DEV_SHARE)
        table += [("clip", path, "test") for path in paths[-test:]]
        table += [("clip", path, "dev") for path in paths[-test - dev : -test]]
    return table


def kathleen_rows(rows: list[dict[str, str]], rng: random.Random) -> list[tuple[str, str, str]]:
    """All recordings of a few prompts of the one native reader: unseen sentences, seen voice."""
    prompts = defaultdict(list)
    for row in rows:
        if row["source"] == "kathleen":
            prompts[clean_text(row["transcript"])].append(row["path"])
    chosen = rng.sample(sorted(prompts), KATHLEEN_DEV_PROMPTS)
    return [("clip", path, "dev") for prompt in chosen for path in prompts[prompt]]


def noise_rows(paths: list[str]) -> list[tuple[str, str, str]]:
    """ESC-10 by its own folds (one source recording never spans two); the rest by number."""
    table = []
    background = sorted((p for p in paths if "/sc_" in p), key=number_in)
    test_from = int(len(background) * (1 - BACKGROUND_TEST_SHARE))
    dev_from = int(len(background) * (1 - BACKGROUND_TEST_SHARE - BACKGROUND_DEV_SHARE))
    place = {path: index for index, path in enumerate(background)}
    for path in sorted(paths):
        fold = re.search(r"esc10_(\d)-", path)
        if fold:
            split = {NOISE_TEST_FOLD: "test", NOISE_DEV_FOLD: "dev"}.get(fold[1], "train")
        elif path in place:
            index = place[path]
            split = "test" if index >= test_from else "dev" if index >= dev_from else "train"
        else:
            split = "train"
        table.append(("clip", path, split))
    return table


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the manifest (TSV)")
    parser.add_argument("--out", type=Path, default=SPLITS_FILE)
    options = parser.parse_args()
    rng = random.Random(SEED)
    rows = read_table(options.data)
    table = speaker_rows(rows, rng) + wake_word_rows(rows) + kathleen_rows(rows, rng)
    table += noise_rows(AudioStore(options.data.parent).names("noise"))
    table += [("voice", voice, split) for split, voices in VOICES.items() for voice in voices]
    lines = ["kind\tkey\tsplit"] + ["\t".join(row) for row in table]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
