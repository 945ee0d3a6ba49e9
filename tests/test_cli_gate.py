"""asr gate on the command line."""

import json

import pytest
import records

from asr import cli
from asr.bench import record


@pytest.fixture
def files(tmp_path):
    """Records: calm, slow (confirmed), other text, of one version."""
    same = {"count": 16, "factors": {"infer": 1.3}}
    made = {
        "calm": records.pairs(2, count=16, sd=0.004),
        "noisy": records.pairs(2, count=16, sd=0.2),
        "slow": records.pairs(1, confirm=records.pair_list(7, **same), **same),
        "text": records.pairs(3, text_same=False),
        "alone": records.bench(),
    }
    for name, value in made.items():
        record.write(value, tmp_path / f"{name}.json")
    (tmp_path / "tight.toml").write_text(
        "[device.x]\nmodel = 'tiny-en'\nrtf_warm = 1e-9\n", encoding="utf-8"
    )
    (tmp_path / "expired").mkdir()
    (tmp_path / "expired/old.toml").write_text(
        'metric = "warm/*"\nsha = "1234567"\nat_most = 2.0\nreason = "r"\nsigned_off_by = "s"\n'
        "expires = 2020-01-01\n",
        encoding="utf-8",
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--pairs calm.json", 0),
        ("--pairs slow.json", 10),
        ("--pairs calm.json --pairs slow.json", 10),
        ("--pairs text.json", 12),
        ("--record alone.json", 0),
        ("--record alone.json --require-baseline", 14),
        ("--record alone.json --budget tight.toml", 11),
        ("--pairs slow.json --budget tight.toml", 11),
        ("--pairs noisy.json", 0),
        ("--pairs noisy.json --require-verdict", 13),
        ("--pairs calm.json --accepted expired", 4),
        ("--pairs nowhere.json", 5),
        ("--pairs alone.json", 4),
        ("--pairs calm.json --budget nowhere.toml", 5),
    ],
)
def test_exit_codes(arguments, code, files, monkeypatch, capsys):
    """Those of the contract; an error is one line."""
    monkeypatch.chdir(files)
    assert cli.main(["gate", *arguments.split()]) == code
    out, err = capsys.readouterr()
    assert bool(out) is (code in (0, 10, 11, 12, 13, 14))
    assert err.count("\n") == (0 if out else 1)


def test_records_of_one_base_are_judged_apart(files, monkeypatch, capsys):
    """Two files with the same base: what one shows is not said of the other."""
    monkeypatch.chdir(files)
    cli.main(["gate", "--pairs", "calm.json", "--pairs", "slow.json", "--json"])
    told = json.loads(capsys.readouterr().out)
    regressed = {f["against"] for f in told["findings"] if f["outcome"] == "regressed"}
    assert regressed == {"base in slow.json"}


def test_every_form_is_written(files, monkeypatch, capsys):
    """One judgement, all forms; stdout holds one JSON object."""
    monkeypatch.chdir(files)
    forms = "--markdown m.md --junit j.xml --bencher b.json --benchmark-action a.json"
    code = cli.main(["gate", "--pairs", "slow.json", "--json", *forms.split(" ")])
    told = json.loads(capsys.readouterr().out)
    assert code == told["exit_code"] == 10
    assert "of which infer +" in (files / "m.md").read_text()
    assert "<failure" in (files / "j.xml").read_text()
    assert "warm/5 s/infer" in json.loads((files / "b.json").read_text())
    assert json.loads((files / "a.json").read_text())


def test_annotations_go_to_stdout(files, monkeypatch, capsys):
    """Where GitHub reads them."""
    monkeypatch.chdir(files)
    cli.main(["gate", "--pairs", "slow.json", "--annotations"])
    assert capsys.readouterr().out.startswith("::error title=guilty stage::")


def test_a_form_that_cannot_be_written_is_told(files, monkeypatch, capsys):
    """5, with the file's name."""
    monkeypatch.chdir(files)
    assert cli.main(["gate", "--pairs", "calm.json", "--markdown", "no/where.md"]) == 5
    assert "no/where.md" in capsys.readouterr().err


@pytest.mark.parametrize("cores", ["x", "", "9999"])
def test_cores_that_are_none(cores, capsys):
    """A usage error before anything is built."""
    assert cli.main(["gate", "--quick", "--pin", cores]) == 2
    assert "--pin" in capsys.readouterr().err
