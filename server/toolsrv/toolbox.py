"""The Python interface: ``AsyncToolbox``, and ``Toolbox`` for programs without an event loop.

Both have the same four methods, search, describe, call and solve. Parts (catalog, index, model,
connections) are opened when they are first needed and closed with the toolbox. Results are frozen
models; a failed call is a result, not an exception. Errors are those of ``ToolsrvError``.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from toolsrv import operations
from toolsrv.operations import Files
from toolsrv.settings import CommandSettings, Mode, Settings, check_key, load
from toolsrv.solve_options import SolveArguments
from toolsrv.threads import in_thread
from toolsrv.views.apis import ApiView, Detail
from toolsrv.views.search import SearchView
from toolsrv.workbench import Progress, Workbench
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.result import AskConsent, CallResult, Consent
from toolsrv_runtime.contract.hints import AskValue, Question
from toolsrv_runtime.outcome import Event, Outcome
from toolsrv_runtime.stop import Stop

log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")
END_S = 10.0
"""Seconds that ``aclose`` waits for solves that it has stopped."""


def _ignore(event: Event) -> None:
    """Do nothing with an event."""


class _Base:
    """Settings and workbench of a toolbox."""

    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        model: str | Path | None = None,
        mode: Mode | None = None,
        calls: str | None = None,
        own_hosts: str | None = None,
        progress: Progress | None = None,
        **settings: Any,
    ) -> None:
        """Take settings; open nothing.

        What is not given comes from ``TOOLSRV_*`` variables, the settings file or the defaults, as
        at the command line.

        Args:
            data_dir: folder of catalogs, index, runs and saved files.
            model: GGUF file, its name on the list, server addresses, or ``scripted:FILE``; the
                model that ships where nothing is named.
            mode: calls over the network (``live``), recorded too, from recordings only
                (``replay``), or only of the catalog that ships (``offline``).
            calls: rules beyond reading, such as ``"allow POST api.example.com"``.
            own_hosts: hosts of your own at any address, such as ``"localhost:8080"``.
            progress: called with (done, total) while the index is built, from another thread.
            **settings: any other setting by its name (``toolsrv config show`` lists them), or
                ``adapter``, ``profile``, ``threads`` and ``faithful``, which are options only.

        Raises:
            UsageError: there is no such setting, or a value is not acceptable.
        """
        named = {
            "data_dir": data_dir,
            "model": model,
            "mode": mode,
            "calls": calls,
            "own_hosts": own_hosts,
        }
        for key in settings:
            check_key(key, "the arguments", CommandSettings)
        loaded = load(named | settings, origin=lambda key: f"the argument {key}")
        if loaded.note:
            log.warning("%s", loaded.note)
        self._workbench = Workbench(loaded.settings, progress=progress)
        self._open()

    @classmethod
    def from_workbench(cls, workbench: Workbench) -> Self:
        """Return a toolbox over a workbench, which it closes. Not part of the public interface."""
        toolbox = cls.__new__(cls)
        toolbox._workbench = workbench  # noqa: SLF001 - of this class
        toolbox._open()  # noqa: SLF001 - of this class
        return toolbox

    def _open(self) -> None:
        """Make what the toolbox itself holds."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._workbench.settings


