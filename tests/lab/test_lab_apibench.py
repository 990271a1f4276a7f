"""APIBench: calls matched by AST sub-trees, its files, retrievers, and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_lab.evaluation.apibench import PICK, PickResult, figures, pick
from toolsrv_lab.evaluation.apibench_calls import TEXT_LIMIT, Domain, calls, match, pattern
from toolsrv_lab.evaluation.apibench_data import (
    Corpus,
    corpus_file,
    questions_file,
    read_corpus,
    read_questions,
)
from toolsrv_lab.evaluation.apibench_retrieval import KINDS, Kind, catalog, retriever
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ToolCall
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.stop import Stop

SHARED = Path(__file__).parents[3] / "shared"
VECTORS = SHARED / "spec" / "toolbench_vectors.json"
DATA = SHARED / "data" / "apibench"


def entry(call: str, domain: str, name: str, description: str) -> dict[str, Any]:
    return {
        "domain": domain,
        "framework": "PyTorch",
        "functionality": domain,
        "api_name": name,
        "api_call": call,
        "api_arguments": {"pretrained": "True"},
        "description": description,
    }


APIS = [
    entry(
        "torch.hub.load(repo_or_dir='birds/nets', model='sparrow', pretrained=True)",
        "Image Classification", "sparrow", "Tells kinds of birds apart in a photograph.",
    ),
    entry(
        "torch.hub.load(repo_or_dir='birds/nets', 'main', model='sparrow_large')",
        "Image Classification", "sparrow_large", "The same with more layers.",
    ),
    entry(
        "torch.hub.load(repo_or_dir='voices/stt', model='listener', language='en')",
        "Speech-To-Text", "listener", "Writes down what is spoken in a recording.",
    ),
]  # fmt: skip


def code(instruction: str, *, style: str = "hashes") -> str:
    if style == "hashes":
        return f"###Instruction: {instruction}\n###Output: {{'api_call': 'torch.hub.load()'}}"
    return f"{{'Instruction': {instruction}, 'Output': {{'api_call': 'torch.hub.load()'}}}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of APIBench's names and forms."""
    place = tmp_path / "apibench"
    place.mkdir()
    lines = "".join(f"{json.dumps(one)}\n" for one in APIS)
    (place / "torchhub_api.jsonl").write_text(lines, "utf-8")
    questions = [
        {"code": code("Which bird is on my photo?"), "api_data": APIS[0]},
        {"code": code("Turn a talk into text.", style="dict"), "api_data": APIS[2]},
        {"instruction": "Name birds precisely.", "api_call": APIS[1]["api_call"]},
    ]
    lines = "".join(f"{json.dumps(one)}\n" for one in questions)
    (place / "torchhub_eval.json").write_text(lines, "utf-8")
    return place


@pytest.fixture
def corpus(folder: Path) -> Corpus:
    return read_corpus(corpus_file(folder, "torchhub"), "torchhub")


# ---------------------------------------------------------------- calls
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.hub.load('birds/nets', 'sparrow')", 0),
        ('model = torch.hub.load("birds/nets", model="sparrow", pretrained=False)', 0),
        ("import torch\nnet = torch.hub.load('voices/stt', 'listener').eval()", 2),
        ("torch.hub.load('birds/nets:v2', 'sparrow_large')", 0),  # the first that is held
        ("torch.hub.load('birds/nets', 'owl')", -1),
        ("torch.hub.load('others/nets', 'sparrow')", -1),
        ("torch.hub.get('birds/nets', 'sparrow')", -1),
        ("'torch.hub.load(birds/nets, sparrow)'", -1),  # a string calls nothing
        ("```python\ntorch.hub.load('birds/nets', 'sparrow')\n```", 0),
        ("torch.hub.load('voices/stt', model='listener', 'x')", 2),  # no Python, and a call
        ("torch.hub.load('birds/nets', 'sparrow'", 0),
        ("net.eval(torch.hub.load(birds/nets', 'sparrow').cuda(", 0),  # inside, and no Python
        ("load('a')\ntorch.hub.load('x', 'y')\ntorch.hub.load('voices/stt', 'listener')", 2),
        ("torch.hub.load('voices/stt', 'listener')\ntorch.hub.load('x', 'y')", -1),
        ("", -1),
        ("no API fits", -1),
    ],
)
def test_a_call_matches_by_function_and_identifying_arguments(
    corpus: Corpus, text: str, expected: int
) -> None:
    assert match(text, corpus.patterns) == expected


