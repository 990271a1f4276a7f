"""A folder of answer files as rows to train a small model on, as ``lab episodes`` writes them.

The vocabulary is one that is given, or made of the same answers; every so many files are held out.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.nano.episodes import Row
from toolsrv_lab.nano.pipeline import HELD_OUT_ROWS
from toolsrv_lab.nano.rows import Numbers, pack, write_shard
from toolsrv_lab.nano.vocabulary import VOCABULARY, Vocabulary, make_vocabulary, read_vocabulary
from toolsrv_lab.training_data.compact import UnfitError, row_of
from toolsrv_lab.training_data.convert import LeftOut, Progress, answer_files
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_runtime.toolbench.answer_files import read_answer

TOO_LONG = "it is longer than a row"
SHARD = 1_000
"""Rows in a file."""

_HELD_OUT = 20  # one of so many


class CompactReport(BaseModel):
    """What a conversion took: ``rows`` for training, ``held_out`` ones, and the files left out."""

    model_config = ConfigDict(frozen=True)

    files: int
    rows: int
    held_out: int
    vocabulary: int
    left_out: tuple[LeftOut, ...]


def write_compact(
    source: Path,
    out: Path,
    *,
    vocabulary: Path | None = None,
    size: int = 8_192,
    length: int = 1_024,
    progress: Progress | None = None,
) -> CompactReport:
    """Write the rows of the answer files in ``source`` to the folder ``out``.

    ``vocabulary`` is a file of ``lab episodes``; without, one of up to ``size`` tokens is made.
    ``length`` is that of a row in tokens.

    Raises:
        NotFoundError: there is no such folder, or no .json file in it.
        DataError: no file gives a row, or something cannot be read or written.
    """
    told, left_out, files = _rows(source, out, progress)
    known = read_vocabulary(vocabulary) if vocabulary else _made([row for _, row in told], size)
    packed: list[Numbers] = []
    for name, row in told:
        numbers = pack(row, known, length, random.Random(name))
        if numbers is None:
            left_out.append(LeftOut(file=name, reason=TOO_LONG))
        else:
            packed.append(numbers)
    if not packed:
        why = f": {left_out[0].reason}" if left_out else ""
        raise DataError(
            f"none of the {files} files in {source} gives a row{why}",
            hint="give answers of toolsrv lab annotate, whose thoughts name words and functions",
        )
    held_out = packed[::_HELD_OUT]
    rows = [one for at, one in enumerate(packed) if at % _HELD_OUT] or held_out
    _write(out, known, vocabulary, rows, held_out)
    return CompactReport(
        files=files, rows=len(rows), held_out=len(held_out), vocabulary=len(known),
        left_out=tuple(left_out),
    )  # fmt: skip


def _rows(
    source: Path, out: Path, progress: Progress | None
) -> tuple[list[tuple[str, Row]], list[LeftOut], int]:
    found: list[tuple[str, Row]] = []
    left_out: list[LeftOut] = []
    files = answer_files(source, besides=out / VOCABULARY)
    for done, path in enumerate(files, start=1):
        try:
            found.append((path.name, row_of(read_answer(path))))
        except ToolsrvError as error:
            left_out.append(LeftOut(file=path.name, reason=error.message))
        except UnfitError as error:
            left_out.append(LeftOut(file=path.name, reason=str(error)))
        if progress is not None:
            progress(done, len(files))
    return found, left_out, len(files)


def _made(rows: list[Row], size: int) -> Vocabulary:
    return make_vocabulary(
        (part for row in rows for part in (row.functions, *(e.segments for e in row.episodes))),
        size,
    )


def _write(
    out: Path,
    known: Vocabulary,
    vocabulary: Path | None,
    rows: list[Numbers],
    held_out: list[Numbers],
) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if vocabulary is None:
            known.save(out / VOCABULARY)
        elif vocabulary.resolve() != (out / VOCABULARY).resolve():
            shutil.copyfile(vocabulary, out / VOCABULARY)
        about: dict[str, object] = {"source": "answer files"}
        write_shard(out / HELD_OUT_ROWS, held_out, about)
        for at in range(0, len(rows), SHARD):
            shard = out / f"rows-{at // SHARD:04}.npz"
            write_shard(shard, rows[at : at + SHARD], about)
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename or out}: {error.strerror or error}",
            hint="free some space, or name another folder",
        ) from error
