"""Instructions from API documents: readings, wording, sampling, files."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.needs import intents, openings, slots, synonyms, topic
from toolsrv_lab.instructions.samples import groups
from toolsrv_lab.instructions.values import spoken_value
from toolsrv_lab.instructions.writer import is_held_out, write_instructions
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import UsageError
from toolsrv_registry.words import content_words, stems

APIS = load_offline_catalog().apis


def api(name: str, description: str = "", tool: str = "Some Tool") -> Api:
    return Api(id="C/t/a", category="C", tool=tool, name=name, description=description)


@pytest.mark.parametrize(
    ("name", "description", "kind", "thing"),
    [
        ("x", "This endpoint returns the weather of a city.", "get", "weather of a city"),
        ("x", "Use this API to convert euros into dollars", "convert", "euros into dollars"),
        ("x", "Allows you to check if an email is valid", "check", "if an email is valid"),
        ("getUserById", "", "get", "user by id"),
        ("GET_videos-videoId-captions", "", "get", "videos video id captions"),
        ("x", "<b>Current</b> odds of all matches", "get", "Current odds of all matches"),
    ],
)
def test_what_an_api_does_is_read_from_its_words(
    name: str, description: str, kind: str, thing: str
) -> None:
    first = intents(api(name, description))[0]
    assert (first.kind, first.thing) == (kind, thing)


def test_a_tools_topic_leaves_out_what_says_nothing() -> None:
    assert topic(api("x", tool="Weather-api_v2 2")) == "weather"


@given(st.text(max_size=200), st.text(max_size=300), st.text(max_size=80), st.integers(0, 99))
@example("", "0000", "000A", 45)
def test_any_document_gives_a_text(name: str, description: str, tool: str, seed: int) -> None:
    odd = api(name, description, tool)
    text = compose([odd, odd], random.Random(seed)).text
    assert text == " ".join(text.split())


@given(st.text(max_size=30), st.sampled_from(["STRING", "NUMBER", "DATE", ""]), st.integers(0, 99))
def test_any_parameter_gets_a_value(name: str, kind: str, seed: int) -> None:
    assert spoken_value(Parameter(name=name, type=kind), random.Random(seed))


def test_the_same_seed_gives_the_same_text_and_another_another() -> None:
    texts = [compose(APIS[:3], random.Random(seed)).text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_texts_differ_in_words_form_and_length() -> None:
    rng = random.Random(0)
    texts = [compose(members, rng).text for members in groups(APIS, 3, rng)]
    assert len(set(texts)) > 0.99 * len(texts)
    starts = Counter(" ".join(text.lower().split()[:3]) for text in texts)
    assert starts.most_common(1)[0][1] < 0.05 * len(texts)
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[len(lengths) // 20] < 20
    assert lengths[-len(lengths) // 20] > 60
    ends = Counter(text[-1] for text in texts)
    assert min(ends["?"], ends["."]) > 0.1 * len(texts)


def test_a_good_part_of_the_texts_keeps_away_from_the_words_of_the_document() -> None:
    rng = random.Random(0)
    shares = []
    for one in APIS:
        asked = stems(content_words(compose([one], rng).text))
        words = stems(content_words(f"{one.name} {one.description}"))
        shares.append(len(asked & words) / len(words))
    assert sum(share < 0.5 for share in shares) > 0.2 * len(shares)


def test_every_api_leads_once_a_round() -> None:
    members = list(groups(APIS, 2, random.Random(3)))
    assert len(members) == 2 * len(APIS)
    used = Counter(one.id for group in members for one in group)
    assert set(used) == {one.id for one in APIS}
    assert all(len({one.id for one in group}) == len(group) <= 5 for group in members)


def test_the_word_lists_are_whole() -> None:
    known = slots()
    for lines in openings().values():
        for line in lines:
            wanted = {part.split("}")[0] for part in line.split("{")[1:]}
            assert wanted <= {*known, "place"}
    for word, others in synonyms().items():
        assert word not in others
        assert all(word in synonyms()[other] for other in others)


def test_a_file_of_instructions_reads_as_queries_and_repeats(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for path in (one, two):
        assert write_instructions(APIS[:20], path, rounds=2, seed=5) == 40
    assert one.read_bytes() == two.read_bytes()
    queries = read_queries(one)
    assert len(queries) == 40
    assert {i for query in queries for i in query.relevant_ids} == {a.id for a in APIS[:20]}
    assert json.loads(one.read_text().splitlines()[0])["relevant"][0]["tool"]
    assert not list(tmp_path.glob(".*"))


def test_no_api_no_instructions(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_instructions([], tmp_path / "x", rounds=1, seed=0)


def test_tools_are_held_out_whole() -> None:
    for share in (0.0, 0.3, 1.0):
        held: dict[str, set[bool]] = {}
        for one in APIS:
            held.setdefault(f"{one.category}/{one.tool}", set()).add(is_held_out(one, share))
        assert all(len(values) == 1 for values in held.values())
    assert 0 < sum(is_held_out(one, 0.3) for one in APIS) < len(APIS)
