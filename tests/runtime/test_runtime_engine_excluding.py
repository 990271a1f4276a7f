"""Replies that must not be given again: where they are left, and what is never said."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from toolsrv_runtime.contract.models import Piece, Sampling
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.sampling import (
    AlternativePrefixes,
    ReplyPrefix,
    TokenChoice,
    ValuePlaces,
    token_choice,
)
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.gguf_models import SHIPPED_MODEL

ASK = (Piece("User: the weather\nAssistant: ", special=True),)
COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
TEXT = b'<tool_call>\n{"name": "sky", "arguments": {"city": "Tokyo", "day": 12, "dry": true}}'


@pytest.fixture(scope="module")
def chat(tiny_chat: Path) -> Iterator[LlamaEngine]:
    engine = LlamaEngine(tiny_chat, context=512, threads=1)
    yield engine
    engine.close()


def call(schema: dict[str, object]) -> str:
    whole = {"type": "object", "properties": schema, "required": list(schema)}
    said = json.dumps({**whole, "additionalProperties": False, "x-guidance": COMPACT})
    return f"start: %json {said}\n"


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("model", ["tiny", "shipped"])
def test_what_is_excluded_is_never_said_until_nothing_is_left(
    model: str, temperature: float, tiny_chat: Path
) -> None:
    engine = LlamaEngine(tiny_chat if model == "tiny" else SHIPPED_MODEL, context=512, threads=1)
    cities, units = ["Oslo", "Osaka", "Lima"], ["C", "F"]
    grammar = call({"city": {"enum": cities}, "unit": {"enum": units}})
    said: list[str] = []
    for seed in range(6):
        reply = engine.generate(
            ASK,
            grammar=grammar,
            max_tokens=80,
            sampling=Sampling(temperature, 1.0, seed),
            excluded=said,
        )
        assert reply.finish == "grammar"
        said.append(reply.text)
    assert {tuple(json.loads(one).values()) for one in said} == set(
        itertools.product(cities, units)
    )
    with pytest.raises(GrammarError, match="excluded"):
        engine.generate(ASK, grammar=grammar, max_tokens=80, excluded=said)
    engine.close()


def test_the_first_other_reply_is_the_likelier_of_two(chat: LlamaEngine) -> None:
    grammar = 'start: "a" | "b" | "c"\n'
    order: list[str] = []
    for _ in range(3):
        order.append(chat.generate(ASK, grammar=grammar, max_tokens=8, excluded=order).text)
    scores = dict(zip("abc", chat.score(ASK, ["a", "b", "c"]).values, strict=True))
    assert order == sorted("abc", key=lambda one: -scores[one])


def test_blanks_around_an_excluded_text_do_not_count(chat: LlamaEngine) -> None:
    grammar = 'start: "a" | "b"\n'
    first = chat.generate(ASK, grammar=grammar, max_tokens=8).text
    other = chat.generate(ASK, grammar=grammar, max_tokens=8, excluded=[f"\n{first} "]).text
    assert {first, other} == {"a", "b"}


def test_another_string_is_no_near_duplicate(chat: LlamaEngine) -> None:
    grammar = call({"city": {"type": "string", "maxLength": 8}})
    said: list[str] = []
    for _ in range(6):
        reply = chat.generate(ASK, grammar=grammar, max_tokens=60, excluded=said)
        said.append(reply.text)
    cities = [json.loads(one)["city"] for one in said]
    plain = ["".join(filter(str.isalnum, one)).casefold() for one in cities]
    assert len(set(plain)) == len(said), cities


def test_going_back_evaluates_no_prompt_again(chat: LlamaEngine) -> None:
    long = (Piece("x y z " * 40), *ASK)
    grammar = call({"city": {"enum": ["Oslo", "Lima"]}})
    first = chat.generate(long, grammar=grammar, max_tokens=60)
    other = chat.generate(long, grammar=grammar, max_tokens=60, excluded=[first.text])
    assert other.text != first.text
    assert other.evaluated < 60 < first.prompt_tokens


def test_without_values_the_reply_ends_otherwise(chat: LlamaEngine) -> None:
    grammar = 'start: "ab" "c"?\n'
    both = [chat.generate(ASK, grammar=grammar, max_tokens=8).text]
    both.append(chat.generate(ASK, grammar=grammar, max_tokens=8, excluded=both).text)
    assert sorted(both) == ["ab", "abc"]
    with pytest.raises(GrammarError):
        chat.generate(ASK, grammar=grammar, max_tokens=8, excluded=both)


def at(word: bytes) -> tuple[int, int]:
    begin = TEXT.index(word)
    return begin, begin + len(word)


@pytest.mark.parametrize(
    ("token", "others"),
    [
        (b"Tokyo", {b"Osaka": True, b"tokyo": False, b" Tok": False, b'"': False, b" ": False}),
        (b"kyo", None),  # within a string
        (b"12", {b"13": True, b"}": False, b",": False}),
        (b"true", {b"false": True}),
        (b"city", None),  # a key
        (b', "day', None),
    ],
)
def test_where_a_text_can_be_left(token: bytes, others: dict[bytes, bool] | None) -> None:
    free = ValuePlaces(TEXT).free(*at(token), forced=False, few=False)
    if others is None:
        assert free is None
    else:
        assert free is not None
        assert {one: free(one) for one in others} == others


def test_of_a_date_a_digit_differs_and_of_a_listed_value_any_part() -> None:
    text = b'{"day": "2026-05-12", "unit": "celsius"}'
    places, day, unit = ValuePlaces(text), text.index(b"12"), text.index(b"sius")
    free = places.free(day + 1, day + 2, forced=False, few=False)
    assert free is not None
    assert [free(one) for one in (b"3", b'"', b" ")] == [True, False, False]
    assert places.free(unit, unit + 4, forced=False, few=False) is None
    assert places.free(unit, unit + 4, forced=False, few=True) is not None


def test_a_call_that_is_no_json_is_left_behind_forced_text() -> None:
    text = b"<function=sky>\n<parameter=city>\nTokyo\n</parameter>"
    begin = text.index(b"Tokyo")
    free = ValuePlaces(text).free(begin, begin + 5, forced=True, few=False)
    assert free is not None
    assert free(b"Oslo")
    assert not free(b"Tokyo ")


def test_ways_are_taken_likeliest_first() -> None:
    names = {1: b'{"a": "', 2: b"x", 3: b"y", 4: b'"}', 5: b"z"}
    turns = AlternativePrefixes(lambda tokens: b"".join(names[one] for one in tokens))
    turns.add(
        ReplyPrefix((), 0.0),
        (1, 2, 4),
        [TokenChoice(1, -0.5, ((3, -2.0), (5, -1.0), (4, -0.1)), 99)],
    )
    found = [turns.next() for _ in range(4)]
    # The closing quote makes no other value: it comes when nothing else is left.
    assert found == [
        ReplyPrefix((1, 5), -1.0),
        ReplyPrefix((1, 3), -2.0),
        ReplyPrefix((1, 4), -0.1),
        None,
    ]


def test_a_choice_is_noted_among_the_allowed_tokens() -> None:
    row = np.array([0.0, 5.0, 1.0, 2.0], dtype=np.float32)
    noted = token_choice(row, np.array([True, False, True, True]), 3, 7)
    assert (noted.at, noted.allowed, [token for token, _ in noted.others]) == (7, 3, [2, 0])
    total = np.exp(noted.likely) + sum(np.exp(value) for _, value in noted.others)
    assert total == pytest.approx(1.0)


def test_a_script_passes_over_what_is_excluded() -> None:
    engine = ScriptedEngine(["a", "b", "c"])
    said = engine.generate(ASK, grammar="", max_tokens=1, excluded=["a", "b"])
    assert said.text == "c"
    with pytest.raises(GrammarError):
        ScriptedEngine(["a"], loop=True).generate(ASK, grammar="", max_tokens=1, excluded=["a"])
