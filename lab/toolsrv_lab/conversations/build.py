"""Training rows from episode files: rendered, tokenized, without the tasks of evaluations.

    python -m toolsrv_lab.conversations.build --base BASE.gguf --out ROWS.xz --judged FILE… EPISODES.jsonl…

A file whose lines have a ``reply`` holds talk. Rows longer than ``--longest`` tokens are left out, and
episodes whose task shares thirteen words in a row with a judged task, or is short and the same.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path

from toolsrv_lab.conversations import tokens
from toolsrv_lab.conversations.episode import Episode, Made, Offered
from toolsrv_lab.conversations.telling import Talk, Teller
from toolsrv_runtime.engine.base import SpecialTokens
from toolsrv_runtime.templates.tool_template import ToolTemplate

GRAM = 13
_WORD = re.compile(r"\w+")
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def template_source() -> str:
    """Return the chat template that the model is trained with and that its file carries."""
    return (files("toolsrv_lab.conversations") / "chat_template.jinja").read_text("utf-8")


def teller() -> Teller:
    """Return the teller of that template."""
    control = {one: at for at, one in enumerate(_SPECIAL)} | {"<jupyter_code>": 13}
    special = SpecialTokens(bos="<|im_start|>", eos="<|im_end|>", control=control)
    return Teller(ToolTemplate(template_source(), tokens=special))


def grams(text: str) -> set[tuple[str, ...]]:
    """Return the runs of thirteen words of a text, all of its words where it has fewer."""
    words = tuple(_WORD.findall(text.lower()))
    return {words[at : at + GRAM] for at in range(max(1, len(words) - GRAM + 1))}


class Builder:
    """Turns lines of episode files into rows of ids."""

    def __init__(self, base: Path, judged: Sequence[Path], longest: int, seed: int) -> None:
        self._teller = teller()
        self._tokenizer = tokens.tokenizer(base)
        self._longest = longest
        self._seed = seed
        self._judged: set[tuple[str, ...]] = set()
        for path in judged:
            for line in path.read_text("utf-8").splitlines():
                self._judged |= grams(json.loads(line)["task"])

    def rows(self, line: str) -> list[tuple[list[int], list[bool]]]:
        """Return the rows of one line, none where it is left out."""
        told = json.loads(line)
        if grams(told["task"]) & self._judged:
            return []
        rng = random.Random(f"{self._seed} {line}")
        if "reply" in told:
            one = Talk(told["now"], told["task"], tuple(told["functions"]), told["reply"])
            rows = [self._teller.talk(one)]
        else:
            told["functions"] = tuple(Offered(**one) for one in told["functions"])
            told["steps"] = tuple(Made(**one) for one in told["steps"])
            rows = list(self._teller.rows(Episode(**told), rng))
        found = [tokens.ids_of(row, self._tokenizer) for row in rows]
        return [one for one in found if len(one[0]) <= self._longest and any(one[1])]


_builders: list[Builder] = []
"""The builder of this process."""


def _start(base: Path, judged: Sequence[Path], longest: int, seed: int) -> None:
    _builders[:] = [Builder(base, judged, longest, seed)]


def _told(line: str) -> list[tuple[list[int], list[bool]]]:
    try:
        return _builders[0].rows(line)
    except (KeyError, TypeError, ValueError) as error:
        print(f"left out ({error!r}): {line[:200]}", file=sys.stderr)
        return []


def main() -> None:
    """Build; see the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("episodes", type=Path, nargs="+")
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--judged", type=Path, nargs="*", default=[])
    parser.add_argument("--longest", type=int, default=1_600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", type=int, default=0, help="print so many rows and stop")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    settings = (options.base, options.judged, options.longest, options.seed)

    def lines() -> Iterator[str]:
        for path in options.episodes:
            with path.open(encoding="utf-8") as told:
                yield from told

    if options.show:
        _start(*settings)
        by = tokens.tokenizer(options.base)
        for _, line in zip(range(options.show), lines(), strict=False):
            for ids, learnt in _told(line):
                text = "".join(
                    f"\x1b[32m{by.decode([one], skip_special_tokens=False)}\x1b[0m" if mask
                    else by.decode([one], skip_special_tokens=False)
                    for one, mask in zip(ids, learnt, strict=True)
                )  # fmt: skip
                print(f"{text}\n---- {len(ids)}, {sum(learnt)} learnt")
        return

    def rows() -> Iterator[tuple[list[int], list[bool]]]:
        with get_context("fork").Pool(options.workers, _start, settings) as pool:
            for found in pool.imap(_told, lines(), chunksize=64):
                counts["lines"] += 1
                counts["left out"] += not found
                yield from found

    written = tokens.write(rows(), options.out)
    print(json.dumps({**written, **counts, "file": options.out.stat().st_size}))


if __name__ == "__main__":
    main()
