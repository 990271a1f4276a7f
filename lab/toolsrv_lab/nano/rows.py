"""Rows as numbers: a function list and its episodes, packed as a tree; their targets as tensors."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_lab.extras import load
from toolsrv_lab.nano.episodes import Episode, Row, Segment
from toolsrv_lab.nano.network import TrainingOptions
from toolsrv_lab.nano.vocabulary import BEGIN, END, Vocabulary
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

Numbers = npt.NDArray[np.int16]

PADDING = 255
LINES = 5
"""Lines of a row."""
SOURCES = "sources.json"
"""The file beside shards that says which APIs they are about."""

_LINE_AIMS = 0.15
_AGAIN = "delete it and give the command that made it again: toolsrv lab episodes"


def pack(row: Row, vocabulary: Vocabulary, length: int, rng: random.Random) -> Numbers | None:
    """Return a row (5, length), None where not even one episode finds room."""
    ids, second = [BEGIN], [-1]
    for number, segment in enumerate(row.functions):
        found = vocabulary.encode(segment)
        aimed = number > 0 and rng.random() < _LINE_AIMS
        ids += found
        second += [vocabulary.id_of(f"{layout.USE}{number}") if aimed else -1] * len(found)
    shared = len(ids)
    first, places, owners = [-1] * shared, list(range(shared)), [0] * shared
    told = 0
    for episode in row.episodes:
        tokens, targets, aims = _numbers(episode, vocabulary)
        if len(ids) + len(tokens) > length:
            continue
        told += 1
        ids += tokens
        first += targets
        second += aims
        places += range(shared, shared + len(tokens))
        owners += [told] * len(tokens)
    if not told:
        return None
    empty = length - len(ids)
    second = [-1 if target >= 0 else aim for target, aim in zip(first, second, strict=True)]
    return np.asarray(
        [
            [*ids, *[END] * empty],
            [*first, *[-1] * empty],
            [*places, *[0] * empty],
            [*owners, *[PADDING] * empty],
            [*second, *[-1] * empty],
        ],
        np.int16,
    )


def _numbers(episode: Episode, vocabulary: Vocabulary) -> tuple[list[int], list[int], list[int]]:
    """Return tokens, what each is to predict, and the second aims, of one episode."""
    tokens: list[int] = []
    learned: list[bool] = []
    aims: list[int] = []
    for at, segment in enumerate(episode.segments):
        found = vocabulary.encode(segment)
        tokens += found
        learned += [segment.learned] * len(found)
        # The task is the second segment.
        aims += _aims(segment, episode, vocabulary) if at == 1 else [-1] * len(found)
    targets = [
        after if wanted else -1 for after, wanted in zip(tokens[1:], learned[1:], strict=True)
    ]
    return tokens, [*targets, END if learned[-1] else -1], aims


def _aims(task: Segment, episode: Episode, vocabulary: Vocabulary) -> list[int]:
    found = [-1] * len(vocabulary.encode(task))
    spans = vocabulary.place(task)
    for clause, number in episode.aims:
        start = task.text.find(clause)
        for at, (begin, end) in enumerate(spans):
            if start <= begin < end <= start + len(clause) and not task.text[begin:end].isspace():
                found[at] = vocabulary.id_of(f"{layout.USE}{number}")
    return found


def write_shard(path: Path, rows: Sequence[Numbers], about: dict[str, object]) -> None:
    """Write rows (n, 5, length) with what they were made of: whole or not at all."""
    stacked = np.stack(rows)
    digest = hashlib.sha256(stacked.tobytes()).hexdigest()
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        np.savez(file, rows=stacked, about=json.dumps({**about, "sha256": digest}))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read_shard(path: Path) -> Numbers:
    """Return the rows of a shard. Raises DataError for one that is damaged or no shard."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rows, about = arrays["rows"], json.loads(str(arrays["about"]))
        whole = hashlib.sha256(rows.tobytes()).hexdigest() == about["sha256"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read the shard {path}: {error}", hint=_AGAIN) from error
    if not whole:
        raise DataError(f"the shard {path} is damaged: its hash is another", hint=_AGAIN)
    found: Numbers = rows
    return found


def shards(folder: Path) -> Iterator[Path]:
    """Return the shards of a folder in order. Raises DataError where there is none."""
    found = sorted(folder.glob("rows-*.npz"))
    if not found:
        raise DataError(f"there are no rows in {folder}", hint="make some: toolsrv lab episodes")
    yield from found


def about_shards(files: Sequence[Path]) -> dict[str, Any]:
    """Return what shards say of themselves, without reading their rows.

    Their number, their rows, the plan (of the first; ``plans`` counts different ones), one hash
    over those of all, and the ``sources`` beside them. Raises DataError for a damaged shard.
    """
    digest, plans, rows = hashlib.sha256(), [], 0
    for path in files:
        about, count = _about(path)
        digest.update(f"{about.get('sha256')}\n".encode())
        rows += count
        if about.get("plan") not in plans:
            plans.append(about.get("plan"))
    return {
        "shards": len(files),
        "rows": rows,
        "plan": plans[0] if plans else None,
        "plans": len(plans),
        "sha256": digest.hexdigest(),
    } | _sources(files[0].with_name(SOURCES) if files else None)


def _sources(path: Path | None) -> dict[str, Any]:
    """Return what APIs the rows are about; nothing for older rows, which do not say."""
    if path is None or not path.is_file():
        return {}
    try:
        return {"sources": dict(json.loads(path.read_text("utf-8")))}
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"cannot read {path}: {error}", hint=_AGAIN) from error


