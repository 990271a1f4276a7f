"""Which operations of a source are taken: rules by tag, path and method.

A rule is ``tag:NAME``, ``path:GLOB`` or ``method:GET``. Of the rules that include, an operation
fulfils one of each kind that is there; one rule that excludes it is enough. Tags and methods are
compared without regard to case; in a path ``*`` stands for any characters, slashes too. Pure; the
readers say which tags, path and method an operation has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from urllib.parse import urlsplit

from toolsrv_catalogs.findings import FileFindings
from toolsrv_registry.api import Tool
from toolsrv_registry.errors import UsageError

KINDS = ("tag", "path", "method")
_SHOWN = 40
"""Tags, paths or methods that an error lists."""
_RULE_LIMIT = 300


@dataclass(frozen=True)
class _Rule:
    kind: str
    text: str
    pattern: re.Pattern[str]

    def fits(self, tags: Collection[str], path: str, method: str) -> bool:
        values = {"tag": tags, "path": (path,), "method": (method,)}[self.kind]
        return any(self.pattern.match(one) for one in values)


@dataclass
class Selection:
    """The rules of one import, and what they met: ``left_out`` operations, and their words."""

    include: tuple[_Rule, ...] = ()
    exclude: tuple[_Rule, ...] = ()
    left_out: int = 0
    _used: set[_Rule] = field(default_factory=set)
    _met: dict[str, dict[str, None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude)

    def wanted(self, tags: Iterable[str], path: str, method: str) -> bool:
        """Return whether an operation is taken; count one that is not."""
        if not self:
            return True
        tags = [tag for tag in tags if isinstance(tag, str)]
        for kind, values in (("tag", tags), ("path", [path]), ("method", [method])):
            self._met[kind] |= dict.fromkeys(values)
        fitting = [rule for rule in self.include if rule.fits(tags, path, method)]
        self._used.update(fitting)
        kinds = {rule.kind for rule in self.include}
        taken = kinds == {rule.kind for rule in fitting} and not any(
            rule.fits(tags, path, method) for rule in self.exclude
        )
        self.left_out += not taken
        return taken

    def check(self) -> None:
        """Raise UsageError for a rule that includes nothing of what there is."""
        if not self._met["method"]:  # no operation at all is another fault
            return
        for rule in self.include:
            if rule not in self._used:
                there = list(self._met[rule.kind])
                more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
                listed = ", ".join(one[:80] for one in sorted(there)[:_SHOWN]) + more
                raise UsageError(
                    f"--include {rule.kind}:{rule.text} fits no operation",
                    hint=f"the {rule.kind}s are: {listed}"
                    if there
                    else f"no operation has a {rule.kind}",
                )


def selection(include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Selection:
    """Return the selection that rules stand for.

    Raises:
        UsageError: a rule is none.
    """
    return Selection(tuple(map(_rule, include)), tuple(map(_rule, exclude)))


def chosen(tool: Tool, wanted: Selection, found: FileFindings) -> Tool:
    """Return a tool with the APIs that are wanted; its category and its name are their tags."""
    tags = (tool.category, tool.name)
    stays = [
        at
        for at, api in enumerate(tool.apis)
        if wanted.wanted(tags, urlsplit(api.url).path, api.method)
    ]
    if len(stays) == len(tool.apis):
        return tool
    found.unselected += len(tool.apis) - len(stays)
    found.apis -= len(tool.apis) - len(stays)
    return only(tool, stays)


def only(tool: Tool, stays: Sequence[int]) -> Tool:
    """Return a tool with the APIs at these places, and what is kept beside them."""
    extras = tuple(tool.api_extras[at] for at in stays if tool.api_extras)
    return tool.model_copy(
        update={
            "apis": tuple(tool.apis[at] for at in stays),
            "api_extras": extras if any(extras) else (),
        }
    )


def _rule(text: str) -> _Rule:
    kind, _, value = text.partition(":")
    kind, value = kind.strip().lower(), value.strip()
    if kind not in KINDS or not value or len(value) > _RULE_LIMIT:
        raise UsageError(
            f"{text[:80]!r} is no rule for operations",
            hint="write tag:NAME, path:/admin/* or method:GET",
        )
    if kind == "path":
        return _Rule(kind, value, re.compile(translate(value)))
    return _Rule(kind, value, re.compile(re.escape(value) + r"\Z", re.IGNORECASE))
