"""ToolBench's own sentences, kept in the user's data folder.

They are not part of this program: it knows their SHA-256 only, and ``artefact`` finds them in a
file that the user has. What is not stored is said in our own words. Knows no format and no engine.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.errors import DataError
from toolsrv_registry.functions import finish_object
from toolsrv_runtime.answers.words import OURS, Words
from toolsrv_runtime.atomic import fresh_text
from toolsrv_runtime.file_in import read_file

PROMPTS_FILE = "toolbench_prompts.json"
_MOST_BYTES = 1 << 20

BASE = "012a169297c01764667f96b63789fa62b50ae95dbde7580ecd1078c359b97c93"
HEAD = "9a91eea9a6700da78575c4b10bff20cdc29d8452d466ce7252770b3da679ff6d"
DIVERSITY = "60060deea4b0d4de5cf20588949cfb129244780ba49fff374ec45520a3889982"
FINISH = "7303d4da37d013403d196126d6707cd8f64fdec0c942c08f03fbbc5ed4a9626d"
OLDER_FINISH = "b97d3e919ed4f905dea525d90fb618e6df9146e7062ffef5951509932e8eeb12"
"""SHA-256 of the sentences of released data (spec: 4.1); older data says less about Finish."""

_SLOT = "{previous_candidate}"


class Prompts(BaseModel):
    """Those of ToolBench's sentences that are known; None for the others.

    ``system`` is the system message up to the tool list in two parts, ``diversity`` the text
    before and after the list of what was tried, ``finish`` the last entry of a function list.
    """

    model_config = ConfigDict(frozen=True)

    system: tuple[str, str] | None = None
    diversity: tuple[str, str] | None = None
    finish: dict[str, Any] | None = None

    @property
    def words(self) -> Words:
        """The sentences of a conversation, ours where ToolBench's are not known."""
        base, head = self.system or (OURS.base, OURS.head)
        before, after = self.diversity or (OURS.before, OURS.after)
        return Words(base=base, head=head, before=before, after=after)

    @property
    def finish_entry(self) -> dict[str, Any]:
        """The entry of Finish."""
        return finish_object() if self.finish is None else self.finish

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not known, in words."""
        parts = {
            "the system message": self.system,
            "the message about what was tried": self.diversity,
            "the entry of Finish": self.finish,
        }
        return tuple(name for name, part in parts.items() if part is None)

    @property
    def summary(self) -> str:
        """Whose sentences ToolLLaMA is given, in one line."""
        if self.missing:
            return f"our own wording of {', '.join(self.missing)}: toolsrv model prompts FILE"
        older = "" if self.newest else ", with the older entry of Finish"
        return f"ToolBench's own sentences{older}"

    @property
    def newest(self) -> bool:
        """Whether the entry of Finish is that of the latest data."""
        return self.finish is not None and _digest_of(self.finish) == FINISH

    def checked(self) -> Prompts:
        """Return those of the sentences that have ToolBench's digests."""
        system, diversity, finish = self.system, self.diversity, self.finish
        return Prompts(
            system=system if system and [_digest(one) for one in system] == [BASE, HEAD] else None,
            diversity=diversity
            if diversity and _digest(_SLOT.join(diversity)) == DIVERSITY
            else None,
            finish=finish if finish and _digest_of(finish) in (FINISH, OLDER_FINISH) else None,
        )

    def with_(self, other: Prompts) -> Prompts:
        """Return these sentences, and those of ``other`` that are missing or newer."""
        return Prompts(
            system=self.system or other.system,
            diversity=self.diversity or other.diversity,
            finish=other.finish if other.newest or self.finish is None else self.finish,
        )


def keep_prompts(folder: Path, found: Prompts) -> Prompts:
    """Add sentences to those stored in the data folder; return what is stored then.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot use the data folder {folder}: {error.strerror or error}",
            hint="name another folder with --data-dir or TOOLSRV_DATA_DIR",
        ) from error
    try:
        kept = stored_prompts(folder).with_(found)
    except DataError:  # a damaged file: what was found takes its place
        kept = found
    with fresh_text(folder / PROMPTS_FILE) as file:
        json.dump(kept.model_dump(mode="json"), file, indent=2)
    return kept


def stored_prompts(folder: Path) -> Prompts:
    """Return the sentences that are stored in the data folder, none where nothing is.

    Raises:
        DataError: the file is damaged or changed.
    """
    path = folder / PROMPTS_FILE
    hint = f"delete {path}, then: toolsrv model prompts FILE"
    try:
        kept = Prompts.model_validate_json(read_file(path, _MOST_BYTES))
    except FileNotFoundError:
        return Prompts()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}", hint=hint) from error
    except ValidationError as error:
        raise DataError(f"{path} is damaged", hint=hint) from error
    if kept != kept.checked():
        raise DataError(f"{path} was changed: its SHA-256 is another", hint=hint)
    return kept


def prompts_told(folder: Path) -> str:
    """Return whose sentences ToolLLaMA is given, or why they cannot be read, in one line."""
    try:
        return stored_prompts(folder).summary
    except DataError as error:
        return f"{error.message} ({error.hint})"


def _digest_of(entry: dict[str, Any]) -> str:
    return _digest(json.dumps(entry, sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
