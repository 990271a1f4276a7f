"""Training rows from episode files: rendered, tokenized, without the tasks of evaluations.

    python -m toolsrv_lab.conversations.build --base BASE.gguf --out ROWS.xz --judged FILE… EPISODES.jsonl…

A file whose lines have a ``reply`` holds talk. Rows longer than ``--longest`` tokens are left out, and
episodes whose task shares thirteen words in a row with a judged task, or is short and the same.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import TypeAlias

from toolsrv_lab.conversations import rendering
from toolsrv_lab.conversations.episode import Episode, HeldOutTasks, Made, Offered
from toolsrv_lab.conversations.rendering import Conversation, EpisodeRenderer
from toolsrv_runtime.contract.models import SpecialTokens
from toolsrv_runtime.templates.tool_template import ToolTemplate

LONGEST = 1_600
"""Tokens of a row."""

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def template_source() -> str:
    """Return the chat template that the model is trained with and that its file carries."""
    return (files("toolsrv_lab.conversations") / "chat_template.jinja").read_text("utf-8")


def teller() -> EpisodeRenderer:
    """Return the teller of that template."""
    control = {one: at for at, one in enumerate(_SPECIAL)} | {"<jupyter_code>": 13}
    special = SpecialTokens(bos="<|im_start|>", eos="<|im_end|>", control=control)
    return EpisodeRenderer(ToolTemplate(template_source(), tokens=special))


class Builder:
    """Turns lines of episode files into rows of ids.

    ``judged`` are files whose tasks are kept out; ``longest`` in tokens. Raises UsageError for a base
    that is not read here, DataError for a judged file.
    """

    def __init__(self, base: Path, judged: Sequence[Path], longest: int, seed: int) -> None:
        self._teller = teller()
        self.tokenizer = rendering.tokenizer(base)
        self._longest = longest
        self._seed = seed
        self._judged = HeldOutTasks(judged)

    def rows(self, line: str) -> list[tuple[list[int], list[bool]]]:
        """Return the rows of one line, none where it is left out.

        Raises KeyError, TypeError or ValueError where it holds no episode.
        """
        told = json.loads(line)
        if told["task"] in self._judged:
            return []
        rng = random.Random(f"{self._seed} {line}")
        if "reply" in told:
            one = Conversation(told["now"], told["task"], tuple(told["functions"]), told["reply"])
            rows = [self._teller.talk(one)]
        else:
            told["functions"] = tuple(Offered(**one) for one in told["functions"])
            told["steps"] = tuple(Made(**one) for one in told["steps"])
            rows = list(self._teller.rows(Episode(**told), rng))
        found = [rendering.token_ids(row, self.tokenizer) for row in rows]
        return [one for one in found if len(one[0]) <= self._longest and any(one[1])]


@dataclass(frozen=True, slots=True)
class Built:
    """What was written, in numbers, and (where, why) of the lines that hold no episode."""

    rows: int
    tokens: int
    learnt: int
    left_out: tuple[tuple[str, str], ...]


def build(lines: Iterable[str], out: Path, builder: Builder, *, workers: int = 1) -> Built:
    """Write the rows of episodes, one a line. Raises DataError: none, or it cannot be written."""
    left_out: list[tuple[str, str]] = []

    def rows() -> Iterator[tuple[list[int], list[bool]]]:
        for at, (found, why) in enumerate(_each(lines, builder, workers), start=1):
            if why:
                left_out.append((f"line {at}", why))
            yield from found

    written = rendering.write_ids(rows(), out)
    return Built(written["rows"], written["tokens"], written["learnt"], tuple(left_out))


_ReadRows: TypeAlias = tuple[list[tuple[list[int], list[bool]]], str]
_builders: list[Builder] = []
"""The builder of this process and of those forked from it."""


def _each(lines: Iterable[str], builder: Builder, workers: int) -> Iterator[_ReadRows]:
    _builders[:] = [builder]
    if workers == 1 or "fork" not in get_all_start_methods():
        yield from map(_read_rows, lines)
        return
    with get_context("fork").Pool(workers) as pool:
        yield from pool.imap(_read_rows, lines, chunksize=64)


def _read_rows(line: str) -> _ReadRows:
    """Return the rows of a line, or why there are none."""
    try:
        found = _builders[0].rows(line)
    except (KeyError, TypeError, ValueError) as error:
        return [], f"it holds no episode: {error!r}"[:200]
    return found, "" if found else "a judged task, or longer than a row"


def _show(lines: Iterable[str], builder: Builder, count: int) -> None:
    """Print the rows of the first lines; what is learnt in green."""
    by = builder.tokenizer
    for _, line in zip(range(count), lines, strict=False):
        for ids, learnt in builder.rows(line):
            text = "".join(
                f"\x1b[32m{by.decode([one], skip_special_tokens=False)}\x1b[0m" if mask
                else by.decode([one], skip_special_tokens=False)
                for one, mask in zip(ids, learnt, strict=True)
            )  # fmt: skip
            print(f"{text}\n---- {len(ids)}, {sum(learnt)} learnt")


def main() -> None:
    """Build; see the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("episodes", type=Path, nargs="+")
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--judged", type=Path, nargs="*", default=[])
    parser.add_argument("--longest", type=int, default=LONGEST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", type=int, default=0, help="print so many rows and stop")
    options = parser.parse_args()
    builder = Builder(options.base, options.judged, options.longest, options.seed)

    def lines() -> Iterator[str]:
        for path in options.episodes:
            with path.open(encoding="utf-8") as told:
                yield from told

    if options.show:
        _show(lines(), builder, options.show)
        return
    made = build(lines(), options.out, builder, workers=options.workers)
    for where, why in made.left_out:
        print(f"left out: {where}: {why}", file=sys.stderr)
    counts = {"rows": made.rows, "tokens": made.tokens, "learnt": made.learnt}
    left_out = {"left out": len(made.left_out), "file": options.out.stat().st_size}
    print(json.dumps(counts | left_out))


if __name__ == "__main__":
    main()
