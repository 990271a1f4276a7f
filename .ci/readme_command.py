"""Print a command of the README: ``run``, ``test``, or ``task`` (what the run command solves).

The README marks a code block with ``<!-- command: NAME -->`` on the line before its fence.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path


def commands(readme: str) -> dict[str, str]:
    """Return the marked code blocks by name."""
    return dict(re.findall(r"<!-- command: (\w+) -->\n```\w*\n(.*?)\n```", readme, re.DOTALL))


def main() -> None:
    """Print what the first argument names."""
    known = commands((Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8"))
    name = sys.argv[1]
    if name == "task":
        words = shlex.split(known["run"])
        sys.stdout.write(words[words.index("solve") + 1] + "\n")
    else:
        sys.stdout.write(known[name] + "\n")


if __name__ == "__main__":
    main()
