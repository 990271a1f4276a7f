"""ToolBench's error labels and status codes as a view on typed results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolsrv_runtime.calls.result import RESULT_KINDS, CallResult, ResultKind, kind_of_status
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench.environment import (
    code_of_label,
    error_label,
    label_of_response,
    status_code,
)

VECTORS = Path(__file__).parent / "data" / "call_vectors.json"


def cases(group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(VECTORS.read_text("utf-8"))["groups"][group]["cases"]
    return found


def result(kind: ResultKind, response: Any = None, status: int = 0) -> CallResult:
    return CallResult(
        api_id="C/t/a", arguments={}, url="https://x.test/", status=status, response=response,
        error="" if kind == "ok" else "no", source="live", seconds=0.0, kind=kind,
    )  # fmt: skip


@pytest.mark.parametrize("case", cases("process_error"), ids=lambda case: str(case)[:60])
def test_words_in_a_response_get_the_references_label(case: dict[str, Any]) -> None:
    assert label_of_response(case["api_returned"]) == case["error"]


@pytest.mark.parametrize(
    "case", [c for c in cases("env_step") if "service_reply" in c], ids=lambda case: str(case)[-60:]
)
def test_a_label_gets_the_references_code(case: dict[str, Any]) -> None:
    assert code_of_label(case["service_reply"]["error"]) == case["code"]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("ok", Code.OK),
        ("unauthorized", Code.UNAUTHORIZED),
        ("not_subscribed", Code.NOT_SUBSCRIBED),
        ("rate_limited", Code.TOO_MANY),
        ("not_found", Code.NOT_FOUND),
        ("gone", Code.NOT_FOUND),
        ("timed_out", Code.TIMEOUT),
        ("server_error", Code.ERROR),
        ("network_error", Code.ERROR),
    ],
)
def test_a_kind_gets_a_code(kind: ResultKind, wanted: Code) -> None:
    assert status_code(result(kind)) == wanted


def test_every_kind_has_a_label_and_a_code() -> None:
    assert len(RESULT_KINDS) == 17
    for kind in RESULT_KINDS:
        assert (error_label(result(kind)) == "") == (kind == "ok")
        assert isinstance(status_code(result(kind)), Code)
    assert status_code(result("ok", {"error": "x"}, 200)) == Code.MESSAGE


@pytest.mark.parametrize("status", [0, *range(200, 600)])
def test_every_status_has_a_kind(status: int) -> None:
    assert (kind_of_status(status) == "ok") == (200 <= status < 300)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (0, "network_error"),
        (200, "ok"),
        (299, "ok"),
        (400, "bad_arguments"),
        (401, "unauthorized"),
        (402, "not_subscribed"),
        (403, "unauthorized"),
        (404, "not_found"),
        (405, "bad_arguments"),
        (408, "timed_out"),
        (409, "bad_arguments"),
        (410, "gone"),
        (413, "bad_arguments"),
        (422, "bad_arguments"),
        (429, "rate_limited"),
        (499, "bad_arguments"),
        (500, "server_error"),
        (503, "server_error"),
        (504, "timed_out"),
    ],
)
def test_a_status_speaks_for_its_kind(status: int, kind: ResultKind) -> None:
    assert kind_of_status(status) == kind


def test_the_codes_are_those_of_the_reference() -> None:
    assert [(one.name, int(one)) for one in Code] == [
        ("FAILED", -1),
        *((name, at) for at, name in enumerate(
            ("OK", "UNKNOWN_FUNCTION", "BAD_FINISH", "ANSWER", "GIVE_UP", "TIMEOUT", "NOT_FOUND",
             "UNAUTHORIZED", "NOT_SUBSCRIBED", "TOO_MANY", "RATE_LIMITED", "MESSAGE", "ERROR")
        )),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "status", "unavailable"),
    [
        ("server_error", 500, False),
        ("server_error", 501, False),
        ("server_error", 502, True),
        ("server_error", 503, True),
        ("timed_out", 504, False),
        ("unauthorized", 401, True),
        ("network_error", 0, True),
        ("bad_arguments", 400, False),
        ("ok", 200, False),
    ],
)
def test_an_api_out_of_service_is_told_from_one_that_takes_other_arguments(
    kind: ResultKind, status: int, unavailable: bool
) -> None:
    got = result(kind, None, status)
    assert got.unavailable is unavailable
    assert not got.model_copy(update={"source": "simulated"}).unavailable
