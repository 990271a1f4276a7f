"""The Python interface: both faces, over the catalog that ships and a host on loopback."""

from __future__ import annotations

import asyncio
import inspect
import json
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import ValidationError

import toolsrv
from toolsrv import (
    AsyncToolbox,
    Consent,
    Event,
    NotFoundError,
    Question,
    Stop,
    Toolbox,
    ToolsrvError,
    UnsavedError,
    UsageError,
)
from toolsrv.runs.store import RUNS_FILE, RunStore
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

HERE = Path(__file__).parent
HELPERS = runpy.run_path(str(HERE / "writing.py"))
DIFFERENCE = "Location/world_clock/time_difference"
CITIES = {"from_city": "London", "to_city": "Sydney"}
WRITE = "Notes/notes/write"
HEAVY = ("chromadb", "onnxruntime", "llama_cpp", "mcp", "numpy", "httpx", "click", "rich")


@pytest.fixture
def host(ready_dir: Path, no_keyring: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A host whose API ``write`` takes a POST, beside the catalog that ships."""
    del no_keyring
    with HELPERS["FaultyHost"]() as one:
        HELPERS["serve"](one, ready_dir)
        monkeypatch.setenv("TOOLSRV_OWN_HOSTS", one.url.removeprefix("http://"))
        yield one


def scripted(**settings: Any) -> Workbench:
    """Return a workbench whose model is a script that the task chooses."""
    make = runpy.run_path(str(HERE / "scripted_server.py"))["scripted_bench"]
    bench: Workbench = make(load(settings).settings)
    return bench


def loaded_by(statement: str, names: tuple[str, ...]) -> list[str]:
    code = f"{statement}; import sys; print(*(one for one in {names!r} if one in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


class TestFace:
    def test_importing_the_package_loads_nothing_but_itself(self) -> None:
        names = (*HEAVY, "pydantic", "asyncio", "toolsrv.toolbox", "toolsrv_registry")
        assert loaded_by("import toolsrv", names) == []

    def test_the_toolbox_loads_heavy_parts_when_it_needs_them(self) -> None:
        statement = "from toolsrv import Toolbox; Toolbox(data_dir='.').close()"
        assert loaded_by(statement, HEAVY) == []

    def test_every_public_name_is_there_and_no_other(self) -> None:
        assert toolsrv.__all__ == sorted(toolsrv.__all__)
        assert set(toolsrv.__all__) == {*toolsrv._MODULE_OF, "__version__"}
        assert dir(toolsrv) == toolsrv.__all__
        for name in toolsrv.__all__:
            assert getattr(toolsrv, name) is not None
        with pytest.raises(AttributeError, match="Toolbocks"):
            _ = toolsrv.Toolbocks

    def test_errors_have_one_root(self) -> None:
        errors = [getattr(toolsrv, one) for one in toolsrv.__all__ if one.endswith("Error")]
        assert len(errors) >= 8
        assert all(issubclass(one, ToolsrvError) for one in errors)

    @pytest.mark.parametrize("name", ["search", "describe", "call", "solve"])
    def test_both_faces_take_the_same_arguments(self, name: str) -> None:
        one, other = getattr(Toolbox, name), getattr(AsyncToolbox, name)
        given, wanted = (inspect.signature(each).parameters for each in (one, other))
        assert list(given) == list(wanted)
        assert {key: value.default for key, value in given.items()} == {
            key: value.default for key, value in wanted.items()
        }
        assert inspect.iscoroutinefunction(other)
        assert not inspect.iscoroutinefunction(one)
        assert get_type_hints(one)["return"] is get_type_hints(other)["return"]

    def test_arguments_go_before_variables_and_those_before_defaults(
        self, monkeypatch: pytest.MonkeyPatch, data_dir: Path, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("TOOLSRV_PARALLEL", "7")
        monkeypatch.setenv("TOOLSRV_KEEP_RUNS", "3")
        with Toolbox(parallel=5, max_calls=2) as toolbox:
            settings = toolbox.settings
        assert (settings.parallel, settings.keep_runs, settings.max_calls) == (5, 3, 2)
        assert (settings.max_tokens, settings.data_dir) == (20_000, data_dir)
        assert Toolbox(data_dir=tmp_path / "mine").settings.data_dir == tmp_path / "mine"
        assert not (tmp_path / "mine").exists()

    @pytest.mark.parametrize(
        ("given", "said"),
        [({"moed": 1}, "'moed'"), ({"parallel": 99}, "parallel"), ({"seed": 7}, "'seed'")],
    )
    def test_a_setting_that_is_not_acceptable_is_named(
        self, given: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(UsageError, match="the argument") as caught:
            Toolbox(**given)
        assert said in caught.value.message
        assert caught.value.hint


@pytest.mark.usefixtures("ready_dir")
class TestSync:
    def test_what_is_found_can_be_described_and_called(self) -> None:
        with Toolbox() as toolbox:
            found = toolbox.search("time difference between two cities", limit=3)
            assert DIFFERENCE in [one.id for one in found.hits]
            assert all(one.now is not None and one.now.callable for one in found.hits)
            about = toolbox.describe(DIFFERENCE, schema=True)
            assert {one.name for one in about.parameters if one.required} == set(CITIES)
            assert about.arguments_schema is not None
            result = toolbox.call(DIFFERENCE, CITIES)
        assert (result.ok, result.source, result.kept) == (True, "offline", ())
        assert abs(result.response["hours_difference"]) in {9.0, 10.0, 11.0}

    def test_results_do_not_change(self) -> None:
        with Toolbox() as toolbox:
            found = toolbox.search("time", limit=1)
            results = (found, found.hits[0], toolbox.describe(DIFFERENCE))
        for one in results:
            with pytest.raises(ValidationError):
                setattr(one, next(iter(type(one).model_fields)), "other")

    def test_a_call_that_fails_is_a_result_and_an_unknown_name_an_error(self) -> None:
        with Toolbox() as toolbox:
            result = toolbox.call(DIFFERENCE, {"from_city": "London"})
            assert (result.ok, result.refused, result.kind) == (False, True, "bad_arguments")
            for ask in (toolbox.describe, toolbox.call):
                with pytest.raises(NotFoundError) as caught:
                    ask("Location/world_clock/time_differense")
                assert DIFFERENCE in caught.value.hint
            with pytest.raises(NotFoundError):
                toolbox.search("time", category="Nowhere")

    @pytest.mark.parametrize(
        ("text", "given"), [(" \u202e", {}), ("x", {"limit": 0}), ("x", {"offset": -1})]
    )
    def test_a_search_that_makes_no_sense_is_refused(
        self, text: str, given: dict[str, int]
    ) -> None:
        with Toolbox() as toolbox, pytest.raises(UsageError):
            toolbox.search(text, **given)  # type: ignore[arg-type]

    def test_arguments_that_are_no_json_are_refused(self) -> None:
        with Toolbox() as toolbox:
            result = toolbox.call(DIFFERENCE, {**CITIES, "from_city": object()})
        assert (result.ok, result.kind) == (False, "bad_arguments")

    def test_a_closed_one_is_of_no_use(self) -> None:
        toolbox = Toolbox()
        assert toolbox.describe(DIFFERENCE)
        toolbox.close()
        toolbox.close()
        for use in (toolbox.describe, toolbox.search, toolbox.call, toolbox.solve):
            with pytest.raises(UsageError, match="closed"):
                use(DIFFERENCE)

    def test_inside_an_event_loop_the_other_face_is_named(self) -> None:
        async def inside() -> None:
            with Toolbox() as toolbox:
                assert toolbox.search("time", limit=1).hits
                with pytest.raises(UsageError) as caught:
                    toolbox.call(DIFFERENCE, CITIES)
                assert "AsyncToolbox" in caught.value.hint

        asyncio.run(inside())

    def test_threads_take_turns(self) -> None:
        found: list[bool] = []
        with Toolbox() as toolbox:

            def call() -> None:
                found.append(toolbox.call(DIFFERENCE, CITIES).ok)

            threads = [threading.Thread(target=call) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        assert found == [True] * 4


class TestCalls:
    @pytest.mark.parametrize(
        ("answer", "kind", "made"),
        [(True, "ok", 1), (False, "declined", 0), (None, "needs_consent", 0)],
    )
    def test_a_person_decides_about_a_call_that_may_change_something(
        self, host: Any, answer: bool | None, kind: str, made: int
    ) -> None:
        asked: list[Consent] = []

        def confirm(consent: Consent) -> bool | None:
            asked.append(consent)
            return answer

        with Toolbox() as toolbox:
            refused = toolbox.call(WRITE, {"text": "alpha"})
            result = toolbox.call(WRITE, {"text": "alpha"}, confirm=confirm)
        assert (refused.kind, result.kind, len(host.written)) == ("needs_consent", kind, made)
        assert [one.arguments for one in asked] == [{"text": "alpha"}]

    def test_a_rule_allows_it_without_a_question(self, host: Any) -> None:
        with Toolbox(calls=f"allow POST {host.url.removeprefix('http://')}") as toolbox:
            assert toolbox.call(WRITE, {"text": "beta"}).ok
        assert '{"text":"beta"}' in host.written

    def test_a_response_is_saved_where_it_is_said(self, ready_dir: Path, tmp_path: Path) -> None:
        assert ready_dir.is_dir()
        place = tmp_path / "difference.json"
        with Toolbox() as toolbox:
            result = toolbox.call(DIFFERENCE, CITIES, save_to=place)
            assert [Path(one.path) for one in result.kept] == [place]
            assert json.loads(place.read_text("utf-8")) == result.response
            with pytest.raises(UsageError, match="exists"):
                toolbox.call(DIFFERENCE, CITIES, save_to=place)
            assert toolbox.call(DIFFERENCE, CITIES, save_to=str(place), force=True).kept

    def test_a_response_that_cannot_be_saved_is_not_lost(self, host: Any, tmp_path: Path) -> None:
        place = tmp_path / "answer.json"

        def confirm(_: Consent) -> bool:
            place.write_text("somebody else's")
            return True

        with Toolbox() as toolbox, pytest.raises(UnsavedError) as caught:
            toolbox.call(WRITE, {"text": "alpha"}, save_to=place, confirm=confirm)
        assert (caught.value.result.ok, len(host.written)) == (True, 1)
        assert place.read_text() == "somebody else's"

    def test_a_path_in_arguments_is_read_only_where_a_person_wrote_it(
        self, ready_dir: Path, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret.txt"
        secret.write_text("secret")
        _catalog_with_a_file(ready_dir)
        with Toolbox(mode="offline") as toolbox:
            with pytest.raises(UsageError, match="not read"):
                toolbox.call("Files/files/send", {"file": f"@{secret}"})
            sent = toolbox.call("Files/files/send", {"file": f"@{secret}"}, any_path=True)
            named = toolbox.call("Files/files/send", files={"file": secret})
        assert sent.arguments == named.arguments
        assert "c2VjcmV0" in sent.arguments["file"]


def _catalog_with_a_file(data_dir: Path) -> None:
    file = Parameter(name="file", type="BINARY")
    api = Api(
        id="Files/files/send",
        category="Files",
        tool="files",
        name="send",
        description="Send a file",
        method="POST",
        url="http://127.0.0.1:9/send",
        required=(file,),
    )
    with Store.open(data_dir / STORE_FILE) as store:
        tool = Tool(category="Files", name="files", apis=(api,))
        store.put_catalog(Catalog(name="files", tools=(tool,)))


@pytest.mark.usefixtures("ready_dir")
class TestSolves:
    def test_events_come_in_order_and_the_run_is_kept(self) -> None:
        events: list[Event] = []
        with Toolbox() as toolbox:
            outcome = toolbox.solve("What is the capital of Peru?", on_event=events.append)
            assert (outcome.status, "Lima" in outcome.answer) == ("answered", True)
            assert [one.api_id for one in outcome.evidence if one.used]
            again = toolbox.solve("And of which continent is it?", continues=outcome.run_id)
        assert events[0].kind == "candidates"
        assert {"call", "observation"} <= {one.kind for one in events}
        assert [one.seconds for one in events] == sorted(one.seconds for one in events)
        assert again.continues == outcome.run_id
        with RunStore.open_to_read(toolbox.settings.data_dir) as store:
            kept = store.get(outcome.run_id)
        assert (kept.outcome, kept.id) == (outcome, outcome.run_id)

    def test_a_missing_value_is_asked_for_or_answered_later(self, tmp_path: Path) -> None:
        task = "What will my savings be after 10 years at 4 % interest?"
        call = {
            "function": "compound_interest_for_money_planner",
            "arguments": {"amount": 1000, "rate": 4, "years": 10},
        }
        script = tmp_path / "script.json"
        script.write_text(json.dumps({"replies": [call, "It will be 7401.22."]}), "utf-8")
        asked: list[str] = []

        def answer(question: Question) -> str:
            asked.append(question.parameter)
            return "5,000"

        model = f"scripted:{script}"
        with Toolbox(model=model) as toolbox:
            open_one = toolbox.solve(task, category="Finance")
        with Toolbox(model=model) as toolbox:
            outcome = toolbox.solve(task, category="Finance", ask_value=answer)
        with Toolbox(model=model) as toolbox:
            with pytest.raises(UsageError, match="asks nothing"):
                toolbox.solve("5000 euros", answer_to=outcome.run_id)
            later = toolbox.solve("1000 euros", category="Finance", answer_to=open_one.run_id)
        assert (open_one.status, outcome.status, later.status) == (
            "needs_input",
            "answered",
            "answered",
        )
        assert asked == ["amount"]
        assert outcome.evidence[0].arguments["amount"] == 5000
        assert later.task == f"{task}\namount: 1000 euros"

    def test_a_run_that_is_not_kept_has_no_id(self, ready_dir: Path) -> None:
        with Toolbox(keep_runs=0) as toolbox:
            assert toolbox.solve("What is the capital of Peru?").run_id == ""
        (ready_dir / RUNS_FILE).write_bytes(b"damaged" * 1000)
        with Toolbox() as toolbox:
            outcome = toolbox.solve("What is the capital of Peru?")
        assert (outcome.status, outcome.run_id) == ("answered", "")
        assert "the run was not kept" in outcome.notes[-1]

    def test_what_is_wrong_is_said_before_anything_is_opened(self, data_dir: Path) -> None:
        with Toolbox(model="nowhere.gguf") as toolbox, pytest.raises(NotFoundError):
            toolbox.solve("What is the capital of Peru?")
        with Toolbox() as toolbox:
            for task in ("", " \u202e", "x" * 20_001):
                with pytest.raises(UsageError):
                    toolbox.solve(task)
            with pytest.raises(NotFoundError):
                toolbox.solve("time", category="Nowhere")
            with pytest.raises(NotFoundError):
                toolbox.solve("time", continues="run_none")
        assert data_dir.is_dir()

    def test_another_thread_stops_it_with_what_is_known(self) -> None:
        stop = Stop()
        with Toolbox.from_workbench(scripted()) as toolbox:
            events: list[Event] = []

            def on_event(event: Event) -> None:
                events.append(event)
                stop.set()

            began = time.monotonic()
            outcome = toolbox.solve("SLOW case", on_event=on_event, stop=stop)
        assert outcome.status == "cancelled"
        assert time.monotonic() - began < 50

    async def _both(self, toolbox: AsyncToolbox) -> list[str]:
        tasks = ("capital of Peru", "capital of France")
        found = await asyncio.gather(*(toolbox.solve(f"What is the {one}?") for one in tasks))
        return [one.answer for one in found]

    @pytest.mark.parametrize("parallel", [1, 4])
    def test_several_solves_share_one_model(self, parallel: int) -> None:
        async def both() -> list[str]:
            async with AsyncToolbox(parallel=parallel) as toolbox:
                return await self._both(toolbox)

        lima, paris = asyncio.run(both())
        assert "Lima" in lima
        assert "Paris" in paris

    def test_closing_ends_the_solves_that_work(self) -> None:
        async def close() -> str:
            toolbox = AsyncToolbox.from_workbench(scripted())
            begun = asyncio.Event()
            solving = asyncio.ensure_future(
                toolbox.solve("SLOW case", on_event=lambda _: begun.set())
            )
            await begun.wait()
            await toolbox.aclose()
            return (await solving).status

        began = time.monotonic()
        assert asyncio.run(close()) == "cancelled"
        assert time.monotonic() - began < 50


INTERRUPTED = """
import runpy, threading, sys
from toolsrv import Toolbox
from toolsrv.settings import load

bench = runpy.run_path({script!r})["scripted_bench"](load().settings)
try:
    with Toolbox.from_workbench(bench) as toolbox:
        {work}
except KeyboardInterrupt:
    print("interrupted", sorted(one.name for one in threading.enumerate() if not one.daemon))
"""
SOLVING = 'toolbox.solve("SLOW case", on_event=lambda _: print("now", flush=True))'
ASKING = (
    'toolbox.call("Notes/notes/write", {"text": "a"}, '
    'confirm=lambda _: print("now", flush=True) or input())'
)


@pytest.mark.skipif(sys.platform == "win32", reason="a signal of POSIX")
@pytest.mark.parametrize("work", [SOLVING, ASKING], ids=["solve", "question"])
def test_ctrl_c_stops_the_work_and_closes_the_toolbox(host: Any, work: str) -> None:
    code = INTERRUPTED.format(script=str(HERE / "scripted_server.py"), work=work)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "now\n", process.stderr.read()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=40)  # with its stdin open, at which a question may wait
        out, err = process.communicate()
    last = out.splitlines()[-1]
    assert (process.returncode, last, err) == (0, "interrupted ['MainThread']", "")
    assert host.written == []
