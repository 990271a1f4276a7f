"""From answers and episodes to a trained chat model, by the commands of the laboratory."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import gguf
import pytest
from click.testing import Result
from tests.annotation import APIS, OPTIONS, solve

from toolsrv_lab.annotation.annotators import OracleAnnotator
from toolsrv_lab.annotation.assignments import from_errands
from toolsrv_lab.conversations import rendering
from toolsrv_lab.conversations.build import teller
from toolsrv_lab.finetune.chat_run import check_base, check_rows
from toolsrv_lab.training_data.chat_rows import episode_of
from toolsrv_lab.training_data.compact import UnfitError
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.registry import Registry
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.gguf_models import SHIPPED_MODELS
from toolsrv_runtime.toolbench.answer_files import read_answer

SMALL = SHIPPED_MODELS["small"]
"""A GGUF file with the vocabulary and the template that conversations are written for."""

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def answers(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer files of a dozen errands, some with mistakes."""
    out = tmp_path_factory.mktemp("annotated") / "answers"
    annotator = OracleAnnotator(OPTIONS, mistakes=0.2, offered=7)
    solve(registry, out, list(islice(from_errands(APIS.keys(), 1), 12)), annotator)
    return out


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "tiny"
    return Path(convert(write_tiny_checkpoint(folder, tie_word_embeddings=True)).path)


def test_answers_become_conversations_in_the_models_own_syntax(
    run: Run, answers: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.xz"
    done = run("convert", answers, "--format", "chat", "--base", SMALL, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["episodes"] + len(made["left_out"]) >= 12
    assert made["episodes"] >= 6
    assert made["rows"] >= made["episodes"]
    assert 0 < made["learnt"] < made["tokens"]
    check_rows(out)


def test_a_conversation_has_the_calls_the_responses_and_the_answer(answers: Path) -> None:
    import random  # noqa: PLC0415 - for this test alone

    by = rendering.tokenizer(SMALL)
    seen = 0
    for path in sorted(answers.glob("*_DFS_*.json")):
        try:
            episode = episode_of(read_answer(path), "2026-11-27")
        except UnfitError:
            continue
        if not episode.steps:
            continue
        seen += 1
        row = next(iter(teller().rows(episode, random.Random(1))))
        told = "".join(text for text, _ in row.pieces)
        learnt = "".join(text for text, learn in row.pieces if learn)
        assert episode.task in told
        assert episode.task not in learnt
        assert episode.steps[-1].name in learnt
        assert episode.answer in learnt
        ids, mask = rendering.token_ids(row, by)
        assert len(ids) == len(mask)
    assert seen >= 5


@pytest.mark.nightly
def test_episodes_are_written_and_become_rows(run: Run, tmp_path: Path) -> None:
    episodes, rows = tmp_path / "a.jsonl", tmp_path / "rows.xz"
    done = run("conversations", "services-a", "--count", "12", "--out", episodes, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["conversations"] == 12
    first = json.loads(episodes.read_text("utf-8").splitlines()[0])
    judged = tmp_path / "judged.jsonl"
    judged.write_text(json.dumps({"task": first["task"]}) + "\n", "utf-8")
    words = ("convert", episodes, "--format", "chat", "--base", SMALL, "--out", rows, "--json")
    whole = json.loads(run(*words).stdout)
    rest = json.loads(run(*words, "--judged", judged).stdout)
    assert whole["episodes"] == rest["episodes"] == 12
    assert rest["rows"] < whole["rows"]
    assert [one["file"] for one in rest["left_out"]] == ["line 1"]


def test_talk_is_written_too(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "talk.jsonl"
    assert run("conversations", "talk", "--count", "5", "--out", out).exit_code == 0
    assert all(json.loads(line)["reply"] for line in out.read_text("utf-8").splitlines())


def test_a_gguf_file_is_trained_and_goes_on(run: Run, base: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `lab`")
    row = [1, 40, 300, 41, 301, 42, 302, 43, 303, 44, 304, 2]
    data = [tmp_path / "a.xz", tmp_path / "b.xz"]
    for path in data:
        rendering.write_ids(iter([(row, [at > 2 for at in range(len(row))])] * 300), path)
    words = ["train", "model", "--base", base, "--data", data[0], "--data", data[1]]
    words += ["--minutes", "5", "--step-tokens", "1024", "--epochs", "1", "--learning-rate", "0.01"]
    done = run(*words, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["steps"] > 0
    model = Path(made["model"])
    assert gguf.GGUFReader(model).fields["toolsrv.profile"].contents() == "small"
    again = run(*words, "--out", tmp_path / "more", "--start", tmp_path / "run", "--json")
    assert json.loads(again.stdout)["loss"] < made["loss"] + 0.05


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("convert", "{answers}", "--format", "chat", "--out", "o"), "--base"),
        (("convert", "{answers}", "--format", "chat", "--base", "none", "--out", "o"), "none"),
        (("convert", "{answers}", "--format", "chat", "--base", "{text}", "--out", "o"), "GGUF"),
        (("convert", "{answers}", "--format", "chat", "--base", "{base}", "--out", "o"), "known"),
        (("convert", "{answers}", "--base", "{base}", "--out", "o"), "--format chat"),
        (("convert", "", "--out", "o"), "empty"),
        (("train", "model", "--base", "{base}", "--data", "none", "--minutes", "1", "--out", "o"), "none"),
        (("train", "model", "--base", "{base}", "--data", "{text}", "--minutes", "1", "--out", "o"), "no file of rows"),
        (("train", "model", "--base", "{base}", "--data", "{text}", "--out", "o"), "--minutes"),
        (("train", "model", "--base", "{text}", "--data", "{text}", "--minutes", "1", "--out", "o"), "GGUF"),
        (("train", "model", "--base", "{base}", "--data", "{text}", "--lora", "--out", "o"), "--lora"),
        (("train", "model", "--rows", "r", "--minutes", "1", "--out", "o"), "--minutes"),
        (("conversations", "nope", "--out", "o"), "nope"),
        (("conversations", "needs", "--out", "o"), "--toolenv"),
        (("conversations", "needs", "--toolenv", "none", "--out", "o"), "none"),
        (("conversations", "talk", "--toolenv", "{text}", "--out", "o"), "--toolenv"),
        (("report", "requests", "none"), "none"),
    ],
)  # fmt: skip
def test_wrong_uses_are_told_in_one_line(
    run: Run, base: Path, tmp_path: Path, words: tuple[str, ...], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("hello\n")
    names = {"answers": tmp_path, "text": tmp_path / "text.txt", "base": base}
    done = run(*(one.format(**names) for one in words))
    assert done.exit_code == 2, done.output
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("error: ")]
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert line


def test_a_base_that_is_computed_otherwise_is_refused(tmp_path: Path) -> None:
    untied = Path(convert(write_tiny_checkpoint(tmp_path / "untied")).path)
    with pytest.raises(ToolsrvError, match="weights of its own"):
        check_base(untied)