def _about(path: Path) -> tuple[dict[str, Any], int]:
    try:
        with zipfile.ZipFile(path) as parts:
            with parts.open("about.npy") as member:
                about = json.loads(str(np.lib.format.read_array(member, allow_pickle=False)))
            with parts.open("rows.npy") as member:
                np.lib.format.read_magic(member)
                shape, _, _ = np.lib.format.read_array_header_1_0(member)
        return dict(about), int(shape[0])
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read the shard {path}: {error}", hint=_AGAIN) from error


# Where a mask forbids.
_NEVER = -1e4
# Logits are computed for a multiple of so many positions: each other shape is compiled anew.
_ROOM = 1024


class Targets(NamedTuple):
    """Tensors of a batch.

    ``ids`` and ``places`` (batch, length); ``mask`` (batch, 1, length, length), added to scores;
    ``wanted``, the flat indices of the positions that predict, padded; ``aims`` and ``weights``,
    what the unpadded ones are to predict and how much that counts.
    """

    ids: Any
    places: Any
    mask: Any
    wanted: Any
    aims: Any
    weights: Any


def targets(rows: Numbers, weights: Any, options: TrainingOptions, *, second: bool) -> Targets:
    """Return the targets of rows (batch, 5, length); ``weights`` are those of each token's aim.

    With ``second`` the second aims count too. All lie on the device of ``weights``.
    """
    torch, device = load("torch"), weights.device
    data = torch.from_numpy(rows.astype(np.int64)).to(device)
    ids, first, places, owner, later = data.unbind(1)
    length = ids.shape[1]
    seen = (owner[:, None] == 0) | (owner[:, None] == owner[:, :, None])
    seen &= torch.ones(length, length, dtype=torch.bool, device=device).tril()
    mask = torch.zeros(seen.shape, dtype=torch.bfloat16, device=device)
    mask = mask.masked_fill_(~seen, _NEVER)[:, None]
    aims, counts = first.flatten(), weights[first.flatten().clamp(min=0)]
    if second:
        extra = (aims < 0) & (later.flatten() >= 0)
        aims = torch.where(extra, later.flatten(), aims)
        of_task = owner.flatten() > 0
        counts = torch.where(
            extra, torch.where(of_task, options.clause_aim, options.line_aim), counts
        )
    wanted = (aims >= 0).nonzero()[:, 0]
    room = math.ceil(len(wanted) / _ROOM) * _ROOM
    padded = torch.nn.functional.pad(wanted, (0, room - len(wanted)))
    return Targets(ids, places, mask, padded, aims[wanted], counts[wanted])
