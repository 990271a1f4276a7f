"""What hits and descriptions say of a call now: price, key, recording, last success, calls left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import Result

from toolsrv.health import examine
from toolsrv.mcp_server.texts import describe_text, search_text
from toolsrv.settings import load
from toolsrv.views.apis import DescribeView, api_view
from toolsrv.views.readiness import Readiness
from toolsrv.views.search import search_view
from toolsrv.workbench import Workbench
from toolsrv_registry.api import Api
from toolsrv_registry.search.retriever import Hit
from toolsrv_registry.search.ties import order_ties

Run = Callable[..., Result]
SCORE = {"avgServiceLevel": 99, "avgLatency": 786, "avgSuccessRate": 98, "popularityScore": 7.9}


class _Host(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"degrees": 5}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Host)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def imported(run: Run, host: str, tmp_path: Path) -> str:
    """A catalog of the same forecast by providers of three plans, and one that needs a key."""
    folder = tmp_path / "source" / "tools" / "Weather"
    folder.mkdir(parents=True)
    plans = (("Dear", "PAID", host), ("Free", "FREE", host), ("Mixed", "FREEMIUM", host))
    for name, pricing, place in (*plans, ("Keyed", "FREE", "x.p.rapidapi.com")):
        entry = {
            "name": "tide table",
            "description": f"{name}: heights of the tide at a harbour, hour by hour.",
            "method": "GET",
            "url": f"{'https' if 'rapid' in place else 'http'}://{place}/{name}",
            "required_parameters": [],
            "optional_parameters": [],
        }
        tool = {"tool_name": f"{name} Tides", "pricing": pricing, "score": SCORE}
        (folder / f"{name}.json").write_text(json.dumps({**tool, "api_list": [entry]}))
    done = run("catalog", "import", str(folder.parents[1]), "--name", "tides", "--no-index")
    assert done.exit_code == 0, done.stderr
    run("config", "set", "own_hosts", host)
    return host


def described(run: Run, api_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("describe", api_id, "--json").stdout)["now"]
    return found


def test_terms_are_read_kept_and_shown(run: Run, imported: str) -> None:
    assert imported
    now = described(run, "Weather/dear_tides/tide_table")
    assert now == {
        "callable": True,
        "asks": True,
        "pricing": "PAID",
        "success_percent": 98,
        "service_percent": 99,
        "latency_ms": 786,
        "popularity": 7.9,
    }
    shown = run("describe", "Weather/dear_tides/tide_table").stdout
    assert "PAID, 98 % succeed, 99 % service level, 786 ms, popularity 7.9" in shown
    assert "a person is asked first" in shown


def test_a_paid_call_is_refused_where_nobody_can_be_asked(run: Run, imported: str) -> None:
    refused = run("call", "Weather/dear_tides/tide_table")
    assert refused.exit_code == 2
    assert f"allow PAID {imported}" in refused.stderr
    run("config", "set", "calls", f"allow PAID {imported}")
    assert run("call", "Weather/dear_tides/tide_table").exit_code == 0
    assert run("call", "Weather/mixed_tides/tide_table").exit_code == 0


def test_a_hit_says_whether_it_can_be_called_and_calls_left(run: Run, imported: str) -> None:
    run("config", "set", "calls_per_day", "1")
    found = json.loads(run("search", "tide table", "--catalog", "tides", "--json").stdout)["hits"]
    now = {hit["id"].split("/")[1]: hit["now"] for hit in found}
    assert now["free_tides"]["calls_left"] == 1
    assert now["keyed_tides"]["callable"] is False
    assert now["keyed_tides"]["key"] == "missing"
    assert "toolsrv keys set rapidapi" in now["keyed_tides"]["lacks"]
    done = run("call", "Weather/free_tides/tide_table")
    assert done.exit_code == 0
    assert "0 calls left" in done.stderr
    over = run("call", "Weather/mixed_tides/tide_table")
    assert over.exit_code == 1
    assert "00:00 UTC" in over.stderr
    now = described(run, "Weather/free_tides/tide_table")
    assert (now["callable"], now["calls_left"]) == (False, 0)
    assert now["last_success"].startswith("20")
    settings = load().settings
    bench = Workbench(settings)
    calls = {one.check: one for one in examine(bench)}["calls today"]
    asyncio.run(bench.aclose())
    assert calls.state == "warn"
    assert "1 of 1 calls today, 0 left" in calls.found
    assert imported.partition(":")[0] in calls.found


def test_a_search_can_be_kept_to_what_can_be_called(run: Run, imported: str) -> None:
    assert imported
    for limit in ("1", "5"):
        words = ("search", "tide table", "--catalog", "tides", "--limit", limit, "--json")
        everything, able = (json.loads(run(*words, *more).stdout) for more in ((), ("--callable",)))
        assert all(hit["now"]["callable"] for hit in able["hits"])
        assert able["hits"]
        if limit == "5":
            assert {hit["now"]["callable"] for hit in everything["hits"]} == {True, False}
            assert able["total"] == 3
    shown = run("search", "tide table", "--catalog", "tides", "--callable")
    assert "?$" in shown.stdout
    assert "+F" in shown.stdout
    assert "$ paid" in shown.stderr


def test_offline_and_recorded_apis_say_so(run: Run, imported: str) -> None:
    assert imported
    city = described(run, "Location/world_clock/convert_time")
    assert city == {"callable": True, "offline": True, "pricing": "FREE"}
    assert run("call", "Weather/free_tides/tide_table", "--mode", "record").exit_code == 0
    now = described(run, "Weather/free_tides/tide_table")
    assert now["recorded"]
    assert now["last_success"]


def test_a_replay_can_call_what_is_recorded_and_counts_nothing(run: Run, imported: str) -> None:
    assert imported
    run("call", "Weather/free_tides/tide_table", "--mode", "record")
    run("config", "set", "mode", "replay")
    run("config", "set", "calls_per_day", "1")
    for _ in range(3):
        assert run("call", "Weather/free_tides/tide_table").exit_code == 0
    found = json.loads(run("search", "tide table", "--catalog", "tides", "--json").stdout)["hits"]
    able = [hit["id"] for hit in found if hit["now"]["callable"]]
    assert able == ["Weather/free_tides/tide_table"]


def hit(tool: str, score: float, clause: str = "a") -> Hit:
    api = Api(id=f"C/{tool}/x", category="C", tool=tool, name="x")
    return Hit(
        api=api, rank=1, score=score, lexical_rank=1, dense_rank=1, similarity=0.5,
        matched_words=(), clause=clause,
    )  # fmt: skip


def test_only_equals_change_places() -> None:
    hits = [hit("a", 0.9), hit("b", 0.895), hit("c", 0.5), hit("d", 0.499, "b"), hit("b", 0.498)]
    order = {"a": 2, "b": 1, "c": 9, "d": 0}
    found = order_ties(hits, lambda one: (order[one.api.tool],))
    assert [one.api.tool for one in found] == ["b", "a", "c", "d", "b"]
    same_tool = [hit("a", 0.9), hit("a", 0.9)]
    assert order_ties(same_tool, lambda one: (-id(one),)) == same_tool


def test_what_can_be_called_comes_first_then_the_better_terms() -> None:
    said = [
        Readiness(callable=True, pricing="FREE", success_percent=98),
        Readiness(callable=True, pricing="FREE", success_percent=30),
        Readiness(callable=True, pricing="FREEMIUM"),
        Readiness(callable=True, asks=True, pricing="PAID"),
        Readiness(
            callable=False, key="missing", lacks="a key", pricing="FREE", success_percent=100
        ),
    ]
    assert sorted([*said[2:], *said[:2]], key=lambda one: one.order) == said
    assert [one.signs for one in said] == ["+", "+", "+F", "?$", "-"]


def test_a_model_reads_the_same_as_a_person(run: Run, imported: str) -> None:
    assert imported
    run("config", "set", "model", "")
    bench = Workbench(load().settings)
    result = bench.search("tide table", 5, catalog="tides", without_vectors="for this test")
    known = bench.readiness([one.api for one in result.hits])
    text = search_text(search_view(result, "summary", known))
    assert "needs a key that is not set (toolsrv keys set rapidapi)" in text
    assert "PAID" in text
    api = bench.api("Weather/dear_tides/tide_table")
    view = DescribeView(apis=(api_view(api, None, bench.readiness_of(api)),), not_found=())
    assert "Terms: PAID" in describe_text(view)
    asyncio.run(bench.aclose())
