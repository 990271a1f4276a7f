"""Rows as token ids: the base's own tokenizer, files that the training reads.

A file is xz: eight bytes with the length of a JSON head, the head (``rows``, ``tokens``), the ends of
the rows (uint32), the ids (uint16), and a bit for each token that is learnt.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from toolsrv_lab.conversations.telling import Row
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.gguf_header import read_header


def tokenizer(base: Path) -> Tokenizer:
    """Return the tokenizer of a GGUF file with the pre-tokenizer ``smollm``.

    Raises:
        ModelError: no such file, or no GGUF.
        UsageError: one with another pre-tokenizer.
    """
    header = read_header(base)
    pre = str(header.metadata.get("tokenizer.ggml.pre") or "none")
    if pre != "smollm":
        raise UsageError(
            f"{base.name!r} has the pre-tokenizer {pre[:40]!r}, which is not known here",
            hint="take a GGUF file of SmolLM2 as the base",
        )
    fields = gguf.GGUFReader(base).fields

    def value(key: str) -> Any:
        return fields[f"tokenizer.ggml.{key}"].contents()

    tokens, kinds = value("tokens"), value("token_type")
    merges = [tuple(one.split(" ")) for one in value("merges")]
    found = Tokenizer(models.BPE({one: at for at, one in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    found.decoder = decoders.ByteLevel()
    special = [one for one, kind in zip(tokens, kinds, strict=True) if kind == 3]
    found.add_special_tokens([AddedToken(one, normalized=False) for one in special])
    return found


def ids_of(row: Row, by: Tokenizer) -> tuple[list[int], list[bool]]:
    """Return a row's ids and which of them are learnt."""
    ids: list[int] = []
    learnt: list[bool] = []
    for text, learn in row.pieces:
        found = by.encode(text, add_special_tokens=False).ids
        ids += found
        learnt += [learn] * len(found)
    return ids, learnt


def write(rows: Iterable[tuple[list[int], list[bool]]], file: Path) -> dict[str, int]:
    """Write rows and return how many rows, tokens and learnt tokens there are.

    Raises DataError: there are none, or the file cannot be written.
    """
    ends, ids, learnt = [], [], []
    total = 0
    for row, mask in rows:
        ids.append(np.array(row, np.uint16))
        learnt.append(np.array(mask, bool))
        total += len(row)
        ends.append(total)
    if not ends:
        raise DataError("no episode gives a row", hint="see what was left out, and why")
    masks = np.concatenate(learnt)
    head = json.dumps({"rows": len(ends), "tokens": total}).encode()
    raw = b"".join(
        [len(head).to_bytes(8, "little"), head, np.array(ends, np.uint32).tobytes(),
         np.concatenate(ids).tobytes(), np.packbits(masks).tobytes()]
    )  # fmt: skip
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 1 << 26}]
    try:
        file.write_bytes(lzma.compress(raw, format=lzma.FORMAT_XZ, filters=filters))
    except OSError as error:
        raise DataError(
            f"cannot write {file}: {error.strerror}", hint="name another file with --out"
        ) from None
    return {"rows": len(ends), "tokens": total, "learnt": int(masks.sum())}
