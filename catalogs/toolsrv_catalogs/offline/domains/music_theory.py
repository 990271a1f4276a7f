"""Music Theory: notes, chords, scales and tempo. Equal temperament at A4 = 440 Hz, no library."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    Field,
    ParameterError,
    choice,
    quoted,
)
from toolsrv_catalogs.offline.values.number import between, tidy, whole
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_SHARPS = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
_LETTERS = "CDEFGAB"
_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_CHORDS = {
    "major": (0, 4, 7), "minor": (0, 3, 7), "diminished": (0, 3, 6), "augmented": (0, 4, 8),
    "seventh": (0, 4, 7, 10), "major_seventh": (0, 4, 7, 11), "minor_seventh": (0, 3, 7, 10),
}  # fmt: skip
_SCALES = {
    "major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10),
    "harmonic_minor": (0, 2, 3, 5, 7, 8, 11), "pentatonic": (0, 2, 4, 7, 9),
    "blues": (0, 3, 5, 6, 7, 10), "dorian": (0, 2, 3, 5, 7, 9, 10),
}  # fmt: skip
_DEGREES = {"pentatonic": (0, 1, 2, 4, 5), "blues": (0, 2, 3, 4, 4, 6)}
"""Letters above the root of scales that leave some out; the others have one note of each."""


class _Pitch(NamedTuple):
    """Semitones above C, the octave where one is given, and the letter that it is spelled with."""

    step: int
    octave: int | None
    letter: str


def _note(text: str) -> _Pitch:
    plain = text.strip().replace("♯", "#").replace("♭", "b")
    plain = re.sub(r" ?sharp", "#", plain, flags=re.IGNORECASE)
    plain = re.sub(r" ?flat", "b", plain, flags=re.IGNORECASE)
    match = re.fullmatch(r"([A-Ga-g])(#{0,2}|b{0,2}) ?(-1|[0-9])?", plain)
    if match is None:
        raise UsageError(f"{quoted(text)} is not a note; write it like C, F# or A4")
    letter = match[1].upper()
    step = _STEPS[letter] + match[2].count("#") - match[2].count("b")
    return _Pitch(step, int(match[3]) if match[3] else None, letter)


Note = Annotated[_Pitch, Field(_note)]


def _spelled(step: int) -> str:
    return _SHARPS[step % 12]


def _above(root: _Pitch, degrees: int, semitones: int) -> str:
    """Return the note so many letters and semitones above a root: Cb, not B, a sixth above Eb."""
    letter = _LETTERS[(_LETTERS.index(root.letter) + degrees) % len(_LETTERS)]
    shift = (root.step + semitones - _STEPS[letter] + 6) % 12 - 6
    return letter + ("#" * shift if shift > 0 else "b" * -shift)


@tool.get("/frequency")
def note_frequency(note: Note) -> Answer:
    octave = 4 if note[1] is None else note[1]
    midi = 12 * (octave + 1) + note[0]
    return {
        "note": f"{_spelled(midi)}{midi // 12 - 1}",
        "frequency_hz": tidy(440 * 2 ** ((midi - 69) / 12), 2),
        "midi_number": midi,
    }


@tool.get("/transpose")
def transpose(note: Note, semitones: Annotated[int, whole(-48, 48)]) -> Answer:
    octave = note[1]
    total = note[0] + semitones + 12 * (octave or 0)
    suffix = "" if octave is None else str(total // 12)
    start = "" if octave is None else str((note[0] + 12 * octave) // 12)
    return {
        "note": f"{_spelled(note[0])}{start}",
        "semitones": semitones,
        "transposed": f"{_spelled(total)}{suffix}",
    }


@tool.get("/chord")
def chord_notes(root: Note, kind: Annotated[str, choice(*_CHORDS)] = "major") -> Answer:
    notes = [_above(root, 2 * at, step) for at, step in enumerate(_CHORDS[kind])]
    return {"root": notes[0], "kind": kind, "notes": " ".join(notes)}


@tool.get("/scale")
def scale_notes(root: Note, kind: Annotated[str, choice(*_SCALES)] = "major") -> Answer:
    degrees = _DEGREES.get(kind, range(len(_LETTERS)))
    notes = [_above(root, at, step) for at, step in zip(degrees, _SCALES[kind], strict=True)]
    return {"root": notes[0], "kind": kind, "notes": " ".join(notes)}


@tool.get("/tempo")
def beat_length(bpm: Annotated[float, between(1, 1000)]) -> Answer:
    beat = 60000 / bpm
    names = ((40, "grave"), (60, "largo"), (76, "adagio"), (108, "andante"), (120, "moderato"),
             (168, "allegro"), (200, "presto"))  # fmt: skip
    return {
        "bpm": tidy(bpm),
        "beat_milliseconds": tidy(beat, 2),
        "eighth_note_milliseconds": tidy(beat / 2, 2),
        "tempo_name": next((name for limit, name in names if bpm <= limit), "prestissimo"),
    }


@tool.get("/interval")
def interval(low_note: Note, high_note: Note) -> Answer:
    if (low_note[1] is None) != (high_note[1] is None):
        raise ParameterError("high_note", "give the octave for both notes or for neither")
    gap = high_note[0] - low_note[0] + 12 * ((high_note[1] or 0) - (low_note[1] or 0))
    if low_note[1] is None:
        gap %= 12
    names = (
        "unison", "minor second", "major second", "minor third", "major third", "perfect fourth",
        "tritone", "perfect fifth", "minor sixth", "major sixth", "minor seventh",
        "major seventh",
    )  # fmt: skip
    name = "octave" if gap and gap % 12 == 0 else names[gap % 12]
    return {"semitones": gap, "interval": name}
