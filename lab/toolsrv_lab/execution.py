"""Run long lab work as idempotent tasks: in this process, or on a Ray cluster.

A pool makes the result of each task and hands it to ``keep``, which the caller's process alone runs: so
there is one store, and what it lacks is what a resumed run has left to do. A task may be made twice
(a worker was lost after its work and before its result arrived); it depends on nothing but itself.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

INSTALL = "pip install 'toolsrv[ray]', the same version as the cluster's"
MOST_LOST = 3
"""Workers that may be lost over one task before it counts as what kills them."""
_CONNECT_S = 10.0
_START_S = 300.0


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


class LocalPool(Generic[T, R]):
    """Up to ``size`` tasks at a time on the event loop of this process."""

    def __init__(self, make: Callable[[T], Awaitable[R]], size: int) -> None:
        self._make = make
        self._size = size

    async def run(self, tasks: Iterable[T], keep: Callable[[T, R], Awaitable[None]]) -> None:
        """See ``Pool.run``."""
        left = iter(tasks)

        async def work() -> None:
            for task in left:
                try:
                    made = await self._make(task)
                except ToolsrvError as error:
                    raise TaskFailedError(task, error) from error
                await keep(task, made)

        await _all([work() for _ in range(self._size)])


class Worker(Protocol):
    """Does tasks one after the other, in a process of its own."""

    def run(self, task: str) -> str:
        """Return the result of a task. Raises ToolsrvError where it failed."""


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
    """Actors of a Ray cluster, each with a ``Worker``; ``encode`` and ``decode`` write as text.

    A lost worker's task goes back to the others, and another worker is asked for in its place.
    ``open_worker`` is called once in each actor; it must be importable there.
    """

    cluster: Cluster
    open_worker: Callable[[], Worker]
    encode: Callable[[T], str]
    decode: Callable[[str], R]

    async def run(self, tasks: Iterable[T], keep: Callable[[T, R], Awaitable[None]]) -> None:
        """See ``Pool.run``.

        Raises:
            UsageError: Ray is not installed, or the cluster cannot be reached.
            DataError: no worker starts, or one task loses ``MOST_LOST`` workers.
        """
        ray = load_ray()
        left = deque(tasks)
        if not left:
            return
        await asyncio.to_thread(_connect, ray, self.cluster.address)
        try:
            await _RayRun(self, ray, left, keep).run()
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
        self._left = left
        self._undone = len(left)
        self._keep = keep
        self._lost: Counter[int] = Counter()
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
                continue
            self._live += 1
            try:
                await self._serve(actor)
            except self._ray.exceptions.RayActorError:
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
        actor = kind.remote(self._pool.open_worker)
        ready = asyncio.ensure_future(_reply(actor.ready.remote()))
        try:
            while not ready.done():
                await asyncio.wait({ready}, timeout=_START_S)
                if not ready.done() and not self._live:
                    _nobody()
            _read_reply(ready.result())
        except self._ray.exceptions.RayActorError:
            self._lose(-1)
            return None
        except BaseException:
            ready.cancel()
            self._ray.kill(actor)
            raise
        return actor

    async def _serve(self, actor: Any) -> None:
        while (task := await self._next()) is not None:
            try:
                text = await _reply(actor.run.remote(self._pool.encode(task)))
            except BaseException as error:
                async with self._more:
                    self._left.appendleft(task)
                    self._more.notify()
                if isinstance(error, self._ray.exceptions.RayActorError):
                    self._lose(id(task))
                raise
            try:
                made = self._pool.decode(_read_reply(text))
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

    def _lose(self, task: int) -> None:
        self._lost[task] += 1
        if self._lost[task] >= MOST_LOST:
            raise DataError(
                f"{MOST_LOST} workers of the cluster were lost "
                f"{'at one task' if task >= 0 else 'before they began'}",
                hint="look at the logs of the Ray workers: often memory ran out",
            )


class _Actor:
    """What runs in the cluster; tells errors as data, so that no exception crosses."""

    def __init__(self, open_worker: Callable[[], Worker]) -> None:
        self._open = open_worker
        self._worker: Worker | None = None

    def ready(self) -> str:
        return self._telling(lambda: "")

    def run(self, task: str) -> str:
        return self._telling(lambda: self._opened().run(task))

    def _opened(self) -> Worker:
        if self._worker is None:
            self._worker = self._open()
        return self._worker

    def _telling(self, work: Callable[[], str]) -> str:
        try:
            self._opened()
            return json.dumps({"result": work()})
        except ToolsrvError as error:
            return json.dumps({"error": error.message, "hint": error.hint})


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
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(
            f"the Ray cluster {address} cannot be used: {said[0].rstrip(':')}",
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