@pytest.mark.parametrize(
    ("domain", "api_call", "held"),
    [
        ("torchhub", "torch.hub.load(repo_or_dir='a/b', model='c', pretrained=True)", ("a/b", "c")),
        ("torchhub", "torch.hub.load('a/b', 'c')", None),
        ("huggingface", "pipeline('task', model='a/b', device=0)", ("task", "a/b", "0")),
        ("huggingface", "Model.from_pretrained('a/b').", ("a/b",)),
        ("huggingface", "Model()", None),
        ("tensorflowhub", "hub.KerasLayer('u/1', shape=[2, 3])", ("u/1", "shape=[2, 3]")),
        ("tensorflowhub", "hub.load(model='u/1')", ("u/1",)),
        ("huggingface", "./run.sh --download x", None),
    ],
)
def test_what_identifies_an_api_depends_on_the_domain(
    domain: Domain, api_call: str, held: tuple[str, ...] | None
) -> None:
    found = pattern(api_call, domain)
    assert (found.held if found else None) == held


@pytest.mark.parametrize(
    "text",
    ["-" * TEXT_LIMIT + "1", "f(" * 1500, "[" * 3000, "a" + ".a" * 1900, "x\0", "f('\\d')", "9" * 9999],
)  # fmt: skip
def test_a_hostile_text_is_parsed_within_limits_and_never_run(text: str) -> None:
    calls(text)


def test_nothing_that_a_model_writes_is_executed(tmp_path: Path, corpus: Corpus) -> None:
    written = tmp_path / "written"
    text = f"open({str(written)!r}, 'w').write('x'); torch.hub.load('birds/nets', 'sparrow')"
    assert match(text, corpus.patterns) == 0
    assert not written.exists()


@pytest.mark.parametrize("domain", ["torchhub", "tensorflowhub", "huggingface"])
@pytest.mark.skipif(not DATA.is_dir(), reason="APIBench's data are not at ../shared/data")
def test_the_calls_of_apibench_s_corpora_match_themselves(domain: Domain) -> None:
    corpus = read_corpus(corpus_file(DATA, domain), domain)
    found = [match(one.call, corpus.patterns) for one in corpus.apis]
    right = [
        at >= 0 and corpus.apis[at].domain == one.domain
        for at, one in zip(found, corpus.apis, strict=True)
    ]
    assert sum(right) / len(right) > 0.92  # some share a call, and a few are none


def test_the_vectors_of_the_specification() -> None:
    groups = json.loads(VECTORS.read_text("utf-8"))["groups"] if VECTORS.is_file() else {}
    cases = [
        case
        for name, group in groups.items()
        if name.startswith("apibench_")
        for case in group["cases"]
    ]
    if not cases:
        pytest.skip("the vectors at ../shared/spec have no group apibench_*")
    for case in cases:
        if not {"domain", "corpus", "response", "index"} <= case.keys():
            pytest.skip(f"a vector has {sorted(case)}, not domain, corpus, response and index")
        patterns = [pattern(str(one), case["domain"]) for one in case["corpus"]]
        assert match(case["response"], patterns) == case["index"], case


# ---------------------------------------------------------------- files
def test_questions_are_read_without_their_answers(folder: Path, corpus: Corpus) -> None:
    found = read_questions(questions_file(folder, "torchhub"), corpus)
    assert [one.text for one in found] == [
        "Which bird is on my photo?",
        "Turn a talk into text.",
        "Name birds precisely.",
    ]
    assert [one.api.call for one in found] == [APIS[at]["api_call"] for at in (0, 2, 1)]
    assert [one.id for one in found] == ["1", "2", "3"]


