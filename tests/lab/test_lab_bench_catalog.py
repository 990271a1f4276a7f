"""The benchmarks of a catalog of one's own: its copies, and both commands run for real, small."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_lab.bench import bench
from toolsrv_lab.bench.copies import NoisyEncoder, copy_of, originals, pool
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import UsageError

Run = Callable[..., Result]

ABOUT = (
    "Daily weather forecast for the coming week in a city of your choice",
    "Phase of the moon tonight, with the hours of its rising and setting",
    "Current exchange rate between two currencies, as published every morning",
    "Opening hours of museums and galleries, with prices and directions",
)
TOOL = {
    "tool_name": "Sky Watch",
    "tool_description": "weather and moon reports for every place on earth",
    "category_name": "Weather",
    "api_list": [
        {
            "name": f"report {n}",
            "description": text,
            "required_parameters": [],
            "optional_parameters": [],
            "method": "GET",
            "url": f"https://example.org/{n}",
        }
        for n, text in enumerate(ABOUT)
    ],
}


def made(*names: tuple[str, str, str]) -> Catalog:
    """Return a catalog of (tool, API, description), one tool each."""
    return Catalog(
        name="made",
        tools=tuple(
            Tool(
                category="Tools",
                name=tool,
                description=about,
                apis=(
                    Api(
                        id=f"Tools/tool_{at}/{at}",
                        category="Tools",
                        tool=tool,
                        name=name,
                        description=about,
                        tool_description=about,
                    ),
                ),
            )
            for at, (tool, name, about) in enumerate(names)
        ),
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tool.json"
    path.write_text(json.dumps(TOOL))
    return path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a benchmark; it must succeed and leave no temporary folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(bench, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        assert list(scratch.glob("toolsrv-*")) == []
        return result

    return invoke


# --- copies -----------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(*[st.text(max_size=40)] * 3), min_size=1, max_size=8),
    st.integers(0, 9),
)
def test_copies_of_any_catalog_have_its_shape_and_ids_of_their_own(
    texts: list[tuple[str, str, str]], seed: int
) -> None:
    catalog = made(*texts)
    words = pool(catalog)
    copies = [copy_of(catalog, number, words, seed) for number in (2, 3)]
    ids = [api.id for one in (catalog, *copies) for api in one.apis]
    assert len(set(ids)) == len(ids)
    for copy in copies:
        assert [len(tool.apis) for tool in copy.tools] == [len(tool.apis) for tool in catalog.tools]
        assert all(api.id.count("/") == 2 for api in copy.apis)
        assert all(
            document_text(new) != document_text(old)
            for new, old in zip(copy.apis, catalog.apis, strict=True)
        )
    assert copies[0] == copy_of(catalog, 2, words, seed)


def test_a_copys_texts_are_new_but_not_nonsense() -> None:
    catalog = made(*((f"tool {at}", f"report {at}", text) for at, text in enumerate(ABOUT)))
    copy = copy_of(catalog, 2, pool(catalog), 0)
    known = set(" ".join(ABOUT).split())
    for new, old in zip(copy.apis, catalog.apis, strict=True):
        assert new.description != old.description
        assert set(new.description.split()) <= {word.strip(",") for word in known} | known | {
            f"{word.strip(',')}," for word in known
        }
        assert new.parameters == old.parameters
    assert copy != copy_of(catalog, 2, pool(catalog), 1)


def test_vectors_by_noise_are_near_their_originals_and_of_length_one() -> None:
    catalog = made(*((f"tool {at}", f"report {at}", text) for at, text in enumerate(ABOUT)))
    copy = copy_of(catalog, 2, pool(catalog), 0)
    real = HashingEncoder(384)
    old, new = ([document_text(api) for api in one.apis] for one in (catalog, copy))
    known = dict(zip(old, real.encode(old), strict=True))
    noisy = NoisyEncoder(real, known, originals(catalog, copy), 0)
    assert (noisy.digest, noisy.dimensions) == (real.digest, 384)
    seen: list[tuple[int, int]] = []
    vectors = noisy.encode([*old, *new], progress=lambda done, total: seen.append((done, total)))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.allclose(vectors[:4], list(known.values()), atol=1e-6)
    assert np.all(np.abs(np.sum(vectors[:4] * vectors[4:], axis=1) - 0.75) < 0.1)
    assert seen[-1] == (8, 8)


# --- the commands -----------------------------------------------------------------------------


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["machine"]["cores"] >= 1
    assert found["versions"]["toolsrv"]
    return found


@pytest.mark.nightly
def test_a_catalog_is_imported_built_reopened_and_searched(
    run: Run, source: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "queries.jsonl"
    asked.write_text(
        "".join(
            json.dumps({"query_id": str(n), "query": text, "relevant": []}) + "\n"
            for n, text in enumerate(ABOUT)
        )
    )
    found = document(
        run(
            *("catalog", "--catalog", str(source), "--queries", str(asked)),
            *("--count", "20", "--runs", "2", "--json"),
        )
    )
    figures = found["figures"]
    assert figures["search"]["count"] == 40
    assert figures["reopen"]["count"] == 2
    assert all(one["min"] > 0 for one in figures.values() if one["count"])
    assert found["details"]["apis"] > 170
    assert {"registry.sqlite3", "chroma"} <= set(found["details"]["disk"])
    assert found["options"] == {"catalog": "tool.json", "queries": 20, "runs": 2, "seed": 0}


@pytest.mark.nightly
def test_growth_shows_a_row_per_size_and_draws_them(run: Run, source: Path, tmp_path: Path) -> None:
    drawn = []
    if importlib.util.find_spec("matplotlib"):
        drawn = ["--plot", str(tmp_path / "growth.svg")]
    words = ("growth", "--catalog", str(source), "--copies", "1,2,3", "--encode", "2")
    found = document(run(*words, "--count", "20", *drawn, "--json"))
    levels = found["details"]["levels"]
    base = levels[0]["apis"]
    assert [(one["copies"], one["encoded"]) for one in levels] == [(1, True), (2, True), (3, False)]
    assert [one["apis"] - base for one in levels] == [0, 4, 8]
    assert [one["documents"] - base for one in levels] == [0, 4, 8]
    assert [one["build_estimated"] for one in levels] == [False, False, True]
    assert levels[0]["build_index_s"] < levels[0]["build_s"]
    assert levels[1]["build_index_s"] is None
    assert levels[2]["build_index_s"] < levels[2]["build_s"]
    if drawn:
        picture = ET.parse(tmp_path / "growth.svg").getroot()  # our own file
        assert picture.tag.endswith("svg")
        assert "hollow" in (tmp_path / "growth.svg").read_text()


@pytest.mark.parametrize("sizes", ["2,4", "1,1", "4,1", "x", "", "1,9999", "0,1"])
def test_sizes_that_do_not_grow_from_one_are_refused(source: Path, sizes: str) -> None:
    words = ["growth", "--catalog", str(source), "--copies", sizes]
    result = CliRunner().invoke(bench, words)
    assert result.exit_code == 2
    assert "--copies" in result.stderr


@pytest.mark.parametrize("name", ["growth.png", "no/such/folder/growth.svg"])
def test_a_picture_that_cannot_be_written_is_told_before_anything_is_measured(
    source: Path, tmp_path: Path, name: str
) -> None:
    pytest.importorskip("matplotlib")
    words = ["growth", "--catalog", str(source), "--plot", str(tmp_path / name)]
    result = CliRunner().invoke(bench, words)
    assert isinstance(result.exception, UsageError)
    assert result.exception.hint
    assert "importing" not in result.stderr


def test_a_file_without_queries_is_told(source: Path, tmp_path: Path) -> None:
    asked = tmp_path / "queries.jsonl"
    asked.write_text(json.dumps({"query_id": "1", "query": " ", "relevant": []}) + "\n")
    words = ["catalog", "--catalog", str(source), "--queries", str(asked)]
    result = CliRunner().invoke(bench, words)
    assert isinstance(result.exception, UsageError)
    assert str(asked) in result.exception.message


@pytest.mark.parametrize("name", ["catalog", "growth"])
def test_each_command_has_help_with_an_example(run: Run, name: str) -> None:
    assert f"toolsrv bench {name}" in run(name, "--help").stdout
    assert name in run("--help").stdout
