"""Signal Desk: Morse code and the spelling alphabet. Own tables (ITU-R M.1677, ICAO), no library."""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, quoted
from toolsrv_catalogs.offline.values.words import fold, text_up_to

tool = Endpoints()
Short = Annotated[str, text_up_to(200)]
_MORSE = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?'!/()&:;=+-_\"@",
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
            "-----",
            ".----",
            "..---",
            "...--",
            "....-",
            ".....",
            "-....",
            "--...",
            "---..",
            "----.",
            ".-.-.-",
            "--..--",
            "..--..",
            ".----.",
            "-.-.--",
            "-..-.",
            "-.--.",
            "-.--.-",
            ".-...",
            "---...",
            "-.-.-.",
            "-...-",
            ".-.-.",
            "-....-",
            "..--.-",
            ".-..-.",
            ".--.-.",
        ],
        strict=True,
    )
)
_LOOKALIKES = str.maketrans("\u00b7\u2022\u2212\u2013|", "..--/")
_LETTERS = {code: letter for letter, code in _MORSE.items()}
_SPOKEN = {
    word[0].upper(): word
    for word in [
        "Alfa",
        "Bravo",
        "Charlie",
        "Delta",
        "Echo",
        "Foxtrot",
        "Golf",
        "Hotel",
        "India",
        "Juliett",
        "Kilo",
        "Lima",
        "Mike",
        "November",
        "Oscar",
        "Papa",
        "Quebec",
        "Romeo",
        "Sierra",
        "Tango",
        "Uniform",
        "Victor",
        "Whiskey",
        "X-ray",
        "Yankee",
        "Zulu",
    ]
} | dict(
    zip(
        "0123456789",
        ["Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"],
        strict=True,
    )
)


@tool.get("/morse/encode")
def to_morse(text: Short) -> Answer:
    words = []
    for word in text.upper().split():
        letters = [_MORSE.get(c) or _MORSE.get(fold(c).upper(), "") for c in word]
        words.append(" ".join(filter(None, letters)))
    code = " / ".join(filter(None, words))
    if not code:
        raise ParameterError("text", "holds nothing that Morse code has a sign for")
    return {"text": text, "morse": code}


@tool.get("/morse/decode")
def from_morse(morse: Annotated[str, text_up_to(1000)]) -> Answer:
    plain = morse.translate(_LOOKALIKES)
    words = []
    for word in plain.split("/"):
        signs = word.split()
        unknown = [sign for sign in signs if sign not in _LETTERS]
        if unknown:
            raise ParameterError("morse", f"{quoted(unknown[0])} is not a Morse sign")
        words.append("".join(_LETTERS[sign] for sign in signs))
    return {"morse": morse, "text": " ".join(filter(None, words))}


@tool.get("/spelling")
def spell_out(text: Short) -> Answer:
    words = [_SPOKEN[c] for c in fold(text).upper() if c in _SPOKEN]
    if not words:
        raise ParameterError("text", "holds no letters or digits to spell")
    return {"text": text, "spelling": " ".join(words)}
