"""Processors of llama.cpp: shared CPU cores, decode threads, and GPU placement of layers.

Reads ggml's registry for backends and devices. llama.cpp computes with OpenMP, whose library keeps
a team for every thread that ever decoded with several; where all teams together exceed the cores,
they sleep at barriers instead of spinning, and a token took 6 ms instead of 0.9 on two cores. So
parallel decodes run on a few dedicated threads, no more than decode at the same time. Thread-safe;
does not import llama.cpp at import time.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, Literal, TypeVar

from toolsrv_runtime.requirements import Footprint, format_bytes

_T = TypeVar("_T")


class DecodeThreads:
    """Idle decode threads; safe for threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._idle: list[_DecodeThread] = []

    def run(self, work: Callable[[], _T], *, alone: bool) -> _T:
        """Run ``work`` on a decode thread and return what it returns, or raise what it raises.

        ``alone``: it uses all cores, so idle decode threads end, and their OpenMP teams with them.
        Returns after the work has ended, also where an interrupt comes meanwhile.
        """
        with self._turn:
            crew = self._idle.pop() if self._idle else _DecodeThread()
            spare = list(self._idle) if alone else []
            if alone:
                self._idle.clear()
        for one in spare:
            one.dismiss()
        job = _Job(work)
        try:
            crew.do(job)
        finally:
            if job.over:  # else an interrupt came where nothing in Python can keep it off
                with self._turn:
                    self._idle.append(crew)
        return job.result()


