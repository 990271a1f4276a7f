"""One moving line at the foot of a terminal, on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from toolsrv.cli.output import console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

REFRESHES_PER_S = 8


class StatusLine(ABC):
    """A context with a line that says what ``status`` returns. ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = console(err=True)
        self._live: Live | None = None

    @abstractmethod
    def status(self) -> RenderableType:
        """Return the line as it is now; called from a thread of rich's."""

    def __enter__(self) -> Self:
        self._open()
        return self

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Have no line in the block."""
        shown = self._live is not None
        self.close()
        try:
            yield
        finally:
            if shown:
                self._open()

    def _open(self) -> None:
        if not self._quiet and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(
                console=self._console,
                get_renderable=self.status,
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
            )
            self._live.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the terminal back; may be called again."""
        if self._live is not None:
            self._live.stop()
            self._live = None