def test_gorilla_s_own_folders_are_understood(folder: Path) -> None:
    for name in ("api", "apibench"):
        (folder / name).mkdir()
    (folder / "torchhub_api.jsonl").rename(folder / "api" / "tensorflowhub_api.jsonl")
    (folder / "torchhub_eval.json").rename(folder / "apibench" / "tensorflow_eval.json")
    assert corpus_file(folder, "tensorflowhub").parent.name == "api"
    assert questions_file(folder, "tensorflowhub").name == "tensorflow_eval.json"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: not an object"),
        ('{"code": "###Instruction: x", "api_data": {}}', "no API with api_call and domain"),
        ('{"instruction": "x", "api_call": "unknown()"}', "line 1: no API of the corpus"),
        (json.dumps({"code": "nothing", "api_data": APIS[0]}), "line 1: no instruction"),
        ("", "has no questions"),
        (
            json.dumps({"instruction": "x", "api_data": APIS[0] | {"api_call": "pipeline('y')"}}),
            "asks for no API of torchhub",
        ),
    ],
)
def test_a_damaged_set_is_told_with_its_line(
    folder: Path, corpus: Corpus, line: str, said: str
) -> None:
    path = folder / "torchhub_eval.json"
    path.write_text(f"{line}\n", "utf-8")
    with pytest.raises(DataError, match=said):
        read_questions(path, corpus)


def test_a_missing_corpus_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="huggingface_api"):
        corpus_file(tmp_path, "huggingface")


# ---------------------------------------------------------------- retrievers
@pytest.mark.parametrize("kind", KINDS)
def test_retrievers_give_what_fits_best_first(folder: Path, corpus: Corpus, kind: Kind) -> None:
    talk = read_questions(questions_file(folder, "torchhub"), corpus)[1]
    talk = type(talk)(talk.id, "Write down what is spoken in a talk.", talk.api)
    with retriever(kind, corpus, 2) as retrieve:
        found = [one.call for one in retrieve(talk)]
    expected = {"ours": 2, "bm25": 2, "oracle": 1, "none": 0}[kind]
    assert len(found) == len(set(found)) == expected
    assert not found or found[0] == APIS[2]["api_call"]


def test_a_call_that_is_listed_twice_is_one_document(folder: Path) -> None:
    path = corpus_file(folder, "torchhub")
    path.write_text(path.read_text("utf-8") * 2, "utf-8")
    corpus = read_corpus(path, "torchhub")
    question = read_questions(questions_file(folder, "torchhub"), corpus)[0]
    with retriever("bm25", corpus, 5) as retrieve:
        assert len(retrieve(question)) == 3
    assert len({api.id for api in catalog(corpus).apis}) == 6


# ---------------------------------------------------------------- picks
def picked(call: str) -> ToolCall:
    return ToolCall(PICK, {"api_call": call})


@pytest.mark.parametrize(
    ("said", "outcome", "same"),
    [
        (picked("torch.hub.load('birds/nets', 'sparrow')"), "right", True),
        (picked("torch.hub.load('voices/stt', 'listener')"), "wrong", False),
        (picked("torch.hub.load('birds/nets', 'owl')"), "hallucinated", False),
        (picked(" "), "none", False),
        ("I do not know.", "none", False),
    ],
)
def test_a_pick_is_right_wrong_hallucinated_or_none(
    folder: Path, corpus: Corpus, said: ScriptedReply, outcome: str, same: bool
) -> None:
    question = read_questions(questions_file(folder, "torchhub"), corpus)[0]
    model = ScriptedChat([said])
    found = pick(model, question, corpus.apis[:1], corpus, stop=Stop())
    assert found is not None
    assert (found.outcome, found.same, found.shown) == (outcome, same, True)
    (asked,) = model.requests
    assert asked.expected.names == (PICK,)
    assert "Which bird" in asked.messages[1].text
    assert APIS[0]["api_call"] in asked.messages[1].text