class AsyncToolbox(_Base):
    """Search, describe, call and solve from asynchronous code.

    An asynchronous context manager. It belongs to the event loop that first uses it. Methods may
    run at the same time; of solves as many as the setting ``parallel`` says, the others wait.
    """

    def _open(self) -> None:
        self._solves: dict[asyncio.Future[None], Stop] = {}
        self._places = asyncio.Semaphore(self.settings.parallel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop the solves that work and close what is open; it cannot be used after that."""
        for stop in self._solves.values():
            stop.set()
        if self._solves:
            await asyncio.wait(self._solves, timeout=END_S)
        await self._workbench.aclose(last=True)

    async def search(
        self,
        text: str,
        *,
        limit: int = 5,
        offset: int = 0,
        category: str | None = None,
        tool: str | None = None,
        catalog: str | None = None,
        detail: Detail = "full",
        include_dead: bool = False,
        callable_only: bool = False,
    ) -> SearchView:
        """Return the APIs that fit a text, best first.

        The first search builds the index where there is none yet.

        Args:
            text: what the API should do.
            limit: hits of one page, 1 to 100.
            offset: hits to leave out, 0 to 1,000; ``next_offset`` of the page before.
            category: only APIs of this category.
            tool: only APIs of this tool.
            catalog: only APIs of this catalog.
            detail: ``names`` without descriptions, ``summary`` without parameters, or ``full``.
            include_dead: also APIs that failed when they were last checked.
            callable_only: only APIs that can be called now.

        Raises:
            UsageError: the text is empty, a number is out of range, or the catalog is disabled.
            NotFoundError: no such category, tool or catalog.
            DataError: the data folder cannot be used, or memory does not suffice.
        """
        return await in_thread(
            lambda: operations.search(
                self._workbench,
                text,
                limit=limit,
                offset=offset,
                category=category,
                tool=tool,
                catalog=catalog,
                detail=detail,
                include_dead=include_dead,
                callable_only=callable_only,
            )
        )

    async def describe(
        self, api_id: str, *, catalog: str | None = None, schema: bool = False
    ) -> ApiView:
        """Return one API: where a call goes, which keys it needs, its parameters.

        Args:
            api_id: ``id`` of a hit.
            catalog: as this catalog has it, hidden or not.
            schema: with the JSON Schema of its arguments.

        Raises:
            NotFoundError: no such API or catalog; the hint names similar ids.
            DataError: the data folder cannot be used.
        """
        return await in_thread(
            lambda: operations.describe(self._workbench, api_id, catalog=catalog, schema=schema)
        )

    async def call(
        self,
        api_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        files: Files | None = None,
        save_to: str | Path | None = None,
        force: bool = False,
        confirm: AskConsent | None = None,
        any_path: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> CallResult:
        """Call one API and return what came of it; ``result.ok`` says whether it succeeded.

        A call that may change something is made where the setting ``calls`` allows it, or where
        ``confirm`` returns true for exactly this call; else its ``kind`` is ``needs_consent``.
        Bytes of a response are saved, and ``kept`` says where: in the data folder, or at
        ``save_to``, with which a text or JSON value is saved too.

        Args:
            api_id: ``id`` of a hit.
            arguments: JSON values by parameter name.
            files: arguments that are files: a path, or paths where the argument is a list.
            save_to: file or folder to save the response in.
            force: replace a file that is at ``save_to``.
            confirm: asks a person whether this call may be made; None: nobody answered.
            any_path: a person wrote the arguments: ``"@PATH"`` in them stands for any file, and not
                only for one below the setting ``upload_folder``.
            progress: called with (bytes here, bytes in all or None) while a large response is
                written to disk.

        Raises:
            NotFoundError: no such API.
            UsageError: a file cannot be read, or nothing can be saved at ``save_to``.
            UnsavedError: the call was made, and its response cannot be saved.
            DataError: the data folder cannot be used.
        """
        return await operations.call(
            self._workbench,
            api_id,
            arguments,
            files=files,
            save_to=save_to,
            force=force,
            confirm=confirm,
            any_path=any_path,
            progress=progress,
        )

    async def solve(
        self,
        task: str,
        *,
        answer_to: str = "",
        continues: str = "",
        on_event: Callable[[Event], None] = _ignore,
        stop: Stop | None = None,
        confirm: AskConsent | None = None,
        ask_value: AskValue | None = None,
        **options: Unpack[SolveArguments],
    ) -> Outcome:
        """Work on a task until it has an answer with evidence, and keep the run.

        Whatever happens to the search ends as an outcome: see ``Outcome.status``. ``run_id`` is the
        id of the run that is kept; where it cannot be kept the last of ``notes`` says why.

        Args:
            task: the task in plain words.
            answer_to: ``run_id`` of a solve that ended as ``needs_input``; ``task`` is the answer.
            continues: ``run_id`` of a solve whose answer and results this one knows; with an empty
                task it goes on with that of an interrupted one.
            on_event: called with every event, on the event loop's thread.
            stop: set, from any thread, it ends the solve with what is known by then.
            confirm: asks a person for consent to a call that needs it; its time is not counted.
            ask_value: asks a person for a value that a call requires and the task does not say.
            **options: ``category``, ``strategy``, ``seed``, ``max_seconds`` and others, as those of
                ``toolsrv solve``; unset: the setting or the default.

        Raises:
            UsageError: the task is empty or too long, or the options are not for this model.
            NotFoundError: no such category, model or run.
            DataError: the model or the data folder cannot be used, or memory does not suffice.
        """
        text, chosen = await in_thread(
            lambda: operations.prepare(self._workbench, task, options, answer_to, continues)
        )
        stop = stop or Stop()
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._solves[ended] = stop
        try:
            return await operations.solve_and_keep(
                self._workbench,
                text,
                chosen,
                places=self._places,
                on_event=on_event,
                stop=stop,
                confirm=confirm,
                ask_value=ask_value,
            )
        finally:
            del self._solves[ended]
            ended.set_result(None)


class Toolbox(_Base):
    """Search, describe, call and solve from code without an event loop.

    A context manager. Threads may share it; their calls and solves take turns. Ctrl-C during a
    call or a solve stops it and raises KeyboardInterrupt.
    """

    def _open(self) -> None:
        self._async = AsyncToolbox.from_workbench(self._workbench)
        self._runner = asyncio.Runner()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open; the toolbox cannot be used after that."""
        if not _in_event_loop():
            self._close()
            return
        thread = threading.Thread(target=self._close)  # a search is no work of a loop's
        thread.start()
        thread.join()

    def _close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._runner.run(self._async.aclose())
                self._runner.close()

    def search(
        self,
        text: str,
        *,
        limit: int = 5,
        offset: int = 0,
        category: str | None = None,
        tool: str | None = None,
        catalog: str | None = None,
        detail: Detail = "full",
        include_dead: bool = False,
        callable_only: bool = False,
    ) -> SearchView:
        """Return the APIs that fit a text, best first: see ``AsyncToolbox.search``."""
        return operations.search(
            self._workbench,
            text,
            limit=limit,
            offset=offset,
            category=category,
            tool=tool,
            catalog=catalog,
            detail=detail,
            include_dead=include_dead,
            callable_only=callable_only,
        )

    def describe(self, api_id: str, *, catalog: str | None = None, schema: bool = False) -> ApiView:
        """Return one API with its parameters: see ``AsyncToolbox.describe``."""
        return operations.describe(self._workbench, api_id, catalog=catalog, schema=schema)

    def call(
        self,
        api_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        files: Files | None = None,
        save_to: str | Path | None = None,
        force: bool = False,
        confirm: Callable[[Consent], bool | None] | None = None,
        any_path: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> CallResult:
        """Call one API and return what came of it: see ``AsyncToolbox.call``.

        ``confirm`` runs in a thread of its own.
        """
        return self._run(
            lambda: self._async.call(
                api_id,
                arguments,
                files=files,
                save_to=save_to,
                force=force,
                confirm=_in_thread_of_its_own(confirm),
                any_path=any_path,
                progress=progress,
            )
        )

    def solve(
        self,
        task: str,
        *,
        answer_to: str = "",
        continues: str = "",
        on_event: Callable[[Event], None] = _ignore,
        stop: Stop | None = None,
        confirm: Callable[[Consent], bool | None] | None = None,
        ask_value: Callable[[Question], Any] | None = None,
        **options: Unpack[SolveArguments],
    ) -> Outcome:
        """Work on a task until it has an answer with evidence: see ``AsyncToolbox.solve``.

        ``on_event`` runs in the calling thread, ``confirm`` and ``ask_value`` in one of their own.
        """
        return self._run(
            lambda: self._async.solve(
                task,
                answer_to=answer_to,
                continues=continues,
                on_event=on_event,
                stop=stop,
                confirm=_in_thread_of_its_own(confirm),
                ask_value=_in_thread_of_its_own(ask_value),
                **options,
            )
        )

    def _run(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine to its end on the toolbox's own event loop.

        Raises:
            UsageError: an event loop runs in this thread already, or the toolbox is closed.
        """
        if _in_event_loop():
            raise UsageError(
                "Toolbox blocks, and an event loop runs in this thread",
                hint="use AsyncToolbox here, and await its methods",
            )
        with self._lock:
            if self._closed:
                raise UsageError("this toolbox is closed", hint="open a new one")
            return self._runner.run(work())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _leave_stdin_open() -> None:
    """Keep ``sys.stdin`` from being closed when the process ends.

    A question that nobody answered may wait for a line still. Its thread holds the lock of
    ``sys.stdin`` then, and an interpreter that cannot have that lock at its end aborts.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(sys.stdin))


def _in_thread_of_its_own(
    ask: Callable[[T], R] | None,
) -> Callable[[T], Coroutine[Any, Any, R]] | None:
    """Return a function that waits, so that Ctrl-C is heard while a person is asked."""
    if ask is None:
        return None

    async def asked(wanted: T) -> R:
        try:
            return await in_thread(lambda: ask(wanted), name="toolsrv-question")
        except asyncio.CancelledError:
            _leave_stdin_open()
            raise

    return asked
