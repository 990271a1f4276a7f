"""Numbers in other bases: told in one, wanted in another."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading.bases import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
CONVERT = APIS["convert_number_base"]
PARAMETERS = {one.name: one for one in CONVERT.parameters}


def stated(part: str, task: str = "") -> tuple[str, ...]:
    return tuple(
        told(PARAMETERS[name], CONVERT, Wish(part, "", task or part))
        for name in ("number", "from_base", "to_base")
    )


@pytest.mark.parametrize(
    ("text", "number", "source", "target"),
    [
        ("Turn the BEEF hex number into decimal.", "BEEF", "16", "10"),
        ("pushed BEEF as hex, what is that in decimal?", "BEEF", "16", "10"),
        ("what's 0xFF in binary", "0xFF", "16", "2"),
        ("in binary, what is 0xFF", "0xFF", "16", "2"),
        ("0b1011 in decimal", "0b1011", "2", "10"),
        ("convert 0o755 to binary", "0o755", "8", "2"),
        ("in binary, what's hex ff0", "ff0", "16", "2"),
        ("binary 101101 to hex please", "101101", "2", "16"),
        ("Give me the binary of 156.", "156", "", "2"),
        ("hex for 37 please", "37", "", "16"),
        ("base 3 number 2101 as octal", "2101", "3", "8"),
        ("101101 in binary has to become an ordinary number", "101101", "2", "10"),
        ("7D9 in hexadecimal. Put it in normal decimal first", "7D9", "16", "10"),
        ("FF in hex needs to be binary", "FF", "16", "2"),
        ("1987 in binary and as an ordinary number", "1987", "", "2"),
        ("to octal from binary: 1011", "1011", "2", "8"),
        ("which number is binary 1011", "1011", "2", "10"),
        ("write 255 in hex", "255", "", "16"),
        ("write 255 in base 16 and in octal", "255", "", "16"),
        ("the decimal number 255 in base 7", "255", "", "7"),
        ("255 and 31 in hex", "", "", "16"),
        ("hex 12 in hexadecimal", "12", "16", "10"),
        ("BEEF as hex, in base 99", "BEEF", "16", "99"),
        ("base 99 number 12 in octal", "", "99", "8"),
        ("from binary to octal to hex", "", "", ""),
        ("255 with two decimal places", "", "", ""),
        ("255", "", "", ""),
    ],
)
def test_the_words_say_from_which_base_to_which(
    text: str, number: str, source: str, target: str
) -> None:
    assert stated(text) == (number, source, target)


def test_a_part_with_one_base_is_read_with_the_task() -> None:
    task = "Our logger pushed BEEF as hex. What is that in decimal?"
    assert stated("What is that in decimal?", task) == ("BEEF", "16", "10")
    several = "Write 5 in binary, 7 in octal and 31 in hex."
    assert stated("31 in hex", several) == ("31", "", "16")


def test_other_parameters_have_no_base() -> None:
    for name, api in APIS.items():
        for parameter in api.parameters if name != "convert_number_base" else ():
            assert not told(parameter, api, Wish("hex BEEF in binary", "", "hex BEEF in binary"))