class Narrow(ScriptedChat):
    """A model with room for so many words."""

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        assert self.context is not None
        if self.count(request) > self.context:
            raise ContextError("the prompt does not fit", hint="a larger context")
        return super().reply(request, stop=stop)


def test_documents_that_do_not_fit_are_left_out(folder: Path, corpus: Corpus) -> None:
    question = read_questions(questions_file(folder, "torchhub"), corpus)[0]
    model = Narrow([picked("torch.hub.load('birds/nets', 'sparrow')")], context=100)
    found = pick(model, question, corpus.apis, corpus, stop=Stop())
    assert found is not None
    assert 0 < found.documents < 3
    with pytest.raises(ContextError) as told:
        pick(Narrow([""], context=5), question, corpus.apis, corpus, stop=Stop())
    assert "longer context" in told.value.hint  # there is no --candidates here


def test_figures_are_shares_of_all_questions() -> None:
    def one(outcome: Any, same: bool = False) -> PickResult:
        return PickResult(
            id="1", call="", matched=0, outcome=outcome, same=same, shown=False, documents=0,
            problem="", seconds=1.0, prompt_tokens=2, generated=3,
        )  # fmt: skip

    found = figures([one("right", True), one("right"), one("hallucinated"), one("none")])
    assert (found.accuracy.count, found.accuracy.of) == (2, 4)
    assert (found.hallucination.count, found.no_call.count, found.same_api.count) == (1, 1, 1)


# ---------------------------------------------------------------- the command
def invoke(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, said: Sequence[Any], *words: str
) -> Result:
    script = tmp_path / "script.json"
    replies = [
        one if isinstance(one, str) else {"function": one.name, "arguments": one.arguments}
        for one in said
    ]
    script.write_text(json.dumps({"replies": replies}), "utf-8")
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    shared = ["--model", f"scripted:{script}", "--domain", "torchhub", "--data", str(folder)]
    return CliRunner().invoke(cli, ["lab", "eval", "apibench", *shared, *words])


def test_the_command_goes_on_after_what_it_has(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bird, talk = (
        picked("torch.hub.load('birds/nets', 'sparrow')"),
        picked("torch.hub.load('voices/stt', 'listener')"),
    )
    words = ["--retriever", "none,oracle", "--out", str(tmp_path / "out")]
    cut = invoke(monkeypatch, tmp_path, folder, [bird, bird, picked("load()")], *words)
    assert cut.exit_code == 1, cut.output
    assert "3 results are kept" in cut.output
    rest = [talk, bird, bird]
    shown = invoke(monkeypatch, tmp_path, folder, rest, *words)
    assert shown.exit_code == 0, shown.output
    for text in ("3/3 = 100", "2/3 = 67", "1/3 = 33", "oracle"):
        assert text in shown.stdout
    again = invoke(monkeypatch, tmp_path, folder, ["nobody asks"], *words, "--json")
    assert again.exit_code == 0, again.output
    report = json.loads(again.stdout)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["retrievers"]["none"]["accuracy"]["count"] == 3
    assert report["retrievers"]["oracle"]["hallucination"]["count"] == 1
    other = invoke(monkeypatch, tmp_path, folder, [bird], *words, "--documents", "2")
    assert other.exit_code == 1
    assert "other settings: documents" in other.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--retriever", "dense"], 2, "there is no 'dense'"),
        (["--data", "nowhere"], 2, "torchhub_api.jsonl"),
        (["--model", "nano"], 2, "no tool calls"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    said: str,
) -> None:
    found = invoke(monkeypatch, tmp_path, folder, ["x"], *words)
    assert said in found.output
    assert found.exit_code == code, found.output
    assert "Traceback" not in found.output
