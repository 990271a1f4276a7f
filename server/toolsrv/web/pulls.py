"""Models that the web page brings from a hub: one at a time, with its progress."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from toolsrv import faults
from toolsrv.downloads import endpoint
from toolsrv.model_list import ModelList
from toolsrv.model_pull import parse_repository, pull_gguf
from toolsrv.plain import plain
from toolsrv.threads import in_thread
from toolsrv_registry.errors import BusyError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.hub import RemoteFile

log = logging.getLogger(__name__)
PullState = Literal["", "working", "done", "stopped", "failed"]


class Pull(BaseModel):
    """How far a download is. ``file`` is the part that comes now, ``done`` and ``total`` its bytes."""

    state: PullState = ""
    name: str = ""
    file: str = ""
    done: int = 0
    total: int = 0
    said: str = ""
    hint: str = ""

    @property
    def percent(self) -> float:
        """How much of the file is here."""
        return 100 * self.done / self.total if self.total else 0.0


class ModelPulls:
    """The downloads of one server; all methods belong to its event loop."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._models = ModelList(data_dir)
        self._stop = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self.now = Pull()

    def start(self, text: str) -> None:
        """Begin to bring a model: a short name, or OWNER/NAME[:FILE].

        Raises:
            BusyError: another one comes.
            UsageError: it names no model, or one that is no GGUF file.
        """
        if self.now.state == "working":
            raise BusyError(f"{self.now.name} is being brought", hint="wait for it, or stop it")
        from toolsrv_runtime.hub import find_recommended

        text = text.strip()
        known = find_recommended(text)
        if known is not None and not known.file:
            raise UsageError(
                f"{known.name} is a checkpoint that is converted here, which takes its time",
                hint=f"in a terminal: toolsrv model pull {known.name}",
            )
        name = None if known is None else known.name
        repo, file = parse_repository(text) if known is None else (known.repo, known.file)
        self._stop.clear()
        self.now = Pull(state="working", name=plain(name or text))
        self._task = asyncio.create_task(self._work(repo, file, name))

    def stop(self) -> None:
        """Stop the download; what is here stays, and the next one goes on from there."""
        self._stop.set()

    async def _work(self, repo: str, file: str, name: str | None) -> None:
        try:
            entry = await in_thread(lambda: pull_gguf(self._models, repo, file, name, self._bring))
        except _StoppedError as error:
            self._end("stopped", error.message, error.hint)
        except ToolsrvError as error:
            self._end("failed", plain(error.message), plain(error.hint))
        except Exception as error:  # noqa: BLE001 - kept as a fault, and shown on the page
            line = faults.summary(error, self._data_dir)
            log.error(line)  # noqa: TRY400 - the traceback is in the file that it names
            self._end("failed", line, "")
        else:
            hint = f"use it from the next start on: toolsrv model use {entry.name}"
            self._end("done", f"{entry.name} is here: {entry.path}", hint)

    def _end(self, state: PullState, said: str, hint: str) -> None:
        self.now = self.now.model_copy(update={"state": state, "said": said, "hint": hint})

    def _bring(self, files: list[RemoteFile], folder: Path) -> list[Path]:
        """Bring the parts of a model; runs in a thread, and replaces ``now`` at once."""
        from toolsrv_runtime.hub.download import pull

        paths = []
        for one in files:
            shown = self.now.model_copy(
                update={"file": plain(Path(one.name).name), "total": one.size_bytes, "done": 0}
            )

            def progress(done: int, total: int, shown: Pull = shown) -> None:
                if self._stop.is_set():
                    raise _StoppedError("the download was stopped", hint="it can go on later")
                self.now = shown.model_copy(update={"done": done, "total": total})

            self.now = shown
            paths.append(pull(one, folder, endpoint=endpoint(), progress=progress))
        return paths


class _StoppedError(ToolsrvError):
    """A person stopped a download."""
