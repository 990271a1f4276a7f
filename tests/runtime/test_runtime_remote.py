"""Whole solves with somebody else's model: a scripted server, a hostile one, a real llama.cpp."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models.openai import chat as load
from toolsrv_runtime.models.openai import chat as servers
from toolsrv_runtime.models.openai.chat import inspect_servers, load_servers
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call = _FAKE["ModelServer"], _FAKE["Call"]
TASK = "capital of Peru"
CAPITAL = "capital_city_for_country_facts"
PERU = Call(CAPITAL, {"country": "Peru"}, "look it up")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_ENGINE_KEY", "a-key-of-the-test")


def solve(
    url: str,
    retriever: ApiRetriever,
    *,
    silence: float = 10,
    stop: Stop | None = None,
    **options: Any,
) -> Outcome:
    chat, profile = load_servers(url, silence_s=silence)

    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=chat, profile=profile, caller=caller)
            return await solver.solve(TASK, SolveOptions(**options), stop=stop)

    return asyncio.run(main())


# ---------------------------------------------------------------- a server that does its work
@pytest.mark.parametrize("offers", [("tools",), ("json_schema",), ("grammar",), ()])
def test_a_task_is_solved_with_evidence(offers: tuple[str, ...], retriever: ApiRetriever) -> None:
    with ModelServer([PERU, "It is Lima."], offers=offers) as server:
        outcome = solve(server.url, retriever)
    assert (outcome.status, outcome.answer) == ("answered", "It is Lima.")
    assert [(e.function, e.status, e.used) for e in outcome.evidence] == [(CAPITAL, 200, True)]
    assert outcome.model == f"tiny at {server.url.split('/')[2]}"
    assert outcome.format == f"chat ({offers[0] if offers else 'none'})"
    usage = outcome.usage
    assert (usage.model_calls, usage.prompt_tokens, usage.generated_tokens) == (3, 300, 21)
    assert usage.evaluated_tokens == 120


def test_the_functions_are_the_tools_and_a_result_is_a_turn_of_its_own(
    retriever: ApiRetriever,
) -> None:
    with ModelServer([PERU, "Lima"]) as server:
        solve(server.url, retriever)
        tools = [one["function"] for one in server.requests[0]["tools"]]
        turns = server.requests[1]["messages"]
        last = server.requests[-1]
    assert CAPITAL in {one["name"] for one in tools}
    assert all(one["parameters"]["type"] == "object" for one in tools)
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "tool"]
    assert "Lima" in turns[3]["content"]
    assert "tools" not in last  # the answer is written in a conversation of its own


@pytest.mark.parametrize(
    "bad",
    [
        "I think it is Lima.",
        Call("no_such_function", {}),
        Call("Finish", {"return_type": "give_answer", "final_answer": "Lima"}),
        "",
    ],
)
@pytest.mark.parametrize("offers", [("tools",), ()])
def test_a_reply_that_is_no_call_is_sent_back_once(
    bad: Any, offers: tuple[str, ...], retriever: ApiRetriever
) -> None:
    with ModelServer([bad, PERU, "Lima"], offers=offers) as server:
        outcome = solve(server.url, retriever)
        note = server.requests[1]["messages"][-1]
    assert outcome.status == "answered"
    assert note["role"] == "user"
    assert "cannot be used" in note["content"]
    assert len(outcome.tree) == 3  # root, call, answer: the reply that was mended is no node


def test_a_model_that_never_calls_anything_has_not_given_up(retriever: ApiRetriever) -> None:
    with ModelServer(["It is Lima, believe me."]) as server:
        outcome = solve(server.url, retriever)
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert "calls no function" in outcome.reason
    assert outcome.missing == (outcome.task,)
    assert {node.kind for node in outcome.tree} == {"root", "failed"}


def test_bad_arguments_are_a_result_that_says_what_is_wrong(retriever: ApiRetriever) -> None:
    wrong = Call(CAPITAL, {"planet": "Mars"})
    with ModelServer([wrong, PERU, "Lima"]) as server:
        outcome = solve(server.url, retriever)
        result = server.requests[1]["messages"][3]
    assert outcome.status == "answered"
    assert "planet" in outcome.evidence[0].error
    assert (result["role"], "planet" in result["content"]) == ("tool", True)


@pytest.mark.parametrize("text", ["[{}]", "```json\n{}\n```"])
def test_a_call_that_is_written_as_text_is_the_call_it_is(
    text: str, retriever: ApiRetriever
) -> None:
    call = json.dumps({"name": CAPITAL, "arguments": {"country": "Peru"}})
    with ModelServer([text.replace("{}", call), "Lima"]) as server:
        outcome = solve(server.url, retriever)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert outcome.evidence[0].arguments == {"country": "Peru"}


def test_a_server_has_room_for_a_further_call(retriever: ApiRetriever) -> None:
    with ModelServer([PERU, "Lima"]) as server:
        solve(server.url, retriever)
        rooms = [body["max_tokens"] for body in server.requests]
    assert min(rooms[:2]) > 100


def test_the_servers_count_of_tokens_ends_the_solve(retriever: ApiRetriever) -> None:
    names = ("Atlantis", "Mordor", "Narnia")
    with ModelServer([*(Call(CAPITAL, {"country": name}) for name in names), "Lima"]) as server:
        outcome = solve(server.url, retriever, limits=Limits(tokens=10))
    assert outcome.status == "partial"
    assert "tokens" in outcome.reason


@pytest.mark.parametrize("offers", [("tools",), ("json_schema",), ("grammar",), ()])
def test_a_second_opinion_is_json_and_may_reject_once(
    offers: tuple[str, ...], retriever: ApiRetriever
) -> None:
    no = json.dumps({"reason": "Quito is elsewhere.", "accept": False})
    with ModelServer([PERU, "Peru", "It is Lima", no, "Lima"], offers=offers) as server:
        outcome = solve(server.url, retriever, verify=True)
        asked = str(server.requests[3]["messages"])
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert [(one.verdict, one.reason) for one in outcome.opinions] == [
        ("rejected", "Quito is elsewhere.")
    ]
    assert "is proposed" in asked


# ---------------------------------------------------------------- a server that does not
HOSTILE = [
    "!cut", "!html", "!not-json", "!wrong-shape", "!429-long", "!500", "!401", "!never",
    "!endless", "!huge", "!reset", "!error-event",
]  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_server_that_fails_in_the_middle_leaves_what_was_found(
    kind: str, retriever: ApiRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_FIRST_REST_S", 0.01)
    with ModelServer([PERU, kind]) as server:
        outcome = solve(server.url, retriever, silence=0.8, limits=Limits(seconds=4))
    assert outcome.status == "partial"
    assert "Lima" in outcome.answer
    assert outcome.reason
    assert outcome.evidence[0].status == 200


@pytest.mark.parametrize("kind", ["!html", "!401", "!429-long"])
def test_a_server_that_fails_before_anything_was_found_is_an_error(
    kind: str, retriever: ApiRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_FIRST_REST_S", 0.01)
    with ModelServer([kind]) as server, pytest.raises(ServerError) as caught:
        solve(server.url, retriever, limits=Limits(seconds=60))
    assert caught.value.hint


def test_stop_ends_a_reply_that_never_comes(retriever: ApiRetriever) -> None:
    with ModelServer([PERU, "!stall"]) as server:
        stop = Stop(deadline=time.monotonic() + 3)
        started = time.monotonic()
        outcome = solve(server.url, retriever, silence=60, stop=stop)
    assert (outcome.status, "Lima" in outcome.answer) == ("cancelled", True)
    assert time.monotonic() - started < 5


def test_one_of_two_servers_may_fail_for_good(retriever: ApiRetriever) -> None:
    with ModelServer(["!500"]) as ill, ModelServer([PERU, "Lima"]) as well:
        outcome = solve(f"{ill.url}, {well.url}", retriever)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")


# ---------------------------------------------------------------- what a server is; the key
def test_a_server_is_told_with_what_it_offers_and_one_that_is_gone_with_why() -> None:
    with ModelServer([], offers=("json_schema",)) as server:
        info, gone = inspect_servers(f"{server.url},http://127.0.0.1:9")
    assert (info.models, info.model, info.mode, info.error) == (
        ("tiny",),
        "tiny",
        "json_schema",
        "",
    )
    assert (gone.mode, "cannot be reached" in gone.error) == (None, True)


def test_a_key_that_no_header_may_have_is_refused_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_ENGINE_KEY", "secret\nkey")
    with pytest.raises(UsageError) as caught:
        load_servers("http://127.0.0.1:9")
    assert "secret" not in caught.value.message + caught.value.hint


def test_the_keyring_has_the_key_where_the_environment_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyring = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend  # noqa: PLC0415 - not everywhere

    class Memory(KeyringBackend):
        priority = 1.0  # type: ignore[assignment, unused-ignore]

        def get_password(self, service: str, username: str) -> str | None:
            return "kept" if (service, username) == ("toolsrv", "engine") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())  # type: ignore[no-untyped-call, unused-ignore]
    try:
        assert load.api_key() == "a-key-of-the-test"
        monkeypatch.delenv("TOOLSRV_ENGINE_KEY")
        assert load.api_key() == "kept"
    finally:
        keyring.set_keyring(before)


# ---------------------------------------------------------------- a real llama.cpp server
@pytest.fixture(scope="module")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama-cpp-python's own server with a tiny random LLaMA."""
    for needed in ("uvicorn", "fastapi", "sse_starlette", "starlette_context"):
        pytest.importorskip(needed)
    from toolsrv_runtime.convert.checkpoint import convert  # noqa: PLC0415
    from toolsrv_runtime.convert.tiny import write_tiny_checkpoint  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("llama")
    model = folder / "tiny.gguf"
    write_tiny_checkpoint(folder / "checkpoint", max_position_embeddings=16384)
    convert(folder / "checkpoint", model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if "PORT" not in k and k != "MODEL"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--port", str(port),
             "--n_ctx", "16384", "--n_threads", "1", "--n_threads_batch", "1",
             "--logits_all", "false"],
            stdout=log, stderr=log, cwd=folder, env=environment,
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}/v1"
        try:
            _wait_until_up(url, process, folder / "log")
            yield url
        finally:
            process.kill()  # it waits for streams that nobody reads any more
            process.wait(20)


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/models", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def test_what_a_real_server_offers_is_found_out(llama_server: str) -> None:
    (info,) = inspect_servers(llama_server)
    assert info.error == ""
    assert info.mode == "grammar"  # it has tool calls for named functions only, no json_schema
    assert info.model.endswith("tiny.gguf")


@pytest.mark.nightly
def test_random_words_of_a_real_server_are_calls_of_offered_functions(
    llama_server: str, retriever: ApiRetriever
) -> None:
    limits = Limits(seconds=900, model_calls=2)
    outcome = solve(llama_server, retriever, silence=600, limits=limits, candidates=1)
    assert outcome.status in {"answered", "partial", "gave_up"}
    assert outcome.format == "chat (grammar)"
    known = {*outcome.candidates, ""}
    assert {node.api_id for node in outcome.tree} <= known
    assert outcome.usage.generated_tokens > 0


def test_stop_ends_a_real_stream(llama_server: str, retriever: ApiRetriever) -> None:
    stop = Stop(deadline=time.monotonic() + 2)
    outcome = solve(llama_server, retriever, silence=100, stop=stop, depth=96, candidates=1)
    assert outcome.status in {"cancelled", "answered", "gave_up"}
    assert outcome.usage.seconds < 5
