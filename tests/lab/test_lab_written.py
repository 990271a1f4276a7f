"""Needs written for APIs: the file, its marks, and their use in instructions."""

from __future__ import annotations

import random
from collections import Counter

from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.errands import arguments, spoken, written
from toolsrv_registry.api import Api


def test_marks_are_read_both_ways() -> None:
    need = "Weather in {city=Lisbon} on {date=2024-05-03|May 3rd}, {units=C|}?"
    assert spoken(need) == "Weather in Lisbon on May 3rd, ?"
    assert arguments(need) == {"city": "Lisbon", "date": "2024-05-03", "units": "C"}


def test_every_need_is_a_clean_text_of_an_api_id() -> None:
    assert len(written()) > 6_000
    for api_id, needs in written().items():
        assert api_id.count("/") == 2
        for need in needs:
            said = spoken(need)
            assert said == " ".join(said.split())
            assert 6 <= len(said) < 700
            assert "{" not in said, need
            assert all(arguments(need)), need


def test_few_needs_are_told_in_the_same_words() -> None:
    said = [spoken(need).lower() for needs in written().values() for need in needs]
    assert len(set(said)) > 0.99 * len(said)
    starts = Counter(" ".join(text.split()[:3]) for text in said)
    assert starts.most_common(1)[0][1] < 0.04 * len(said)


def test_a_text_tells_its_needs_in_their_words() -> None:
    missing = 0
    for seed in range(40):
        apis = [
            Api(id=one, category="C", tool="t", name="n")
            for one in random.Random(seed).sample(sorted(written()), 3)
        ]
        task = compose(apis, random.Random(seed))
        assert task == compose(apis, random.Random(seed))
        assert len(task.needs) == 3
        missing += sum(need.lower() not in task.text.lower() for need in task.needs)
    # Only slips of the hand change a need in its text.
    assert missing < 0.1 * 120
