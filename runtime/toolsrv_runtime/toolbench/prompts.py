"""ToolBench's prompt sentences: our own wording, or the user's copy from a ToolBench artefact.

ToolBench's sentences are not part of this program. It knows their SHA-256 and their places in an
answer file or a training file, takes only texts with the right digest, and stores them in the
user's data folder. What is not stored is said in our own words. Knows no format, engine or tree.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.functions import finish_object
from toolsrv_runtime.files import open_atomic_text, open_file, read_file
from toolsrv_runtime.toolbench.answer_files import parse_answer

ANCHOR = "with a function call to actually excute your step."
"""What ToolBench's own programs look for in a system message, in that spelling."""

HINT = " Your output should follow this format:\nThought:\nAction\nAction Input:\n"
LISTING = "\nSpecifically, you have access to the following APIs: "
HALLUCINATED_NAME = "invalid_hallucination_function_name"


@dataclass(frozen=True, slots=True)
class PromptSentences:
    """The sentences that stand in every conversation.

    ``base`` ends where the task description begins and holds ``ANCHOR``; ``head`` is the start of
    that description, up to the tool list; ``before`` and ``after`` enclose the list of what was
    tried already.
    """

    base: str
    head: str
    before: str
    after: str

    def system(self, tools: str) -> str:
        """Return the system message for a numbered tool list (``tool_list_block``)."""
        return f"{self.base}{self.head}{tools}"

    def diversity(self, tried: Iterable[tuple[str, str, str]], observation: str) -> str:
        """Return the message that asks for something else than what was tried from a node.

        ``tried`` are (name, argument text, observation), ``observation`` the node's own.
        """
        return f"{self.before}{previous_candidates(tried, observation)}{self.after}"


OUR_SENTENCES = PromptSentences(
    base=(
        "You solve tasks for a person and have functions for it. First comes the description of "
        "the task, then the task.\n"
        "In every turn, say in a sentence or two what is known by now and what has to come next, "
        f"{ANCHOR}\n"
        "You are then given what the call returned, and take the next turn from there, until the "
        "task is served.\nTask description: "
    ),
    head=(
        "Serve the person's task with the functions below. The last call is always Finish: with "
        "give_answer and everything the person wants to know, or with give_up_and_restart where "
        "the functions cannot help. Call functions by the names in the list only.\n"
        "These tools are at hand:\n"
    ),
    before="You were here before, and these calls were made from here:\n",
    after=(
        "\nThey led to no answer. Look at where you are and at what they returned, then call "
        "something else."
    ),
)


def user_message(query: str) -> str:
    """Return the user message of a task."""
    return f"\n{query}\nBegin!\n"


def previous_candidates(tried: Iterable[tuple[str, str, str]], observation: str) -> str:
    """Return the list of what was tried from a node."""
    rows = [
        {
            "name": name,
            "arguments": arguments,
            "function_output": output,
            "mento-carlo-action-value": 0.0,
        }
        for name, arguments, output in tried
    ]
    text = json.dumps(rows, indent=2) + "\n"
    return f"{text}again, your former observation: {observation}\n" if observation else text


def toolllama_system(system: str, functions: Sequence[Mapping[str, Any]]) -> str:
    """Return a system message as ToolLLaMA reads it: with the format hint and the function list.

    The list is Python's ``str`` of it, not JSON.

    Raises:
        DataError: the message lacks the words that the hint follows.
    """
    if ANCHOR not in system:
        raise DataError(
            f"the system message does not say {ANCHOR!r}",
            hint="ToolLLaMA's format hint goes after these words; see the answer file's prompts",
        )
    hinted = system.replace(ANCHOR, ANCHOR + HINT)
    return f"{hinted}{LISTING}{[dict(one) for one in functions]}"


PROMPTS_FILE = "toolbench_prompts.json"
_MOST_BYTES = 1 << 20

BASE = "012a169297c01764667f96b63789fa62b50ae95dbde7580ecd1078c359b97c93"
HEAD = "9a91eea9a6700da78575c4b10bff20cdc29d8452d466ce7252770b3da679ff6d"
DIVERSITY = "60060deea4b0d4de5cf20588949cfb129244780ba49fff374ec45520a3889982"
FINISH = "7303d4da37d013403d196126d6707cd8f64fdec0c942c08f03fbbc5ed4a9626d"
OLDER_FINISH = "b97d3e919ed4f905dea525d90fb618e6df9146e7062ffef5951509932e8eeb12"
"""SHA-256 of the sentences of released data; older data says less about Finish."""

