"""Chord symbols: their root and their kind."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading.chords import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
CHORD = APIS["chord_notes"]
ROOT, KIND = CHORD.parameters


@pytest.mark.parametrize(
    ("part", "root", "kind"),
    [
        ("the chart says Bdim", "B", "diminished"),
        ("Which notes are in an E7 chord", "E", "seventh"),
        ("F#m7, please", "F#", "minor_seventh"),
        ("Ebmaj7", "Eb", "major_seventh"),
        ("play Am", "A", "minor"),
        ("Caug then", "C", "augmented"),
        ("notes of a C minor 7 chord", "C", "minor_seventh"),
        ("Bb dominant 7", "Bb", "seventh"),
        ("Am or Dm", "", ""),
        ("A minor", "", ""),
        ("Bsus4", "B", ""),
        ("Adam plays", "", ""),
    ],
)
def test_a_symbol_tells_root_and_kind(part: str, root: str, kind: str) -> None:
    assert (told(ROOT, CHORD, Wish(part)), told(KIND, CHORD, Wish(part))) == (root, kind)


def test_only_chords_have_symbols() -> None:
    frequency = APIS["note_frequency"]
    assert told(frequency.parameters[0], frequency, Wish("the chart says Bdim")) == ""
