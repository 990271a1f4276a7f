"""The four questions of ToolEval: our own wording, or that of the user's copy of ToolBench.

An evaluator of ToolBench is a folder with ``config.yaml`` and a template of ``<function>`` blocks.
Its placeholders are replaced, nothing else in it is obeyed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv_catalogs import yaml_text
from toolsrv_registry.errors import DataError
from toolsrv_runtime.contract.models import Tool
from toolsrv_runtime.files import read_text

QUESTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "check_answer_status": ("answer_status", ("Unsure", "Unsolved", "Solved")),
    "parse_answer_status": ("answer_status", ("Unsure", "Unsolved", "Solved")),
    "check_task_solvable": ("task_status", ("Unsure", "Unsolvable", "Solvable")),
    "select_better_answer": ("index", ("0", "1")),
}
"""Question → the argument that holds the verdict, and its values."""

MOST_BYTES = 1 << 20
MOST_TOKENS = 4096
_REASON_LIMIT = 600
_PLACEHOLDER = re.compile(r"\{(query|answer|task|answer_0|answer_1)\}")
_BLOCK = re.compile(r"<function>(.*?)</function>", re.DOTALL)
_PART = re.compile(r"<(name|description)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wording:
    """Prompts by question; ``{query}`` and the like stand for the parts of a question."""

    prompts: Mapping[str, str]
    temperature: float = 0.2
    max_tokens: int = 600

    @property
    def digest(self) -> str:
        """A hash that tells this wording from others."""
        every = repr((sorted(self.prompts.items()), self.temperature, self.max_tokens))
        return hashlib.sha256(every.encode()).hexdigest()[:16]

    def text(self, question: str, parts: Mapping[str, str]) -> str:
        """Return the prompt of a question with its parts filled in."""
        return _PLACEHOLDER.sub(lambda found: parts.get(found[1], found[0]), self.prompts[question])

    def tool(self, question: str, *, reasons: bool) -> Tool:
        """Return the function that a reply calls; ``reasons``: with a reason before the verdict."""
        name, values = QUESTIONS[question]
        properties: dict[str, Any] = {}
        if reasons:
            properties["reason"] = {
                "type": "string",
                "maxLength": _REASON_LIMIT,
                "description": "Why, in a sentence or two.",
            }
        properties[name] = {"type": "string", "enum": list(values), "description": "The verdict."}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return Tool(question, "Give the verdict.", schema)


_STATUS = (
    "Solved: the answer serves all parts of the query with definite information or with the wanted "
    "action done. Unsolved: a part is missing, refused, only promised or plainly wrong, or the "
    "answer is an apology. Unsure: what you are shown does not tell."
)

OURS = Wording(
    {
        "check_answer_status": (
            "Judge whether a final answer serves a query. You see the answer only, not how it was "
            f"found.\n{_STATUS}\n\nQuery:\n{{query}}\n\nFinal answer:\n{{answer}}\n\n"
            "Call check_answer_status with the verdict."
        ),
        "parse_answer_status": (
            "Judge whether an agent's answer serves a query. You see its calls, what they returned "
            "and its final answer. Values that no response supports do not serve a query. A way "
            "along which every call failed does not either.\n"
            f"{_STATUS}\n\nQuery:\n{{query}}\n\nAnswer:\n{{answer}}\n\n"
            "Call parse_answer_status with the verdict."
        ),
        "check_task_solvable": (
            "Judge whether a query can be served with a list of functions. You see the query and the "
            "functions.\nSolvable: the functions can bring all that the query asks for, and the "
            "query says all that they need. Unsolvable: the query asks for something that none of "
            "them can bring or do, contradicts itself, or leaves out or invents what a call needs. "
            "Unsure: the descriptions do not tell.\n\nTask:\n{task}\n\n"
            "Call check_task_solvable with the verdict."
        ),
        "select_better_answer": (
            "Two agents answered one query with the same functions. Choose the better answer. Weigh "
            "in this order: how much of the needed information it has; whether it says truly what "
            "was done and what failed; how well its steps are reasoned; how many parts of the query "
            "it reached; how far it tried other functions where one failed; how few calls "
            "it wasted.\n\nQuery:\n{query}\n\nAnswer 0:\n{answer_0}\n\nAnswer 1:\n{answer_1}\n\n"
            "Call select_better_answer with the index of the better one."
        ),
    }
)
"""Our own wording, at ToolEval's temperature."""


def read_wording(folder: Path) -> Wording:
    """Return the wording of an evaluator folder of ToolBench (``evaluators/<name>``).

    Raises:
        NotFoundError: the folder has no ``config.yaml`` or template.
        DataError: they cannot be read, or lack one of the four questions.
    """
    config = _config(folder / "config.yaml")
    template = _read(folder / Path(str(config.get("prompt_template") or "template.txt")).name)
    prompts = {}
    for block in _BLOCK.findall(template):
        parts = dict(_PART.findall(block))
        prompts[parts.get("name", "").strip()] = parts.get("description", "")
    missing = [name for name in QUESTIONS if name not in prompts]
    if missing:
        raise DataError(
            f"the evaluator {folder} does not ask {', '.join(missing)}",
            hint="give tooleval_gpt-3.5-turbo_default of ToolBench, or leave --evaluator out",
        )
    kwargs = config.get("completions_kwargs")
    given = kwargs if isinstance(kwargs, dict) else {}
    temperature, tokens = given.get("temperature", 0.2), given.get("max_tokens", 600)
    if not _number(temperature) or not 0 <= temperature <= 2:
        raise DataError(f"{folder}/config.yaml: temperature is no number from 0 to 2")
    if not _number(tokens) or tokens < 1:
        raise DataError(f"{folder}/config.yaml: max_tokens is no positive number")
    return Wording(
        {name: prompts[name] for name in QUESTIONS},
        float(temperature),
        min(int(tokens), MOST_TOKENS),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _config(path: Path) -> dict[str, Any]:
    try:
        value = yaml_text.load(_read(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no YAML: {error}", hint="give ToolBench's own file") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no settings", hint="give ToolBench's own file")
    return value


def _read(path: Path) -> str:
    hint = "give a folder of ToolBench's evaluators: config.yaml and its template"
    return read_text(path, MOST_BYTES, hint=hint)
