"""The tree of a run: where nodes stand, and a page that untrusted text cannot break out of."""

from __future__ import annotations

import itertools
import random
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from toolsrv.trees.page import page
from toolsrv.trees.shown import ShownNode, ShownRun, shown_answer
from toolsrv.trees.svg import MARKS, NAMES, NodePosition, layout_tree
from toolsrv_runtime.toolbench.answer_files import parse_answer

NASTY = "</script></style></svg><img src=x onerror=alert(1)>\"'&<!-- ]]> \x1b[31m\u202e"


def grown(count: int, seed: int, *, deep: float = 0.6) -> list[list[int]]:
    """A random tree; ``deep`` is how often a node hangs below the one just before it."""
    draw = random.Random(seed)
    children: list[list[int]] = [[] for _ in range(count)]
    for node in range(1, count):
        parent = node - 1 if draw.random() < deep else draw.randrange(node)
        children[parent].append(node)
    return children


def run_of(children: list[list[int]], text: str = "text") -> ShownRun:
    parent = {child: node for node, below in enumerate(children) for child in below}
    root = ShownNode(id=0, parent=-1, kind="root")
    nodes = [
        ShownNode(
            id=node, parent=parent[node], kind="call", thought=text, api_id=text, function=text,
            arguments=text, observation=text, code=0, outcome=text, source=text,
            pruned=node % 3 == 0, winning=node < 3, tokens=12, seconds=0.5, has_response=True,
        )
        for node in range(1, len(children))
    ]  # fmt: skip
    return ShownRun(
        name=text, task=text, status="answered", answer=text, reason=text,
        facts={text: text}, nodes=(root, *nodes),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_nodes_of_a_level_never_overlap_and_parents_stand_in_the_middle(seed: int) -> None:
    children = grown(150, seed, deep=seed / 30)
    stand = layout_tree(children)
    rows: dict[int, list[float]] = {}
    for place in stand:
        rows.setdefault(place.level, []).append(place.x)
    for row in rows.values():
        row.sort()
        assert all(right - left >= 1 - 1e-9 for left, right in itertools.pairwise(row))
    for node, below in enumerate(children):
        if below:
            middle = (stand[below[0]].x + stand[below[-1]].x) / 2
            assert stand[node].x == pytest.approx(middle)
        assert [stand[one].x for one in below] == sorted(stand[one].x for one in below)
    assert min(place.x for place in stand) == pytest.approx(0)


def test_a_tidy_tree_is_as_narrow_as_its_branches_allow() -> None:
    wide_below = [[1, 2], [3], [], [4, 5, 6], [], [], []]
    stand = layout_tree(wide_below)
    assert stand[2].x - stand[1].x == 1
    assert layout_tree([[]]) == [NodePosition(0, 0)]
    assert layout_tree([]) == []


def test_a_path_of_thousands_of_nodes_is_laid_out() -> None:
    count = 5_000
    stand = layout_tree([[node + 1] for node in range(count - 1)] + [[]])
    assert stand[-1] == NodePosition(0, count - 1)


def test_the_layout_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        children = grown(count, 1)
        start = time.process_time()
        layout_tree(children)
        return time.process_time() - start

    small = min(seconds(4_000) for _ in range(3))
    large = min(seconds(32_000) for _ in range(3))
    assert large < 8 * small * 3


def test_a_tree_of_2000_nodes_is_a_page_in_under_a_second() -> None:
    run = run_of(grown(2_000, 7), "some text of a node " * 4)
    start = time.process_time()
    html = page(run)
    assert time.process_time() - start < 1
    assert len(html) < 6_000_000
    assert html.count('role="treeitem"') == 2_000


class Reader(HTMLParser):
    """Collects what a browser would see as elements and as text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.text: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = str(dict(attrs)["content"])

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def test_html_in_every_field_stays_text() -> None:
    children = [[1, 2], [3], [], []]
    clean, nasty = read(page(run_of(children))), read(page(run_of(children, NASTY)))
    assert nasty.tags == clean.tags
    assert nasty.names == clean.names
    assert not any(name.startswith("on") for name in nasty.names)
    assert "img" not in nasty.tags
    assert any("<img src=x onerror=alert(1)>" in text for text in nasty.text)


def test_the_page_reaches_nothing_and_runs_nothing_but_its_own_script() -> None:
    html = page(run_of([[1], []], NASTY))
    reader = read(html)
    assert reader.policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in reader.policy
    assert reader.tags.count("script") == reader.tags.count("style") == 1
    assert not reader.names & {"src", "href", "srcset", "action", "style"}
    assert not re.search(r"url\((?!#box)|@import|fetch\(|XMLHttp|innerHTML|eval\(", html)


def test_hidden_characters_of_an_answer_file_are_not_shown() -> None:
    node = {"node_type": "Thought", "description": NASTY, "observation_code": 0}
    value = {
        "win": False,
        "trys": [{"chain": [node]}],
        "answer_generation": {"valid_data": False, "query": NASTY, "final_answer": ""},
    }
    html = page(shown_answer(parse_answer(value, "x.json"), "x.json"))
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_every_kind_of_node_has_its_own_shape_and_word() -> None:
    assert len(set(MARKS.values())) == len(MARKS)
    assert len(set(NAMES.values())) == len(NAMES)
    assert MARKS.keys() == NAMES.keys()


def test_the_page_names_every_key_that_its_script_knows() -> None:
    html = page(run_of([[1], []]))
    for key in (
        "ArrowDown",
        "ArrowUp",
        "ArrowLeft",
        "ArrowRight",
        "Home",
        "End",
        "Enter",
        "Escape",
    ):
        assert key in html
    assert 'role="tree"' in html
    assert "prefers-color-scheme: dark" in html


def test_two_pages_of_a_run_are_the_same(tmp_path: Path) -> None:
    run = run_of(grown(50, 3))
    assert page(run) == page(run)
    assert list(tmp_path.iterdir()) == []
