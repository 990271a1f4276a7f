"""Models by name: the user's list, and spellings that name no GGUF file.

``<data_dir>/models/models.json`` maps names to files; files may lie elsewhere. A special spelling
is a script, one or more servers, or the MCP client's own model. Downloads nothing; loads only what
a special spelling names.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from toolsrv.config_file import exclusive_lock, write_atomic
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.contract.models import ChatModel, Engine
    from toolsrv_runtime.profiles import Profile

SAMPLING = "sampling"
"""The MCP client's own model (``mcp_server.sampling``); only ``serve`` has a client."""

_SCRIPT = "scripted:"


def is_special(text: str) -> bool:
    """Whether a text names no GGUF file.

    Raises:
        UsageError: it is an address that cannot be used.
    """
    from toolsrv_runtime.models.openai import is_url, parse_endpoints

    if is_url(text):
        parse_endpoints(text)
        return True
    return text == SAMPLING or text.startswith(_SCRIPT)


def script_path(text: str) -> Path | None:
    """Return the file of a script, None where a text names none."""
    return Path(text.removeprefix(_SCRIPT)).expanduser() if text.startswith(_SCRIPT) else None


def load_special(
    model: str, *, silence_s: float, within_s: float
) -> tuple[Engine | ChatModel, Profile]:
    """Return the model that a special spelling names, ready, and how it is run. Blocks.

    ``silence_s`` and ``within_s`` are for servers: see ``load_servers``.

    Raises:
        NotFoundError: there is no such script.
        DataError: the script cannot be used, or no server answers.
        UsageError: the client's model is meant, and there is no client.
    """
    if model == SAMPLING:
        raise UsageError(
            "the model 'sampling' is an MCP client's own, and here is no client",
            hint="use it with toolsrv serve; here name a GGUF file or a server with --model",
        )
    if (script := script_path(model)) is not None:
        from toolsrv_runtime.models.scripted import load_script

        return load_script(script)
    from toolsrv_runtime.models.openai.chat import load_servers

    return load_servers(model, silence_s=silence_s, within_s=within_s)


SHIPPED = "nano"
"""The name of the model that is used where none is named."""

SHIPS = (SHIPPED, "small")
"""The names of the models that ship; they are in no file and cannot be removed."""

MOST_CHARACTERS = 64
"""Of a name: a list of them stays readable."""


class Entry(BaseModel):
    """A model on the list. ``source`` says where it came from; ``sha256`` where it is known."""

    model_config = ConfigDict(frozen=True)

    name: str
    path: str
    source: str
    size_bytes: int
    sha256: str | None = None
    added: str


_ENTRIES = TypeAdapter(list[Entry])


def is_name(text: str) -> bool:
    """Whether a text may be the name of a model, and not only a path."""
    return bool(text) and "/" not in text and not text.lower().endswith(".gguf")


class ModelList:
    """The list of one data folder; every call reads it anew. Methods block."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "models"
        self.file = self.folder / "models.json"

    def entries(self) -> list[Entry]:
        """Return the models by name, without those that ship.

        Raises:
            DataError: The list is damaged or cannot be read.
        """
        try:
            return _ENTRIES.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise DataError(
                f"the list of models {self.file} cannot be read: {why}",
                hint="remove it; the models themselves stay in their files",
            ) from None

    def get(self, name: str) -> Entry:
        """Return the model of that name.

        Raises:
            NotFoundError: There is none; names those that there are.
        """
        entries = self.entries()
        for one in entries:
            if one.name == name:
                return one
        known = ", ".join([*SHIPS, *(one.name for one in entries)])
        raise NotFoundError(f"there is no model {name!r} on the list", hint=f"there are: {known}")

    def check_name(self, name: str, path: Path) -> None:
        """Look whether the file, which need not be there yet, may be put on the list as ``name``.

        Raises:
            UsageError: The name stands for another file, or is none.
        """
        _check_name(name, path.absolute(), _taken(self.entries()))

    def add(
        self, path: Path, *, source: str, sha256: str | None = None, name: str | None = None
    ) -> Entry:
        """Put a file on the list, under ``name`` or that of the file; the same file only once.

        Raises:
            UsageError: The name stands for another file, or is none.
            DataError: The list cannot be written.
        """
        path = path.absolute()
        with self._changing() as entries:
            if name is None:
                name = _free_name(path, _taken(entries))
            _check_name(name, path, _taken(entries))
            entry = Entry(
                name=name,
                path=str(path),
                source=source,
                size_bytes=path.stat().st_size,
                sha256=sha256,
                added=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            entries[:] = [one for one in entries if one.path != entry.path]
            entries.append(entry)
        return entry

    def remove(self, name: str) -> tuple[Entry, bool]:
        """Take a model off the list; return it, and whether its files, being ours, are gone too.

        Raises:
            NotFoundError: There is no such model.
            DataError: List or files cannot be written.
        """
        from toolsrv_runtime.requirements import split_parts

        entry = self.get(name)
        ours = Path(entry.path).is_relative_to(self.folder.absolute())
        if ours:
            for one in split_parts(Path(entry.path)):
                one.unlink(missing_ok=True)
        with self._changing() as entries:
            entries[:] = [one for one in entries if one.name != name]
        return entry, ours

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Entry]]:
        """Yield the list to change, alone; it is written, in order, when the block ends well."""
        with exclusive_lock(self.folder / ".lock"):
            entries = self.entries()
            yield entries
            entries.sort(key=lambda one: one.name)
            document = [one.model_dump() for one in entries]
            write_atomic(self.file, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _taken(entries: list[Entry]) -> dict[str, str]:
    """Return which file each name stands for; other models' names stand for none."""
    return {one.name: one.path for one in entries} | dict.fromkeys((*SHIPS, SAMPLING), "")


def _check_name(name: str, path: Path, taken: Mapping[str, str]) -> None:
    if not is_name(name) or not name.isprintable() or name.strip() != name or is_special(name):
        raise UsageError(
            f"{name[:80]!r} cannot be a model's name",
            hint="no / in it, no .gguf at its end, and nothing that names another kind of model",
        )
    if len(name) > MOST_CHARACTERS:
        raise UsageError(
            f"the name {name[:20]!r}… has {len(name)} characters",
            hint=f"choose one of at most {MOST_CHARACTERS}",
        )
    if taken.get(name, str(path)) != str(path):
        raise UsageError(
            f"the name {name!r} stands for another model", hint="choose another: --name"
        )


def _free_name(path: Path, taken: Mapping[str, str]) -> str:
    """Return the file's own name, cut, with a number where that stands for another file."""
    name, at = path.stem[:MOST_CHARACTERS].strip(), 1
    while taken.get(name, str(path)) != str(path):
        at += 1
        end = f"-{at}"
        name = path.stem[: MOST_CHARACTERS - len(end)] + end
    return name


def file_of(text: str, data_dir: Path) -> Path:
    """Return the GGUF file that a text names: by a name on the list, or by its path.

    Raises:
        DataError: The list is damaged or cannot be read.
    """
    named = resolve(text, data_dir) if is_name(text) else None
    return named or Path(text).expanduser()


def resolve(name: str, data_dir: Path) -> Path | None:
    """Return the file that a name stands for, None where it is not on the list."""
    for one in ModelList(data_dir).entries():
        if one.name == name:  # a list of before "small" shipped may have one of that name
            return Path(one.path)
    if name in SHIPS:
        from toolsrv_runtime.gguf_models import SHIPPED_MODELS

        return SHIPPED_MODELS[name]
    return None
