"""``toolsrv model prompts``: ToolBench's sentences from a user's file, and what becomes of them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv_registry.errors import DataError
from toolsrv_runtime.toolbench import prompts
from toolsrv_runtime.toolbench.answer_files import read_answer
from toolsrv_runtime.toolbench.prompts import (
    OUR_SENTENCES,
    PROMPTS_FILE,
    Prompts,
    describe_prompts,
    read_prompts,
    stored_prompts,
    toolllama_system,
)

Run = Callable[..., Result]
EXAMPLES = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "examples.tar.gz"
WHOLE = "answer/G3_answer/15_ChatGPT_DFS_woFilter_w2.json"
OLDER = "answer/G1_answer/10_ChatGPT_DFS_woFilter_w2.json"
DIGESTS = json.loads(
    (Path(__file__).parents[1] / "runtime" / "data" / "toolllama_vectors.json").read_text()
)["groups"]["compat_string_digests"]["cases"][0]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not EXAMPLES.exists():
        pytest.skip("needs the example answer files of the shared data")
    folder = tmp_path_factory.mktemp("examples")
    with tarfile.open(EXAMPLES) as archive:
        for name in (WHOLE, OLDER):
            archive.extract(name, folder, filter="data")
    return folder


def test_the_digests_are_those_of_the_released_strings() -> None:
    known = {entry["sha256"] for entry in DIGESTS.values()}
    assert {prompts.BASE, prompts.HEAD, prompts.DIVERSITY, prompts.FINISH} <= known


def test_an_answer_file_gives_all_sentences(examples: Path) -> None:
    found = read_prompts(examples / WHOLE)
    assert found == found.checked()
    assert found.missing == ()
    assert found.summary == "ToolBench's own sentences"
    answer = read_answer(examples / WHOLE).answer_generation
    assert answer.train_messages is not None
    system = answer.train_messages[0][0].content or ""
    _, _, tools = system.partition(found.words.head)
    assert found.words.system(tools) == system
    assert len(f"{found.words.base}{{task_description}}") == 917


def test_a_training_file_gives_the_same(examples: Path, tmp_path: Path) -> None:
    answer = read_answer(examples / WHOLE).answer_generation
    assert answer.train_messages is not None
    turns = [
        {
            "from": one.role,
            "value": toolllama_system(one.content or "", answer.function)
            if one.role == "system"
            else one.content or "",
        }
        for one in answer.train_messages[-1]
    ]
    rows = [{"id": "Step 2: x", "conversations": turns}]
    path = tmp_path / "toolllama_G123_dfs_train.json"
    whole = json.dumps(rows, ensure_ascii=False, indent=4)
    path.write_text(whole[:-1] + ",\n    {cut off", encoding="utf-8")
    assert read_prompts(path) == read_prompts(examples / WHOLE)


def test_what_one_file_lacks_another_holds(run: Run, examples: Path, data_dir: Path) -> None:
    first = run("model", "prompts", str(examples / OLDER))
    assert first.exit_code == 0, first.stderr
    assert "does not hold the message about what was tried" in first.stderr
    assert "older data" in first.stderr
    assert stored_prompts(data_dir).missing == ("the message about what was tried",)
    second = run("model", "prompts", str(examples / WHOLE), "--json")
    assert json.loads(second.stdout) == {
        "path": str(data_dir / PROMPTS_FILE),
        "missing": [],
        "newest_finish": True,
    }
    again = run("model", "prompts", str(examples / OLDER), "--json")  # does not take it back
    assert json.loads(again.stdout)["newest_finish"] is True


def test_without_them_our_own_words_stand_and_say_so(tmp_path: Path) -> None:
    assert stored_prompts(tmp_path) == Prompts()
    assert Prompts().words == OUR_SENTENCES
    assert "our own wording" in describe_prompts(tmp_path)
    assert "toolsrv model prompts FILE" in describe_prompts(tmp_path)


def test_a_changed_store_is_refused_and_mended(examples: Path, tmp_path: Path) -> None:
    prompts.keep_prompts(tmp_path, read_prompts(examples / WHOLE))
    path = tmp_path / PROMPTS_FILE
    good = path.read_text("utf-8")
    for text in (good.replace("thought", "idea"), "{", ""):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=PROMPTS_FILE):
            stored_prompts(tmp_path)
        assert PROMPTS_FILE in describe_prompts(tmp_path)
    prompts.keep_prompts(tmp_path, read_prompts(examples / WHOLE))
    assert path.read_text("utf-8") == good


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        ("", "no JSON"),
        ("no json", "no JSON"),
        ("[]", "none of ToolBench's sentences"),
        ('[{"conversations": [{"value": 3}, 4]}, {"conversations": []}, 5]', "none of"),
        ('{"answer_generation": {}}', "no answer file"),
        ('{"a": 1}', "no answer file"),
    ],
)
def test_a_file_without_them_is_refused_plainly(
    run: Run, tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    done = run("model", "prompts", str(path))
    assert done.exit_code == (2 if content is None else 1)
    assert said in done.stderr
    assert "hint:" in done.stderr
