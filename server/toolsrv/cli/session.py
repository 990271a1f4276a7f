"""Session of a command: global flags, and the settings in force."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import platformdirs

from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:  # pydantic is not needed for --help
    from toolsrv.settings import Loaded
    from toolsrv.toolbox import AsyncToolbox, Toolbox
    from toolsrv.workbench import Workbench

_OTHERS = 0o077


@dataclass
class Session:
    """One invocation of the program."""

    flags: dict[str, Any] = field(default_factory=dict)
    debug: bool = False
    umask: int = 0
    """What new files and folders of this process are without, as its starter had it."""
    told: bool = False
    """Whether settings that have no effect were noted."""

    @contextlib.contextmanager
    def private(self) -> Iterator[None]:
        """Make new files and folders for this user alone: tasks and responses are in them."""
        self.umask = os.umask(_OTHERS)
        try:
            yield
        finally:
            os.umask(self.umask)

    def public(self) -> None:
        """Make new files as the starter has them: models and catalogs are for others too."""
        os.umask(self.umask)

    def load(self, **flags: Any) -> Loaded:
        """Return the settings with a command's flags on top; note once what has no effect.

        Raises:
            UsageError: A value is not acceptable.
        """
        from toolsrv import settings
        from toolsrv.cli.output import note

        loaded = settings.load(self.flags | self._current(flags))
        if loaded.note and not self.told:
            self.told = True
            note(f"note: {loaded.note}")
        return loaded

    def _current(self, flags: dict[str, Any]) -> dict[str, Any]:
        """Return flags with the options that share a setting, or had one, made one value."""
        if name := flags.pop("engine_model", None):
            from toolsrv import settings
            from toolsrv_runtime.models.openai import is_url

            model = str(flags.get("model") or settings.load(self.flags).settings.model)
            if is_url(model):
                flags["model"] = ",".join(f"{one}#{name}" for one in model.split(","))
        whole, named = flags.pop("faithful", False), flags.pop("faithful_in", None)
        if whole or named:
            flags["faithful"] = ",".join([*["all"] * whole, *[named] * bool(named)])
        return flags

    def workbench(self, **flags: Any) -> Workbench:
        """Return a workbench for the settings; it tells on stderr when it builds the index.

        Flags that are no settings are the options of its solves.
        """
        from toolsrv.cli.output import index_progress
        from toolsrv.solve_options import RUN_OPTIONS
        from toolsrv.workbench import Workbench

        run = {key: flags.pop(key) for key in RUN_OPTIONS if key in flags}
        loaded = self.load(**flags)
        bench = Workbench(loaded.settings, run, progress=index_progress())
        click.get_current_context().call_on_close(bench.close)
        return bench

    def toolbox(self, **flags: Any) -> Toolbox:
        """Return a toolbox over ``workbench``; a context manager."""
        from toolsrv.toolbox import Toolbox

        return Toolbox.from_workbench(self.workbench(**flags))

    def async_toolbox(self, **flags: Any) -> AsyncToolbox:
        """Return a toolbox over ``workbench`` for asynchronous code; a context manager."""
        from toolsrv.toolbox import AsyncToolbox

        return AsyncToolbox.from_workbench(self.workbench(**flags))

    def fault_folder(self) -> Path:
        """Return the data folder as well as it can be known when things are broken."""
        try:
            return self.load().settings.data_dir
        except ToolsrvError:
            named = os.environ.get("TOOLSRV_DATA_DIR", "").strip()
            return Path(named or platformdirs.user_data_dir("toolsrv"))


pass_session = click.make_pass_decorator(Session, ensure=True)
