"""Run long lab work as idempotent tasks: in this process, or on a Ray cluster.

A pool makes the result of each task with a backend and hands it to ``keep``, which the caller's
process alone runs: so there is one store, and what it lacks is what a resumed run has left to do. A
task may be made twice (a worker was lost after its work and before its result arrived); it depends
on nothing but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import json
import socket
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Make = Callable[[T], Awaitable[R]]
"""Makes the result of a task, one after the other; raises ToolsrvError where that fails."""
Slots = Callable[[], AbstractAsyncContextManager[Make[T, R]]]
"""Opens what one task at a time needs for itself, on resources that the slots of a process share."""
Backend = Callable[[], AbstractAsyncContextManager[Slots[T, R]]]
"""Opens the resources of one process that tasks are made with: an engine, a registry, a caller.

It is called outside of the event loop, and what it returns is entered there.
"""

INSTALL = "pip install 'toolsrv[ray]', the same version as the cluster's"
MOST_LOST = 3
"""Workers that may be lost over one task before it counts as what kills them."""
_CONNECT_S = 10.0
_START_S = 300.0
_AGAIN_S = 1.0
_SPARE_THREADS = 4
_MESSAGE_LIMIT = 400


class TaskFailedError(Exception):
    """A task could not be done; ``error`` says why."""

    def __init__(self, task: Any, error: ToolsrvError) -> None:
        super().__init__(error.message)
        self.task = task
        self.error = error


class Pool(Protocol[T, R_co]):
    """Makes results of tasks."""

    async def run(self, tasks: Iterable[T], keep: Callable[[T, R_co], Awaitable[None]]) -> None:
        """Make the result of each task and hand it to ``keep``, in any order.

        Raises:
            TaskFailedError: a task failed; no further one is begun.
            ToolsrvError: there is nobody to do the work.
        """


def stateless(make: Make[T, R]) -> Backend[T, R]:
    """Return the backend of tasks that nothing has to be opened for."""
    return lambda: contextlib.nullcontext(lambda: contextlib.nullcontext(make))


def adapted(backend: Backend[T, R], change: Callable[[Make[T, R]], Make[S, R]]) -> Backend[S, R]:
    """Return the backend of tasks of another type; ``change`` makes its ``Make`` of the other's."""

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Slots[S, R]]:
        async with backend() as slots:

            @contextlib.asynccontextmanager
            async def slot() -> AsyncIterator[Make[S, R]]:
                async with slots() as make:
                    yield change(make)

            yield slot

    return opened


class LocalPool(Generic[T, R]):
    """Up to ``size`` tasks at a time on the event loop of this process.

    A run without tasks does not open the backend.
    """

    def __init__(self, backend: Backend[T, R], size: int) -> None:
        self._backend = backend
        self._size = size

    async def run(self, tasks: Iterable[T], keep: Callable[[T, R], Awaitable[None]]) -> None:
        """See ``Pool.run``."""
        left = deque(tasks)
        if not left:
            return
        size = min(self._size, len(left))
        # A model's reply blocks a thread, and an event loop has few by default: cores + 4.
        threads = ThreadPoolExecutor(2 * size + _SPARE_THREADS, thread_name_prefix="task")
        asyncio.get_running_loop().set_default_executor(threads)

        async def work(slots: Slots[T, R]) -> None:
            async with slots() as make:
                while left:
                    task = left.popleft()
                    try:
                        made = await make(task)
                    except ToolsrvError as error:
                        raise TaskFailedError(task, error) from error
                    await keep(task, made)

        opened = await asyncio.to_thread(self._backend)  # it may load a model
        async with opened as slots:
            await _all([work(slots) for _ in range(size)])


