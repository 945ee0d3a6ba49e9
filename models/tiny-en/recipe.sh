#!/bin/sh
# The whole recipe: recipe.sh MANIFEST WORK
# Environment: PYTHON, STEPS (main run), DECAY_STEPS, INIT (a checkpoint to train on from).
# Every part is skipped or resumed where its output exists, so it may be stopped and run again.
set -eu
data=$1
work=$2
here=$(dirname "$0")
python=${PYTHON:-python3}
steps=${STEPS:-20000}
decay_steps=${DECAY_STEPS:-2000}
export OMP_WAIT_POLICY=passive

[ -e "$work/cache/speech.tsv" ] || "$python" "$here/prepare.py" --data "$data" --work "$work"
[ -e "$work/tts/manifest.tsv" ] || "$python" "$here/synthesise.py" --out "$work/tts"
[ -e "$work/cache/tts.tsv" ] ||
    "$python" "$here/prepare.py" --synthetic "$work/tts/manifest.tsv" --work "$work"
[ -e "$work/tts2/manifest.tsv" ] ||
    "$python" "$here/synthesise.py" --out "$work/tts2" --second-of "$work"
[ -e "$work/cache/tts2.tsv" ] ||
    "$python" "$here/prepare.py" --synthetic "$work/tts2/manifest.tsv" --work "$work"
[ -e "$work/tts3/manifest.tsv" ] || "$python" "$here/synthesise.py" --out "$work/tts3" --third
[ -e "$work/cache/tts3.tsv" ] ||
    "$python" "$here/prepare.py" --synthetic "$work/tts3/manifest.tsv" --work "$work"
[ -e "$work/bpe.model" ] || "$python" "$here/pieces.py" --work "$work"
if [ ! -e "$work/cache/cuts.tsv" ]; then
    # The first steps teach the words; then the model can cut more of them out of sentences.
    "$python" "$here/train.py" --work "$work" --run "$work/main" --stop-at 3000 ${INIT:+--init "$INIT"}
    "$python" "$here/cut_words.py" --work "$work" --state "$work/main/state.pt"
fi
"$python" "$here/train.py" --work "$work" --run "$work/main" --stop-at "$steps"
"$python" "$here/train.py" --work "$work" --run "$work/decay" \
    --decay-from "$work/main/state.pt" --decay-steps "$decay_steps"
"$python" "$here/progress_log.py" "$work/main/log.tsv" "$work/learning_curve.png"
"$python" "$here/export.py" --state "$work/decay/state.pt" --out "$work/export"
"$python" "$here/checkpoint.py" "$work/main/state.pt" "$work/checkpoint.pt"
"$python" "$here/evaluate.py" --data "$data" --synthetic "$work/tts/manifest.tsv" \
    --model "$work/export" --fp32 "$work/export/model.onnx" --report "$work/results.md"
