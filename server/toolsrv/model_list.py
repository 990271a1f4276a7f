"""The user's models: files under names, kept in ``<data_dir>/models``.

``models.json`` there says what each name stands for; files may lie elsewhere. Loads no model and
downloads nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from toolsrv.config_file import write_atomic
from toolsrv.file_lock import alone
from toolsrv.models import SAMPLING, is_special
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

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
        from toolsrv_runtime.suitable import parts

        entry = self.get(name)
        ours = Path(entry.path).is_relative_to(self.folder.absolute())
        if ours:
            for one in parts(Path(entry.path)):
                one.unlink(missing_ok=True)
        with self._changing() as entries:
            entries[:] = [one for one in entries if one.name != name]
        return entry, ours

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Entry]]:
        """Yield the list to change, alone; it is written, in order, when the block ends well."""
        with alone(self.folder / ".lock"):
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
