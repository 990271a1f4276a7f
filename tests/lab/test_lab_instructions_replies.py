"""What an engine is asked when it writes instructions, and what of its replies is taken."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions import replies
from toolsrv_lab.instructions.prompts import document, drawn_seeds, grammar, label, prompt, seeds
from toolsrv_lab.instructions.samples import Deck, Kind, Sample
from toolsrv_registry.api import Api
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_models import load_engine

APIS = load_offline_catalog().apis
SAMPLES = list(Deck(APIS).samples(1, 1))
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
TEXT = "My cousin gets married in Porto on the third of June and I still know nothing about it"


@pytest.fixture(scope="module")
def nano() -> Iterator[Engine]:
    engine, _ = load_engine(threads=1)
    yield engine
    engine.close()


def first(kind: Kind) -> Sample:
    return next(one for one in SAMPLES if one.kind == kind and len(one.apis) > 2)


def item(text: str, sample: Sample, count: int = 2) -> dict[str, Any]:
    named = [label(api, sample.kind) for api in sample.apis[:count]]
    return {"query": text, "relevant APIs": json.loads(json.dumps(named))}


# The prompt


@pytest.mark.parametrize("kind", ["tool", "collection"])
def test_the_seed_examples_keep_the_rules_that_the_prompt_states(kind: Kind) -> None:
    assert len(seeds(kind)) == 12
    for seed in seeds(kind):
        assert len(seed.query.split()) >= 30
        assert 2 <= len(set(seed.relevant)) == len(seed.relevant) <= 5
        assert len(seed.offered) == 1 if kind == "tool" else len(seed.offered) > 1
        for tool, api in seed.relevant:
            assert api in seed.offered[tool]
        for tool, apis in seed.offered.items():
            assert not [one for one in (tool, *apis) if " " in one and one in seed.query]


def test_documents_have_the_papers_fields() -> None:
    one = document(first("tool"), 400)
    assert set(one) == {"tool_description", "name", "api_list"}
    assert set(one["api_list"][0]) == {
        "name",
        "url",
        "description",
        "method",
        "required_parameters",
        "optional_parameters",
        "tool_name",
        "category_name",
    }
    several = document(first("category"), 400)
    assert [len(tool["api_list"]) for tool in several]
    assert len(json.dumps(document(first("tool"), 0))) < len(json.dumps(one))


def test_the_prompt_goes_through_the_models_chat_template(nano: Engine) -> None:
    sample = first("tool")
    shown = drawn_seeds("tool", random.Random(2))
    pieces = prompt(sample, shown, tasks=4, limit=100, template=CHATML)
    whole = "".join(piece.text for piece in pieces)
    assert whole.startswith("<|im_start|>system\n")
    assert whole.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert all(seed.query in whole for seed in shown)
    assert json.dumps(document(sample, 100), ensure_ascii=False) in whole
    # What a document spells stays text: only the template's own pieces may be control tokens.
    assert all("api_list" not in piece.text for piece in pieces if piece.special)
    assert nano.count(pieces) > 100


def test_a_template_that_does_not_work_is_told() -> None:
    with pytest.raises(ModelError):
        prompt(first("tool"), [], tasks=1, limit=0, template="{% if %}")


def test_the_grammar_lets_only_offered_names_through(nano: Engine) -> None:
    for kind in ("tool", "collection"):
        sample = first(kind)
        # A short text leaves room for the names.
        rules = grammar(sample, 1).replace('"maxLength": 1000', '"maxLength": 20')
        reply = nano.generate(
            prompt(sample.cut(1), drawn_seeds(kind, random.Random(0)), tasks=1, limit=0),
            grammar=rules,
            max_tokens=250,
        )
        assert reply.finish == "grammar"
        names = json.loads(reply.text)[0]["relevant APIs"]
        offered = [json.loads(json.dumps(label(api, kind))) for api in sample.apis]
        assert names
        assert all(name in offered for name in names)


# What of a reply is taken


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("What is it?", replies.TOO_SHORT),
        ("word " * 300, replies.TOO_LONG),
        ("go and go and go and go and go and go", replies.NO_SENTENCE),
        ("one two three four five six seven " + "x" * 61, replies.NO_SENTENCE),
        ("12 13 14 15 16 17 18 19 20 21 22", replies.NO_SENTENCE),
        ("tell me {the} things that I have to know about", replies.NO_SENTENCE),
        ("", replies.TOO_SHORT),
    ],
)
def test_a_text_that_nobody_would_say_is_left_out(text: str, reason: str) -> None:
    sample = first("tool")
    assert replies.judge(item(text, sample), sample, ()) == reason


def test_a_good_item_gives_a_clean_text_and_its_apis_once() -> None:
    for kind in ("tool", "category", "collection"):
        sample = first(kind)
        raw = item(f"  {TEXT}\u200b,\n\tplease ", sample, 3)
        raw["relevant APIs"] *= 2
        taken = replies.judge(raw, sample, ())
        assert isinstance(taken, replies.Taken)
        assert taken.text == f"{TEXT}, please"
        assert taken.apis == sample.apis[:3]


@pytest.mark.parametrize("named", [["Nothing"], [["a", "b"]], [[["a"]]], [{}], [1], [None]])
@pytest.mark.parametrize("kind", ["tool", "category"])
def test_apis_that_were_not_offered_are_left_out(named: list[object], kind: Kind) -> None:
    sample = first(kind)
    raw = {"query": TEXT, "relevant APIs": named}
    assert replies.judge(raw, sample, ()) == replies.NOT_OFFERED


@pytest.mark.parametrize(
    "raw", [None, [], "x", {}, {"query": TEXT}, {"query": 3, "relevant APIs": ["x"]},
            {"query": TEXT, "relevant APIs": []}, {"query": TEXT, "relevant APIs": "x"}],
)  # fmt: skip
def test_what_is_no_task_is_left_out(raw: object) -> None:
    assert replies.judge(raw, first("tool"), ()) == replies.NO_TASK


def test_one_api_is_too_few_only_where_several_tools_are_offered() -> None:
    several, one = first("collection"), first("tool")
    assert replies.judge(item(TEXT, several, 1), several, ()) == replies.TOO_FEW
    assert isinstance(replies.judge(item(TEXT, one, 1), one, ()), replies.Taken)


@pytest.mark.parametrize("name", ["getUser", "capital_city", "/v1/rates", "GET_videos-id", "a.b"])
def test_identifiers_are_not_said(name: str) -> None:
    api = Api(id="C/t/a", category="C", tool="t", name=name)
    sample = Sample("tool", (api,))
    text = f"{TEXT}, so call {name} for me"
    assert replies.judge(item(text, sample), sample, ()) == replies.IDENTIFIER
    assert isinstance(replies.judge(item(TEXT, sample), sample, ()), replies.Taken)


@pytest.mark.parametrize("name", ["Projects", "YouTube", "Current Time", "Search", "iPhone"])
def test_words_of_people_may_be_said(name: str) -> None:
    assert replies.is_identifier(name) == (name == "iPhone")  # nothing tells it from getUser


def test_a_seed_example_that_comes_back_is_left_out() -> None:
    sample, shown = first("tool"), seeds("tool")[:3]
    text = f"Hello! {shown[1].query}"
    assert replies.judge(item(text, sample), sample, shown) == replies.SEED


@given(
    st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers()), max_size=5),
    st.data(),
)
def test_a_reply_that_breaks_off_gives_its_whole_items(
    wanted: list[dict[str, Any]], data: st.DataObject
) -> None:
    text = json.dumps(wanted)
    assert replies.items(text) == (wanted, "")
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    found, fault = replies.items(cut)
    assert found == wanted[: len(found)]
    assert fault


@given(st.text())
def test_any_reply_is_read(text: str) -> None:
    found, fault = replies.items(text)
    assert found or fault or "]" in text