_CANDIDATE_SLOT = "{previous_candidate}"


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
    def words(self) -> PromptSentences:
        """The sentences of a conversation, ours where ToolBench's are not known."""
        base, head = self.system or (OUR_SENTENCES.base, OUR_SENTENCES.head)
        before, after = self.diversity or (OUR_SENTENCES.before, OUR_SENTENCES.after)
        return PromptSentences(base=base, head=head, before=before, after=after)

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
            if diversity and _digest(_CANDIDATE_SLOT.join(diversity)) == DIVERSITY
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
    with open_atomic_text(folder / PROMPTS_FILE) as file:
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


def describe_prompts(folder: Path) -> str:
    """Return whose sentences ToolLLaMA is given, or why they cannot be read, in one line."""
    try:
        return stored_prompts(folder).summary
    except DataError as error:
        return f"{error.message} ({error.hint})"


def _digest_of(entry: dict[str, Any]) -> str:
    return _digest(json.dumps(entry, sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


MOST_ARTEFACT_BYTES = 64 * 1024 * 1024
"""As much of a file is read: of the training file, its first instances."""

_END_OF_BASE = "Task description: "
_HEAD_LENGTH = 458
_HINT = "give an answer file of ToolBench, or its toolllama_G123_dfs_train.json"

ConversationTexts = tuple[list[str], list[dict[str, Any]]]
"""The texts of a conversation's messages, the system's first, and its functions."""


def read_prompts(path: Path) -> Prompts:
    """Return the sentences that an artefact of ToolBench holds, their digests checked.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or holds none of the sentences.
    """
    text = _head_of(path)
    found = Prompts()
    conversations = _trained(text) if text.startswith("[") else _answered(text, path)
    for messages, functions in conversations:
        found = found.with_(
            Prompts(
                system=_system(messages[0]),
                diversity=_diversity(messages[1:]),
                finish=functions[-1] if functions else None,
            ).checked()
        )
        if not found.missing and found.newest:
            break
    if found == Prompts():
        raise DataError(
            f"{path} holds none of ToolBench's sentences, as their SHA-256 tells", hint=_HINT
        )
    return found


def _system(text: str) -> tuple[str, str]:
    base, mark, rest = text.partition(_END_OF_BASE)
    return base + mark, rest[:_HEAD_LENGTH]


def _diversity(messages: list[str]) -> tuple[str, str] | None:
    for text in messages:
        start = text.find("[\n  {")
        end = text.rfind("\n", 0, max(0, text.rfind("Remember")))
        if 0 <= start < end:
            found = Prompts(diversity=(text[:start], text[end:])).checked().diversity
            if found is not None:
                return found
    return None


def _answered(text: str, path: Path) -> Iterator[ConversationTexts]:
    """Yield the conversations of an answer file."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON, or more than 64 MiB of it", hint=_HINT) from error
    generation = parse_answer(value, str(path)).answer_generation
    functions = list(generation.function)
    yield [""], functions
    for conversation in generation.train_messages or ():
        yield [message.content or "" for message in conversation] or [""], functions


def _trained(text: str) -> Iterator[ConversationTexts]:
    """Yield the conversations of a training file, as far as the text goes."""
    for value in _instances(text):
        turns = value.get("conversations") if isinstance(value, dict) else None
        if isinstance(turns, list) and turns:
            said = [str(turn.get("value", "")) for turn in turns if isinstance(turn, dict)]
            system, _, listing = said[0].partition(LISTING) if said else ("", "", "")
            yield [system.replace(ANCHOR + HINT, ANCHOR), *said[1:]], _listed(listing)


def _instances(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


def _listed(listing: str) -> list[dict[str, Any]]:
    try:
        value = ast.literal_eval(listing)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _head_of(path: Path) -> str:
    try:
        with open_file(path) as file:
            text = file.read(MOST_ARTEFACT_BYTES).decode("utf-8-sig", errors="ignore").lstrip()
            return wellformed.json_text(text)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist", hint=_HINT) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}", hint=_HINT) from error