class _Job(Generic[_T]):
    """Work, and what came of it once it is ``over``."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.over = False
        self._work = work
        self._made: list[_T] = []
        self._error: BaseException | None = None
        # A bare lock: an executor's future takes 0.1 ms from one thread to the other and back where
        # the cores are busy, a tenth of what it is asked for.
        self._ended = threading.Lock()
        self._ended.acquire()

    def do(self) -> None:
        """Do the work, the first time that this is called."""
        if self.over:
            return
        try:
            self._made.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self._error = error
        self.over = True
        self._ended.release()

    def wait(self) -> None:
        """Return when it is over; once."""
        self._ended.acquire()

    def result(self) -> _T:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._made[0]


class _DecodeThread:
    """A thread that does one job after the other."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._stand_by, name="toolsrv-crew", daemon=True)
        self._thread.start()

    def do(self, job: _Job[Any]) -> None:
        """Do a job and return when it is over, also where interrupts come meanwhile."""
        interrupt: BaseException | None = None
        while not job.over:
            try:
                # Again after an interrupt, which may have come before it: a job is done once.
                self._jobs.put(job)
                job.wait()
            except BaseException as error:  # noqa: BLE001 - raised when the job is over
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def dismiss(self) -> None:
        """End the thread; its OpenMP team goes with it."""
        self._jobs.put(None)
        self._thread.join()

    def _stand_by(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.do()


DECODE_THREADS = DecodeThreads()
"""Those of this process: OpenMP counts all of its threads together."""


_WINDOW_S = 0.08
"""Decodes of so long together say whether the cores were ours; the clock of the processor is coarse."""

_MISSED, _MISSED_SHARE = 0.4, 0.1
"""Cores, and their share of all, that may be missing before somebody else is taken to need one."""

_IN_A_ROW = 2
"""Such findings that count: the first decodes of a model wait for its file instead."""

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 4.0


class SharedCores:
    """Lends ``count`` threads to decodes: ``most`` at once, all to who is alone, else equal shares.

    ``users`` is how many they are shared among, whether each decodes just now or not; who owns the
    users keeps it right.

    The threads of a decode wait for each other many times in it, so one that another process keeps
    from its core holds up all: on two cores beside a busy process a token takes ten times as long.
    Where the processor time (``cpu``) of decodes falls behind the ``clock``, fewer are lent for a
    while, longer each time that it is still so. Seen only while a call is ``alone``: others of this
    process wait for the interpreter, and what is decoded with them. Not ``watched`` where a GPU
    does the work.
    """

    def __init__(
        self,
        count: int,
        *,
        most: int | None = None,
        watched: bool = True,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.users = 1
        self.alone = True
        self._count = count
        self._most = self._able = min(most or count, count)
        self._watched = watched
        self._free = count
        self._turn = threading.Condition()
        self._line: deque[object] = deque()
        self._clock = clock
        self._cpu = cpu
        self._wall_s = self._cpu_s = 0.0
        self._in_a_row = 0
        self._pause_s = _FIRST_PAUSE_S
        self._until = -math.inf

    def run(self, work: Callable[[int], _T]) -> _T:
        """Run ``work`` with a number of threads when they are free; several use a decode thread."""
        with self.lend() as threads:
            if threads == 1:
                return work(1)
            return DECODE_THREADS.run(lambda: work(threads), alone=threads == self._count)

    @contextlib.contextmanager
    def lend(self) -> Iterator[int]:
        """Lend some threads, at least one, to who asked first."""
        ticket = object()
        with self._turn:
            self._line.append(ticket)
            try:
                while self._line[0] is not ticket or not self._free:
                    self._turn.wait()
                most = self._able if self._clock() < self._until else self._most
                share = max(1, self._count // max(1, self.users))
                lent = min(self._free, most, share)
                self._free -= lent
            finally:
                self._line.remove(ticket)
                self._turn.notify_all()
        began, used = self._clock(), self._cpu()
        try:
            yield lent
        finally:
            wall, used = self._clock() - began, self._cpu() - used
            with self._turn:
                self._free += lent
                if self._watched and self.alone and lent == self._most > 1:
                    self._measure(wall, used)
                self._turn.notify_all()

    def _measure(self, wall: float, used: float) -> None:
        """See whether a decode on all threads had a core for each."""
        self._wall_s += wall
        self._cpu_s += used
        if self._wall_s < _WINDOW_S:
            return
        missed = self._most - self._cpu_s / self._wall_s
        self._wall_s = self._cpu_s = 0.0
        if missed < max(_MISSED, _MISSED_SHARE * self._most):
            self._in_a_row = 0
            self._pause_s = _FIRST_PAUSE_S
            return
        self._in_a_row += 1
        if self._in_a_row >= _IN_A_ROW:
            self._able = max(1, self._most - math.ceil(missed))
            self._until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)


Kind = Literal["cpu", "gpu", "igpu", "accelerator"]

_KINDS: tuple[Kind, ...] = ("cpu", "gpu", "igpu", "accelerator")
_NO_GPU = frozenset({"CPU", "BLAS", "RPC"})
"""Backends that are no GPU of this machine."""

_SPARE = 512 << 20
"""Bytes of a GPU that stay free: for its driver's own buffers, and for the screen."""

_REBUILD = "pip install --force-reinstall --no-cache-dir llama-cpp-python"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of ggml; ``free`` and ``total`` are bytes of its memory, 0 where it does not say."""

    name: str
    description: str
    kind: Kind
    free: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model is computed.

    ``gpu_layers`` of ``layers`` (its blocks and its output) lie on the GPU; ``device`` names it in
    words, ``why`` says why not all of them do, or none ("" where all do), and ``remedy`` the
    command that changes that ("" where none does).
    """

    gpu_layers: int
    layers: int
    device: str
    why: str = ""
    remedy: str = ""

    def without_gpu(self, why: str) -> Placement:
        """Return the placement on the processor instead."""
        return Placement(0, self.layers, "processor", why)


def backends() -> tuple[str, ...]:
    """Return the names of the backends that llama.cpp was built with, as "CPU" and "CUDA"."""
    ggml = _ggml()
    count = ggml.ggml_backend_reg_count()
    return tuple(
        ggml.ggml_backend_reg_name(ggml.ggml_backend_reg_get(at)).decode() for at in range(count)
    )


def devices() -> tuple[Device, ...]:
    """Return the devices that the backends found."""
    ggml, found = _ggml(), []
    for at in range(ggml.ggml_backend_dev_count()):
        one = ggml.ggml_backend_dev_get(at)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        ggml.ggml_backend_dev_memory(one, ctypes.byref(free), ctypes.byref(total))
        kind = ggml.ggml_backend_dev_type(one)
        found.append(
            Device(
                ggml.ggml_backend_dev_name(one).decode(errors="replace"),
                ggml.ggml_backend_dev_description(one).decode(errors="replace"),
                _KINDS[kind] if 0 <= kind < len(_KINDS) else "accelerator",
                free.value,
                total.value,
            )
        )
    return tuple(found)


def shared_memory() -> bool:
    """Whether the GPUs here use the processor's own memory, as Apple's and built-in ones do."""
    gpus = [one for one in devices() if one.kind in ("gpu", "igpu")]
    return sys.platform == "darwin" or any(one.kind == "igpu" for one in gpus)


def place_layers(
    *,
    asked: int | None,
    layers: int,
    needs: Footprint,
    cells: int,
    built: Sequence[str],
    found: Sequence[Device],
    hardware: str = "",
) -> Placement:
    """Return where to compute a model of ``layers`` blocks with room for ``cells`` tokens.

    ``asked`` is the number of layers for the GPU, None for all that fit. ``built`` are
    ``backends()``, ``found`` ``devices()``, ``hardware`` is ``gpu_hardware()``.
    """
    whole = layers + 1
    gpus = [one for one in found if one.kind in ("gpu", "igpu")]
    if not gpus:
        return Placement(0, whole, "processor", *_no_gpu(built, hardware))
    names = " and ".join(f"{one.description} ({one.name})" for one in gpus)
    if asked == 0:
        return Placement(0, whole, "processor", f"gpu_layers is 0; there is {names}")
    fitting = fitting_layers(layers, needs, cells, sum(one.free for one in gpus))
    wanted = min(whole, fitting if asked is None else asked)
    device, why, remedy = names, "", ""
    if wanted < whole:
        device = f"{names}: {wanted} of {whole} layers"
        why = f"{format_bytes(sum(one.free for one in gpus))} of its memory are free"
        if asked is not None:
            why = f"gpu_layers is {asked}"
    if asked is not None and wanted > fitting:
        why, remedy = f"only {fitting} layers are likely to fit", "toolsrv config unset gpu_layers"
    if wanted == 0:
        return Placement(0, whole, "processor", f"no layer fits {names}: {why}")
    return Placement(wanted, whole, device, why, remedy)


def fitting_layers(layers: int, needs: Footprint, cells: int, free: int) -> int:
    """Return how many of a model's layers, output included, fit ``free`` bytes of a GPU.

    All where a GPU does not say what is free (0).
    """
    whole = layers + 1
    if free == 0:
        return whole
    each = needs.weights / whole + needs.per_token * cells / max(1, layers)
    return max(0, min(whole, int((free - _SPARE - needs.scratch) / max(1.0, each))))


def gpu_hardware(*, system: str = sys.platform, root: Path = Path("/")) -> str:
    """Return the backend for the GPU that this machine seems to have, as CMake calls it; or ""."""
    if system == "darwin":
        return "METAL"
    nvidia = (root / "proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi")
    if nvidia:
        return "CUDA"
    drawing = root / "dev/dri"
    return "VULKAN" if drawing.is_dir() and any(drawing.glob("renderD*")) else ""


def rebuild_command(backend: str) -> str:
    """Return the command that builds llama.cpp for a backend: CUDA, VULKAN or METAL."""
    return f'CMAKE_ARGS="-DGGML_{backend}=on" {_REBUILD}'


def _no_gpu(built: Sequence[str], hardware: str) -> tuple[str, str]:
    """Return why no GPU is used, and the command that changes it."""
    kinds = [one for one in built if one not in _NO_GPU]
    if kinds:
        return f"llama.cpp was built for {' and '.join(kinds)}, which found no GPU", ""
    if hardware:
        why = f"llama.cpp was built without a GPU backend; this machine seems to take {hardware}"
        return why, rebuild_command(hardware)
    return "llama.cpp was built without a GPU backend, and no GPU was seen here", ""


def _ggml() -> Any:
    import llama_cpp  # noqa: PLC0415 - heavy

    ggml: Any = llama_cpp.llama_cpp._lib  # noqa: SLF001 - it re-exports ggml's functions
    for name, result in (
        ("reg_get", ctypes.c_void_p),
        ("reg_name", ctypes.c_char_p),
        ("dev_get", ctypes.c_void_p),
        ("dev_name", ctypes.c_char_p),
        ("dev_description", ctypes.c_char_p),
    ):
        getattr(ggml, f"ggml_backend_{name}").restype = result
    for name in ("reg_count", "dev_count"):
        getattr(ggml, f"ggml_backend_{name}").restype = ctypes.c_size_t
    ggml.ggml_backend_dev_type.restype = ctypes.c_int
    ggml.ggml_backend_dev_memory.restype = None
    for name in ("reg_get", "dev_get"):
        getattr(ggml, f"ggml_backend_{name}").argtypes = [ctypes.c_size_t]
    for name in ("reg_name", "dev_name", "dev_description", "dev_type"):
        getattr(ggml, f"ggml_backend_{name}").argtypes = [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    ggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    return ggml