@dataclass(frozen=True, slots=True)
class Codec(Generic[T, R]):
    """Text forms of tasks and results between processes; the functions are importable there."""

    write_task: Callable[[T], str]
    read_task: Callable[[str], T]
    write_result: Callable[[R], str]
    read_result: Callable[[str], R]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster by address (``host:port``, ``auto``), and what is asked of it.

    ``workers`` actors with ``cpus`` and ``gpus`` each.
    """

    address: str
    workers: int
    cpus: float = 1.0
    gpus: float = 0.0


@dataclass(frozen=True)
class RayPool(Generic[T, R]):
    """Actors of a Ray cluster, each with a backend of its own.

    A lost worker's task goes back to the others, and another worker is asked for in its place;
    ``on_lost`` is called for each. ``backend`` is opened once in each actor, with one slot; it must
    be importable there.
    """

    cluster: Cluster
    backend: Backend[T, R]
    codec: Codec[T, R]
    on_lost: Callable[[], None] = lambda: None

    async def run(self, tasks: Iterable[T], keep: Callable[[T, R], Awaitable[None]]) -> None:
        """See ``Pool.run``.

        Raises:
            UsageError: Ray is not installed, or the cluster cannot be reached.
            DataError: no worker starts, they have another version of toolsrv, or one task loses
                ``MOST_LOST`` workers.
        """
        ray = load_ray()
        left = deque(tasks)
        if not left:
            return
        with contextlib.redirect_stdout(sys.stderr):  # Ray prints what becomes of its workers
            await asyncio.to_thread(_connect, ray, self.cluster.address)
            try:
                await _RayRun(self, ray, left, keep).run()
            except ray.exceptions.RayTaskError:
                raise  # a fault of ours in an actor
            except ray.exceptions.RayError as error:
                raise DataError(
                    f"the Ray cluster {self.cluster.address} failed: {_one_line(error, last=True)}",
                    hint="start it again; the same command goes on after what is done",
                ) from error
            finally:
                await asyncio.to_thread(ray.shutdown)


class _RayRun(Generic[T, R]):
    """One run of a ``RayPool``: what is left to do, and who does it."""

    def __init__(
        self,
        pool: RayPool[T, R],
        ray: Any,
        left: deque[T],
        keep: Callable[[T, R], Awaitable[None]],
    ) -> None:
        self._pool = pool
        self._ray = ray
        # Where memory ran out Ray says so, and not that the actor died of it.
        self._lost_errors = (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError)
        self._left = left
        self._undone = len(left)
        self._keep = keep
        self._lost: Counter[int] = Counter()
        self._lost_before = 0
        self._live = 0
        self._done = asyncio.Event()
        self._more = asyncio.Condition()

    async def run(self) -> None:
        cluster = self._pool.cluster
        workers = min(cluster.workers, self._undone)
        actor = self._ray.remote(
            num_cpus=cluster.cpus, num_gpus=cluster.gpus, max_restarts=0, max_task_retries=0
        )(_Actor)
        await _all([self._work(actor) for _ in range(workers)], until=self._done)

    async def _work(self, kind: Any) -> None:
        """Do tasks with one actor after the other until all are done."""
        while True:
            actor = await self._started(kind)
            if actor is None:
                await asyncio.sleep(_AGAIN_S)
                continue
            self._live += 1
            try:
                await self._serve(actor)
            except self._lost_errors:
                pass  # its task is back among the others
            else:
                return
            finally:
                self._live -= 1
                self._ray.kill(actor)

    async def _started(self, kind: Any) -> Any:
        """Return an actor that is ready, None where it was lost before.

        Raises:
            DataError: it says why it cannot work, or nobody has started for a long time.
        """
        actor = kind.remote(self._pool.backend, self._pool.codec)
        ready = asyncio.ensure_future(_reply(actor.ready.remote()))
        try:
            while not ready.done():
                await asyncio.wait({ready}, timeout=_START_S)
                if not ready.done() and not self._live:
                    _nobody()
            _check_version(_read_reply(ready.result()))
        except self._lost_errors as error:
            self._lose_before(error)
            return None
        except BaseException:
            ready.cancel()
            self._ray.kill(actor)
            raise
        self._lost_before = 0
        return actor

    async def _serve(self, actor: Any) -> None:
        while (task := await self._next()) is not None:
            try:
                text = await _reply(actor.run.remote(self._pool.codec.write_task(task)))
            except BaseException as error:
                async with self._more:
                    self._left.appendleft(task)
                    self._more.notify()
                if isinstance(error, self._lost_errors):
                    self._lose(id(task), error)
                raise
            try:
                made = self._decoded(_read_reply(text))
            except ToolsrvError as error:
                raise TaskFailedError(task, error) from error
            await self._keep(task, made)
            async with self._more:
                self._undone -= 1
                if not self._undone:
                    self._done.set()
                self._more.notify_all()

    async def _next(self) -> T | None:
        """Return a task; waits while others are at work, as theirs may come back."""
        async with self._more:
            await self._more.wait_for(lambda: bool(self._left) or not self._undone)
            return self._left.popleft() if self._left else None

    def _decoded(self, text: str) -> R:
        try:
            return self._pool.codec.read_result(text)
        except ValueError as error:
            raise DataError(
                f"the result of a worker cannot be read: {_one_line(error)}", hint=_SAME_VERSION
            ) from error

    def _lose(self, task: int, error: Exception) -> None:
        self._pool.on_lost()
        self._lost[task] += 1
        if self._lost[task] >= MOST_LOST:
            raise DataError(
                f"{MOST_LOST} workers of the cluster were lost at one task: {_one_line(error, last=True)}",
                hint="look at the logs of the Ray workers: often memory ran out",
            ) from error

    def _lose_before(self, error: Exception) -> None:
        """Count an actor that was lost before it began while none works."""
        self._pool.on_lost()
        if self._live:
            return  # where others work, a node that cannot start one is no end
        self._lost_before += 1
        if self._lost_before >= MOST_LOST:
            raise DataError(
                f"{MOST_LOST} workers of the cluster were lost before they began: "
                f"{_one_line(error, last=True)}",
                hint=f"{_SAME_VERSION}, or look at the logs of the Ray workers",
            ) from error


class _Actor:
    """What runs in the cluster; tells errors as data, so that no exception crosses."""

    def __init__(self, backend: Backend[Any, Any], codec: Codec[Any, Any]) -> None:
        self._backend = backend
        self._codec = codec
        self._runner = asyncio.Runner()
        self._open = contextlib.AsyncExitStack()  # it ends with the process
        self._make: Make[Any, Any] | None = None

    def ready(self) -> str:
        """Return the version of toolsrv, with all resources open."""
        return self._replied(lambda: (self._opened(), _version())[1])

    def run(self, task: str) -> str:
        """Return the result of a task."""
        return self._replied(lambda: self._codec.write_result(self._result(task)))

    def _result(self, task: str) -> Any:
        make = self._opened()

        async def main() -> Any:
            return await make(self._codec.read_task(task))

        return self._runner.run(main())

    def _opened(self) -> Make[Any, Any]:
        if self._make is None:
            backend = self._backend()  # outside of the loop: it may load a model

            async def enter() -> Make[Any, Any]:
                slots = await self._open.enter_async_context(backend)
                return await self._open.enter_async_context(slots())

            self._make = self._runner.run(enter())
        return self._make

    def _replied(self, work: Callable[[], str]) -> str:
        try:
            return json.dumps({"result": work()})
        except ToolsrvError as error:
            return json.dumps({"error": error.message, "hint": error.hint})


_SAME_VERSION = "install the same version of toolsrv on every node of the cluster"


def _version() -> str:
    """Return the version of the installed toolsrv, "" where it is not installed."""
    try:
        return importlib.metadata.version("toolsrv")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _check_version(theirs: str) -> None:
    """Raise DataError unless a worker has this version of toolsrv."""
    if theirs != _version():
        raise DataError(
            f"a worker of the cluster has toolsrv {theirs or 'of no version'}, "
            f"this command {_version() or 'none'}",
            hint=_SAME_VERSION,
        )


def _one_line(error: BaseException, *, last: bool = False) -> str:
    """Return an error's message on one line, or its last line alone; cut to ``_MESSAGE_LIMIT``."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = " ".join((lines[-1] if last else " ".join(lines)).split())
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]} …"


