"""A finished run as a GGUF file with its card; learning curves as pictures."""

from __future__ import annotations

import hashlib
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsrv_lab.card import made_hash
from toolsrv_lab.extras import load
from toolsrv_lab.journal import CURVE, draw_curves, read_curve
from toolsrv_lab.nano.episodes import Segment
from toolsrv_lab.nano.export import ABOUT, finish
from toolsrv_lab.nano.network import Shape, make_network
from toolsrv_lab.nano.rows import write_shard
from toolsrv_lab.nano.vocabulary import VOCABULARY, Vocabulary, make_vocabulary
from toolsrv_lab.release import CARD_KEY, ReleaseOptions, release
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

pytest.importorskip("torch", reason="needs the extra `lab`")
pytest.importorskip("gguf", reason="needs the extra `lab`")

BareLlama = runpy.run_path(str(Path(__file__).parents[1] / "bare_llama.py"))["BareLlama"]
LINE = {"step": 7, "seen": 700, "seconds": 1.5, "train_loss": 2.0, "loss": 2.5, "choice": 0.25,
        "values": 0.5, "tokens": 0.75}  # fmt: skip


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return make_vocabulary([[Segment("Zürich, PX-88 🎉")]], 340)


@pytest.fixture
def run(tmp_path: Path, vocabulary: Vocabulary) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    shape = Shape(vocabulary=len(vocabulary), width=64, layers=2, heads=2, inner=96)
    load("torch").manual_seed(1)
    write_shard(
        tmp_path / "rows-0000.npz", [np.zeros((5, 16), np.int16)] * 3, {"plan": {"seed": 4}}
    )
    about = {"shape": shape.model_dump(), "options": {"seed": 4}, "steps": 7, "tokens": 700,
             "seconds": 2, "loss": 2.0, "device": "cpu", "torch": "2"}  # fmt: skip
    finish(folder, make_network(shape), vocabulary, [tmp_path / "rows-0000.npz"], about)
    (folder / CURVE).write_text(json.dumps(LINE) + "\n")
    return folder


def fields(path: Path) -> dict[str, Any]:
    found = load("gguf").GGUFReader(str(path)).fields
    return {name: one.contents() for name, one in found.items()}


def test_an_exported_run_says_what_it_is_and_what_it_was_made_of(run: Path, tmp_path: Path) -> None:
    figures = tmp_path / "solve.json"
    figures.write_text(json.dumps({"react": {"solved": 0.81, "interval": [0.7, 0.9]}, "odd|": "x"}))
    made = release(run, ReleaseOptions(figures=[figures]))
    path = run / "toolsrv-nano.q8_0.gguf"
    assert made.path == str(path)
    card = json.loads((run / "toolsrv-nano.q8_0.card.json").read_text())
    assert card["file"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() == made.sha256
    assert card["made"]["training"]["tokens_seen"] == 700
    assert card["made"]["held_out"] == LINE
    assert card["made"]["data"]["rows"] == 3
    assert card["made"]["data"]["plan"] == {"seed": 4}
    assert card["made"]["versions"]["training"]["torch"] == load("torch").__version__
    assert card["figures"]["solve"]["react"]["solved"] == 0.81
    assert card["made_sha256"] == made_hash(card["made"])
    told = fields(path)
    assert told[CARD_KEY] == card["made_sha256"]
    assert told["general.license"] == "Apache-2.0"
    assert "700 tokens seen" in told["general.description"]
    assert told["general.file_type"] == load("gguf").LlamaFileType.MOSTLY_Q8_0
    text = (run / "toolsrv-nano.q8_0.card.md").read_text()
    assert "| react.interval | [0.7, 0.9] |" in text
    assert "| odd\\| | x |" in text
    assert str(tmp_path) not in text + json.dumps(card)
    llama = BareLlama(path)
    assert np.isfinite(llama.logits([1, 5, 9])).all()
    llama.close()


def test_a_run_of_before_is_exported_with_its_rows(
    run: Path, tmp_path: Path, vocabulary: Vocabulary
) -> None:
    about = json.loads((run / ABOUT).read_text())
    for later in ("data", "versions", "machine"):
        del about[later]
    (run / ABOUT).write_text(json.dumps(about))
    (run / VOCABULARY).unlink()
    with pytest.raises(UsageError, match="no vocabulary of its own"):
        release(run, ReleaseOptions())
    vocabulary.save(tmp_path / VOCABULARY)
    made = release(run, ReleaseOptions(rows=tmp_path, name="other", type="F16"))
    card = json.loads(Path(made.card).read_text())
    assert card["made"]["name"] == "other"
    assert card["made"]["data"]["rows"] == 3


def test_what_cannot_be_exported_is_told(run: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    for content, said in (("[1]", "no JSON object"), ("{", "not JSON")):
        bad.write_text(content)
        with pytest.raises(DataError, match=said):
            release(run, ReleaseOptions(figures=[bad]))
    with pytest.raises(DataError, match="cannot read the figures"):
        release(run, ReleaseOptions(figures=[tmp_path / "none.json"]))
    with pytest.raises(NotFoundError, match="no finished training"):
        release(tmp_path, ReleaseOptions())
    make_vocabulary([[Segment("other")]], 320).save(tmp_path / VOCABULARY)
    with pytest.raises(DataError, match="the vocabulary has"):
        release(run, ReleaseOptions(rows=tmp_path))
    (run / "weights.safetensors").write_bytes(b"cut off")
    with pytest.raises(DataError, match="cannot read the weights"):
        release(run, ReleaseOptions())
    assert not list(run.glob("*.gguf*"))
    assert not list(run.glob(".export-*"))


def test_curves_of_one_run_and_of_several_sizes_are_drawn(run: Path, tmp_path: Path) -> None:
    second = tmp_path / "small"
    second.mkdir()
    lines = [LINE | {"step": step} for step in (200, 400)]
    (second / CURVE).write_text("".join(json.dumps(one) + "\n" for one in lines) + '{"st')
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    (tuned / "log.jsonl").write_text('{"step": 1, "loss": 3}\n{"step": 1, "dev_loss": 2}\n')
    one, other, third = (read_curve(folder) for folder in (run, second, tuned))
    assert len(other.entries) == 2
    draw_curves([one, other], tmp_path / "sizes.svg")
    text = (tmp_path / "sizes.svg").read_text()
    assert "run: width 64, 2 layers" in text
    assert "small" in text
    draw_curves([one], tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    none = one._replace(entries=({"step": 1},))
    draw_curves([none], tmp_path / "none.svg")
    draw_curves([third, third], tmp_path / "tuned.svg")
    with pytest.raises(UsageError, match="do not share"):
        draw_curves([one, third], tmp_path / "x.svg")
    with pytest.raises(UsageError, match="not the name of a picture"):
        draw_curves([one], tmp_path / "x.txt")
    with pytest.raises(NotFoundError, match="no learning curve"):
        read_curve(tmp_path)
