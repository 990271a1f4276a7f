"""Fine-tuning a chat model: rows come back as written, the loss falls, the parts make a file that loads."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from toolsrv_lab.conversations import rendering
from toolsrv_lab.extras import load
from toolsrv_lab.finetune.chat_run import assemble, similar_tokens
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

pytest.importorskip("torch", reason="needs the extra `lab`")

chat_training = load("toolsrv_lab.finetune.chat_training")
BareLlama = runpy.run_path(str(Path(__file__).parents[1] / "bare_llama.py"))["BareLlama"]
ROW = [1, 40, 300, 41, 301, 42, 302, 43, 303, 44, 304, 2]
OTHER = [1, 60, 310, 61, 311, 62, 2]
TEMPLATE = "{% for one in messages %}{{ one.content }}{% endfor %}"


def rows(count: int) -> list[tuple[list[int], list[bool]]]:
    """Return rows of two kinds, whose first three tokens are not learnt."""
    chosen = [ROW if at % 3 else OTHER for at in range(count)]
    return [(ids, [at > 2 for at in range(len(ids))]) for ids in chosen]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LLaMA of two layers whose logits are read off its embeddings."""
    folder = tmp_path_factory.mktemp("base") / "tiny"
    return Path(convert(write_tiny_checkpoint(folder, tie_word_embeddings=True)).path)


@pytest.mark.parametrize("seed", range(3))
def test_q4_0_is_read_by_gguf_as_it_was_trained(seed: int) -> None:
    torch = load("torch")
    weights = torch.randn(6, 64, generator=torch.Generator().manual_seed(seed))
    weights[0, :32] = 0
    weights[1] *= 1e-3
    raw = np.frombuffer(chat_training.q4_0_bytes(weights), np.uint8).reshape(6, -1)
    read = gguf.dequantize(raw, gguf.GGMLQuantizationType.Q4_0)
    assert read.shape == (6, 64)
    np.testing.assert_array_equal(read, chat_training.q4_0(weights).numpy())
    given = weights.numpy().reshape(-1, 32)
    away = np.abs(read.reshape(-1, 32) - given).max(1)
    assert (away <= np.abs(given).max(1) / 7).all()


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = [*rows(5), ([448 * 100, 7], [True, False])]
    file = tmp_path / "rows.xz"
    counts = rendering.write_ids(written, file)
    read = chat_training.read_rows(file)
    assert [(ids.tolist(), learnt.tolist()) for ids, learnt in read] == written
    assert counts == {
        "rows": 6,
        "tokens": sum(len(ids) for ids, _ in written),
        "learnt": sum(sum(learnt) for _, learnt in written),
    }


def train(
    base: Path, folder: Path, patch: pytest.MonkeyPatch, *more: str, count: int = 600
) -> dict[str, Any]:
    data = folder / "rows.xz"
    rendering.write_ids(rows(count), data)
    said = ("--base", base, "--data", data, "--out", folder / "out", "--minutes", 5, *more)
    patch.setattr(sys, "argv", ["chat_training.py", *map(str, said)])
    chat_training.main()
    value: dict[str, Any] = json.loads((folder / "out" / "blocks.json").read_text())
    return value


def likelihood(path: Path, row: list[int]) -> float:
    """Return the mean negative log-likelihood of a row's learnt tokens, as llama.cpp has it."""
    model = BareLlama(path)
    scores = model.logits(row)
    model.close()
    scores -= scores.max(1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return float(-np.mean([logs[at - 1, row[at]] for at in range(3, len(row))]))


def test_training_lowers_the_loss_and_its_parts_make_a_file_that_loads(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(chat_training, "PIECE", 1_000)
    options = ("--tokens", "1024", "--epochs", "8", "--rate", "1e-2")
    made = train(base, tmp_path, monkeypatch, *options)
    out = capsys.readouterr().out
    before = float(out.partition("; held ")[2].partition(";")[0])
    after = made["log"]["steps"][-1]
    assert after["type"] == "Q4_0"
    assert after["held"] < before / 4
    assert len(list((tmp_path / "out").glob("blocks.part*"))) > 10

    file = tmp_path / "tuned.gguf"
    assemble(base, tmp_path / "out", file, template=TEMPLATE, name="tuned", profile="small")
    reader = gguf.GGUFReader(file)
    assert reader.fields["toolsrv.profile"].contents() == "small"
    assert reader.fields["tokenizer.chat_template"].contents() == TEMPLATE
    assert reader.fields["general.name"].contents() == "tuned"
    kinds = {one.name: one.tensor_type.name for one in reader.tensors}
    assert kinds["blk.1.ffn_down.weight"] == "Q4_0"
    assert kinds["output_norm.weight"] == "F32"
    bases = {one.name: one for one in gguf.GGUFReader(base).tensors}
    embeddings = next(one for one in reader.tensors if one.name == "token_embd.weight")
    assert embeddings.tensor_type == bases["token_embd.weight"].tensor_type
    np.testing.assert_array_equal(embeddings.data, bases["token_embd.weight"].data)
    for row in (ROW, OTHER):  # what was trained is what llama.cpp computes
        assert likelihood(file, row) < likelihood(base, row) / 4


def test_parts_that_are_not_whole_are_refused(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(base, tmp_path, monkeypatch, "--epochs", "0.1", count=420)
    part = tmp_path / "out" / "blocks.part0"
    part.write_bytes(part.read_bytes() + b"more")
    with pytest.raises(ValueError, match="are listed"):
        assemble(base, tmp_path / "out", tmp_path / "x.gguf", template="", name="", profile="")


class Field:
    """An entry of a GGUF file's header."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def contents(self) -> Any:
        return self._value


def test_twins_of_control_tokens_that_a_template_writes_are_found_but_none_that_is_in_use() -> None:
    tokens_and_kinds = [("<s>", 3), ("<a>", 3), ("<b>", 3), ("<c>", 3), ("word", 1), ("alike", 1)]
    fields = {
        "tokenizer.ggml.tokens": Field([one for one, _ in tokens_and_kinds]),
        "tokenizer.ggml.token_type": Field([one for _, one in tokens_and_kinds]),
        "tokenizer.ggml.bos_token_id": Field(0),
    }
    same, other = [1.0, 2.0, 0.01], [2.0, -1.0, 0.0]
    embeddings = np.array([same, same, same, same, other, same], np.float32)
    assert similar_tokens(fields, embeddings, "{{ x }}<a>") == [2, 3, 5]
    assert similar_tokens(fields, embeddings, "<a>{{ x }}<b>") == [3, 5]  # two that are used stay
    assert similar_tokens(fields, embeddings, "word, <s>") == []
