"""Text of a consent request: the call as a person sees it, at the terminal or through MCP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from toolsrv.plain import one_line, plain

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_runtime.calls.result import Consent

SHOWN = 4_000
"""Characters of the arguments that are shown; how many there are is told."""
TASK_SHOWN = 200


def worth_asking(settings: Settings) -> bool:
    """Whether calls reach their hosts, so that a person is asked about them for a reason."""
    return settings.simulate == "off" and settings.mode in {"live", "record"}


def question(wanted: Consent, task: str = "") -> str:
    """Return what the person is shown: method, host, path, arguments and why they are asked.

    Characters that nobody sees stand there as their escapes, since they are sent too; files with
    their size and digest. ``task``
    tells the questions of several runs apart.
    """
    from toolsrv_runtime.calls.serialization import abbreviate_data_urls

    arguments = _visible(
        json.dumps(abbreviate_data_urls(wanted.arguments), ensure_ascii=False, indent=2)
    )
    if len(arguments) > SHOWN:
        arguments = f"{arguments[:SHOWN]}… ({len(arguments):,} characters)"
    asked = f"\nfor the task: {one_line(task, TASK_SHOWN)}" if task else ""
    return plain(
        f"Allow this call? {wanted.reason}.\n"
        f"{wanted.method} {wanted.host}{wanted.path[:SHOWN]}\n{arguments}{asked}"
    )


def _visible(text: str) -> str:
    return "".join(
        one if one == "\n" or plain(one) == one else json.dumps(one)[1:-1] for one in text
    )
