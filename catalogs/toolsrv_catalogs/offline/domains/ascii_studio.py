"""ASCII Studio: large lettering from characters. Library: pyfiglet."""

from __future__ import annotations

from typing import Annotated

import pyfiglet

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, choice
from toolsrv_catalogs.offline.values.words import text_up_to

tool = Endpoints()
_FONTS = ("standard", "slant", "small", "big", "banner", "block", "digital", "mini")


@tool.get("/banner")
def banner(
    text: Annotated[str, text_up_to(20)], font: Annotated[str, choice(*_FONTS)] = "standard"
) -> Answer:
    art = pyfiglet.figlet_format(text, font=font, width=160)
    lines = [line.rstrip() for line in art.splitlines() if line.strip()]
    if not lines:
        raise ParameterError("text", "holds no letter that this lettering has")
    return {"text": text, "font": font, "art": "\n".join(lines)}


@tool.get("/fonts")
def fonts() -> Answer:
    return {"count": len(_FONTS), "fonts": list(_FONTS)}


@tool.get("/box")
def box(text: Annotated[str, text_up_to(60)]) -> Answer:
    inner = " ".join(text.split())
    edge = "+" + "-" * (len(inner) + 2) + "+"
    return {"text": text, "art": f"{edge}\n| {inner} |\n{edge}"}
