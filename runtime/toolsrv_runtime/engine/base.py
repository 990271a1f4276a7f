"""The Engine port: prefix in, constrained continuation out.

An engine knows tokens, logits and grammars. It does not know conversations, functions or trees:
a format writes the prompt and reads the reply. All methods block; callers use a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolsrv_runtime.stop import Stop


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt.

    ``special`` text comes from a format and may spell control tokens; other text is data (task,
    observation, catalog) whose control tokens stay plain characters. (Words that a vocabulary
    defines for a format, like `` use #1``, are read as such everywhere; they control nothing.) ``tokens`` are known for
    text that the engine wrote itself, so that the next prompt repeats them exactly. ``shared``:
    the prompt up to the end of this piece repeats from task to task.
    """

    text: str
    special: bool = False
    tokens: tuple[int, ...] | None = None
    shared: bool = False


Prompt = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; ``temperature`` 0 is greedy and needs no seed."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One continuation.

    ``finish``: ``grammar`` (complete, or a stop text of the model's profile was written), ``length`` (``max_tokens`` reached), ``stopped`` (Stop was
    set). Token counts are per call; ``evaluated`` leaves out the prefix that was already cached.
    """

    text: str
    tokens: tuple[int, ...]
    finish: Literal["grammar", "length", "stopped"]
    prompt_tokens: int
    evaluated: int
    forced: int


@dataclass(frozen=True, slots=True)
class Scores:
    """Natural-log probabilities of alternative continuations, and what computing them cost."""

    values: tuple[float, ...]
    prompt_tokens: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens of a vocabulary that are more than their text, by text.

    ``control`` tokens print nothing and only template text may spell them; ``user_defined`` ones
    are visible words that the tokenizer never splits (Qwen's ``<tool_call>``). ``bos`` and ``eos``
    are the texts that chat templates read under ``bos_token`` and ``eos_token``, "" for none.
    """

    bos: str = ""
    eos: str = ""
    control: Mapping[str, int] = field(default_factory=dict)
    user_defined: Mapping[str, int] = field(default_factory=dict)


class Engine(Protocol):
    """Something that continues prompts. Calls may come from several threads at once."""

    @property
    def name(self) -> str:
        """The model's name, for records."""

    @property
    def context(self) -> int:
        """How many tokens prompt and reply may have together."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """The vocabulary's special tokens, as chat templates and grammars name them."""

    def count(self, prompt: Prompt) -> int:
        """Return the prompt's length in tokens."""

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,
        max_tokens: int,
        sampling: Sampling = Sampling(),
        stop: Stop | None = None,
        excluded: Sequence[str] = (),
    ) -> Reply:
        """Continue ``prompt`` inside ``grammar`` (llguidance's Lark dialect).

        ``excluded`` are complete texts that the reply must not be: where it would be one, another
        value, name or outcome is chosen, the likeliest (see ``excluding``). ``<[id]>`` in the
        grammar stands for a token; control tokens are shown in the reply's text, and every token
        that ends a reply in the model's vocabulary ends it and is no part of it.

        Raises:
            ContextError: the prompt leaves no room for a reply.
            GrammarError: the grammar does not compile, no text fulfils it, or only excluded ones.
        """

    def score(self, prompt: Prompt, options: Sequence[str]) -> Scores:
        """Return log P(option | prompt) of each option's tokens."""

    def close(self) -> None:
        """Free the model."""
