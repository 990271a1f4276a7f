"""Languages by English name, own name or ISO code, on babel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from babel import Locale, UnknownLocaleError

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

_ALIASES = {"mandarin": "zh", "farsi": "fa", "norwegian": "nb", "flemish": "nl", "castilian": "es"}


@cache
def _codes() -> Mapping[str, str]:
    table = {fold(str(name)): code for code, name in Locale("en").languages.items()}
    for code in list(table.values()):
        table.setdefault(code.lower(), code)
    return table | _ALIASES


def parse_language(text: str) -> Locale:
    """Return the locale of the language that ``text`` names.

    Raises:
        NotFoundError: no such language, or none whose words are known here.
    """
    code = _codes().get(fold(text[:60])) or _codes().get(text.strip().lower().replace("-", "_"))
    try:
        if code is not None:
            return Locale.parse(code)
    except (UnknownLocaleError, ValueError):
        pass
    raise NotFoundError(f"no language {quoted(text)} known here; give a name like French or a code")


Language = Annotated[Locale, Field(parse_language)]
