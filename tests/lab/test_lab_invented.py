"""Invented APIs: needs share words with one of them alone; easy rows are short."""

from __future__ import annotations

import random

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.nano.episodes import Teacher
from toolsrv_lab.nano.needs import Invented, document_words, made_up
from toolsrv_lab.nano.world import World
from toolsrv_runtime.planner import layout


def known() -> list[str]:
    return document_words(load_offline_catalog().apis)


def test_a_need_names_one_api_alone() -> None:
    rng = random.Random(1)
    for _ in range(20):
        invented = Invented(known(), rng)
        for api in invented.apis:
            told = invented.tell(api, rng)
            fitting = [one for one in invented.apis if words_of(one.name) & words_of(told.text)]
            assert api in fitting or words_of(api.description) & words_of(told.text)
            assert all(value in told.text for value, _ in told.values.values())
            assert {one.name for one in api.required} <= set(told.values)


def words_of(text: str) -> set[str]:
    return {word.lower().removesuffix("s").removesuffix("ing") for word in text.split()}


def test_the_same_seed_invents_the_same() -> None:
    one, other = (Invented(known(), random.Random(5)) for _ in range(2))
    assert one.apis == other.apis
    assert made_up(random.Random(2)) == made_up(random.Random(2))


def test_an_easy_row_offers_few_functions() -> None:
    rng = random.Random(3)
    rows = []
    with World(()) as world:
        for _ in range(30):
            invented = Invented(known(), rng)
            teacher = Teacher(invented, world, {}, [1.0] * len(invented.apis), most=4)
            rows += [row] if (row := teacher.row(rng)) else []
    assert len(rows) > 20
    for row in rows:
        lines = [one.text for one in row.functions[1:]]
        assert 2 <= len(lines) <= 4
        assert all(
            f"{layout.USE}{len(lines) + 1}" not in s.text for e in row.episodes for s in e.segments
        )