def load_ray() -> Any:
    """Return the module ``ray``. Raises UsageError where it is not installed."""
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise UsageError("this needs ray, which is not installed", hint=INSTALL) from error


def _connect(ray: Any, address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        if port.isdecimal():  # Ray itself tries for minutes
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        raise UsageError(
            f"the Ray cluster {address} cannot be used: {_one_line(error)}",
            hint="start it with ray start --head, with the same versions of Ray and Python",
        ) from error


def _nobody() -> NoReturn:
    raise DataError(
        f"no worker of the cluster has started in {_START_S:.0f} s",
        hint="look at ray status: are the CPUs and GPUs there that are asked for?",
    )


async def _reply(reference: Any) -> str:
    return str(await reference)


def _read_reply(text: str) -> str:
    """Return the result in an actor's reply. Raises DataError with the error in it."""
    value = json.loads(text)
    if "error" in value:
        raise DataError(str(value["error"]), hint=str(value.get("hint", "")))
    return str(value["result"])


async def _all(
    work: Iterable[Coroutine[Any, Any, None]], *, until: asyncio.Event | None = None
) -> None:
    """Await all work, or ``until`` is set; after a first error or a cancellation none goes on."""
    running = [asyncio.ensure_future(one) for one in work]
    over = [asyncio.ensure_future(until.wait())] if until else []
    try:
        pending: set[asyncio.Future[Any]] = {*running, *over}
        while any(one in pending for one in running) and not (until and until.is_set()):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
    finally:
        for one in [*running, *over]:
            one.cancel()
        await asyncio.gather(*running, *over, return_exceptions=True)
