"""QR Maker: QR codes as SVG or text. Library: segno."""

from __future__ import annotations

from typing import Annotated

import segno
from segno import helpers

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, choice
from toolsrv_catalogs.offline.values.words import text_up_to

tool = Endpoints()
Content = Annotated[str, text_up_to(300)]
Name = Annotated[str, text_up_to(63)]
Level = Annotated[str, choice("L", "M", "Q", "H")]


def _code(text: str, error: str) -> segno.QRCode:
    try:
        return segno.make_qr(text, error=error)
    except (segno.DataOverflowError, ValueError):
        raise ParameterError("text", "does not fit into a QR code") from None


@tool.get("/svg")
def qr_svg(text: Content, error_correction: Level = "M") -> Answer:
    code = _code(text, error_correction)
    return {"text": text, "modules": code.symbol_size()[0], "svg": code.svg_inline(scale=4)}


@tool.get("/text")
def qr_text(text: Content) -> Answer:
    rows = [
        "".join("██" if dark else "  " for dark in row)
        for row in _code(text, "L").matrix_iter(border=1)
    ]
    return {"text": text, "qr_code": "\n".join(rows)}


@tool.get("/size")
def qr_size(text: Annotated[str, text_up_to(3000)], error_correction: Level = "M") -> Answer:
    code = _code(text, error_correction)
    return {
        "characters": len(text),
        "error_correction": code.error or error_correction,
        "version": str(code.designator),
        "modules": f"{code.symbol_size(border=0)[0]} x {code.symbol_size(border=0)[0]}",
    }


@tool.get("/wifi")
def wifi_qr(network: Name, password: Name) -> Answer:
    payload = helpers.make_wifi_data(ssid=network, password=password, security="WPA")
    return {
        "network": network,
        "payload": payload,
        "svg": _code(payload, "M").svg_inline(scale=4),
    }
