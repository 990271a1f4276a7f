"""Color Lab: names, codes, contrast and mixing. Library: webcolors, colorsys."""

from __future__ import annotations

import colorsys
import re
from functools import cache
from typing import Annotated, NamedTuple

import webcolors

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, NotFoundError, quoted
from toolsrv_catalogs.offline.values.number import tidy
from toolsrv_catalogs.offline.values.words import fold

tool = Endpoints()


class Rgb(NamedTuple):
    """Red, green and blue, 0 to 255 each."""

    red: int
    green: int
    blue: int

    @property
    def hex(self) -> str:
        """The color as ``#rrggbb``."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


@cache
def _names() -> dict[str, Rgb]:
    return {name: Rgb(*webcolors.name_to_rgb(name)) for name in webcolors.names("css3")}


_HUES = frozenset(
    {"red", "green", "blue", "yellow", "orange", "purple", "pink", "brown", "gray", "grey"}
)


def parse_color(text: str) -> Rgb:
    """Return the color written as name, ``#rgb``, ``#rrggbb`` or ``rgb(1, 2, 3)``.

    Raises:
        NotFoundError: neither a CSS color name nor a code.
    """
    plain = fold(text[:60])
    digits = plain.lstrip("#")
    if re.fullmatch(r"[0-9a-f]{6}|[0-9a-f]{3}", digits):
        return Rgb(*webcolors.hex_to_rgb(f"#{digits}"))
    triple = re.fullmatch(r"(?:rgb ?)?\(?([0-9]{1,3})[, ]+([0-9]{1,3})[, ]+([0-9]{1,3})\)?", plain)
    if triple and all(int(part) < 256 for part in triple.groups()):
        return Rgb(*(int(part) for part in triple.groups()))
    # "navy blue" is navy: people add the colour that a shade is one of.
    shade, _, hue = plain.rpartition(" ")
    shade = shade if hue in _HUES else ""
    names = _names()
    color = names.get(plain.replace(" ", "")) or names.get(shade.replace(" ", ""))
    if color is None:
        raise NotFoundError(f"no color {quoted(text)}; give a CSS name like teal or a code")
    return color


Color = Annotated[Rgb, Field(parse_color)]


def _nearest(color: Rgb) -> str:
    def gap(name: str) -> int:
        other = _names()[name]
        mean = (color.red + other.red) // 2
        red, green, blue = (a - b for a, b in zip(color, other, strict=True))
        weighted_red, weighted_blue = (512 + mean) * red * red, (767 - mean) * blue * blue
        return weighted_red // 256 + 4 * green * green + weighted_blue // 256

    return min(sorted(_names()), key=gap)


def _luminance(color: Rgb) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@tool.get("/hex")
def color_to_hex(color: Color) -> Answer:
    return {"color": _nearest(color), "hex": color.hex}


@tool.get("/name")
def nearest_name(hex: Color) -> Answer:  # noqa: A002 - the parameter's public name
    name = _nearest(hex)
    return {"hex": hex.hex, "color_name": name, "exact": _names()[name] == hex}


@tool.get("/rgb")
def color_to_rgb(color: Color) -> Answer:
    hue, light, saturation = colorsys.rgb_to_hls(*(part / 255 for part in color))
    return {
        "color": color.hex,
        "red": color.red,
        "green": color.green,
        "blue": color.blue,
        "hsl": f"{round(hue * 360) % 360}, {round(saturation * 100)}%, {round(light * 100)}%",
    }


@tool.get("/contrast")
def contrast(foreground: Color, background: Color) -> Answer:
    low, high = sorted((_luminance(foreground), _luminance(background)))
    ratio = (high + 0.05) / (low + 0.05)
    level = "AAA" if ratio >= 7 else "AA" if ratio >= 4.5 else "AA large" if ratio >= 3 else "fail"
    return {
        "foreground": foreground.hex,
        "background": background.hex,
        "contrast_ratio": tidy(ratio, 2),
        "wcag_level": level,
    }


@tool.get("/mix")
def mix_colors(first: Color, second: Color) -> Answer:
    mixed = Rgb(*((a + b) // 2 for a, b in zip(first, second, strict=True)))
    return {
        "first": first.hex,
        "second": second.hex,
        "mixed": mixed.hex,
        "nearest_name": _nearest(mixed),
    }


@tool.get("/complement")
def complementary(color: Color) -> Answer:
    hue, light, saturation = colorsys.rgb_to_hls(*(part / 255 for part in color))
    parts = colorsys.hls_to_rgb((hue + 0.5) % 1, light, saturation)
    other = Rgb(*(round(part * 255) for part in parts))
    return {"color": color.hex, "complement": other.hex, "nearest_name": _nearest(other)}
