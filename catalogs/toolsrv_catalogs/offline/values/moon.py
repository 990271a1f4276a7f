"""When the moon is new and full: Meeus, Astronomical Algorithms, chapter 49.

The terms below a thousandth of a day are left out: moments are right to some ten minutes from 1900
to 2100, to an hour or two in the years 1000 to 2999. A phase that close to midnight may be put on
the day beside. Days are those of UTC.
"""

from __future__ import annotations

from datetime import date
from math import floor, radians, sin

NEW, FULL = 0.0, 0.5
"""Phases, as the share of a month since the new moon."""

_MONTH_DAYS = 29.530588861
_FIRST_NEW = 2451550.09766  # the new moon of 6 January 2000
_JULIAN_DAY_OF_ORDINAL_0 = 1721424.5
# Days, and how often the anomalies of the sun and the moon and the latitude's argument count.
_TERMS = {
    NEW: (
        (-0.40720, 0, 1, 0), (0.17241, 1, 0, 0), (0.01608, 0, 2, 0), (0.01039, 0, 0, 2),
        (0.00739, -1, 1, 0), (-0.00514, 1, 1, 0), (0.00208, 2, 0, 0), (-0.00111, 0, 1, -2),
    ),
    FULL: (
        (-0.40614, 0, 1, 0), (0.17302, 1, 0, 0), (0.01614, 0, 2, 0), (0.01043, 0, 0, 2),
        (0.00734, -1, 1, 0), (-0.00515, 1, 1, 0), (0.00209, 2, 0, 0), (-0.00111, 0, 1, -2),
    ),
}  # fmt: skip


def next_phase(day: date, phase: float) -> date:
    """Return the first day from ``day`` on with a phase, ``NEW`` or ``FULL``."""
    since = day.toordinal() + _JULIAN_DAY_OF_ORDINAL_0 - _FIRST_NEW
    month = floor(since / _MONTH_DAYS) - 1
    while (found := floor(_moment(month, phase) - _JULIAN_DAY_OF_ORDINAL_0)) < day.toordinal():
        month += 1
    return date.fromordinal(found)


def _moment(month: int, phase: float) -> float:
    """Return the Julian day of a phase; months are counted from the new moon of January 2000."""
    k = month + phase
    t = k / 1236.85  # centuries
    sun = radians(2.5534 + 29.10535670 * k - 0.0000014 * t**2)
    moon = radians(201.5643 + 385.81693528 * k + 0.0107582 * t**2)
    latitude = radians(160.7108 + 390.67050284 * k - 0.0016118 * t**2)
    eccentricity = 1 - 0.002516 * t - 0.0000074 * t**2
    return (
        _FIRST_NEW
        + _MONTH_DAYS * k
        + 0.00015437 * t**2
        + sum(
            days * eccentricity ** abs(suns) * sin(suns * sun + moons * moon + latitudes * latitude)
            for days, suns, moons, latitudes in _TERMS[phase]
        )
    )
