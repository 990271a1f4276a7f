"""Date Calculator: differences, shifts, weekdays and ages. Library: dateutil.relativedelta."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from typing import Annotated

from dateutil.relativedelta import relativedelta

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError, choice
from toolsrv_catalogs.offline.values.day import Date, today
from toolsrv_catalogs.offline.values.number import whole

tool = Endpoints()


@tool.get("/days_between")
def days_between(start: Date, end: Date) -> Answer:
    days = (end - start).days
    return {
        "start": str(start),
        "end": str(end),
        "days": days,
        "weeks": round(days / 7, 2),
    }


@tool.get("/add")
def add_to_date(
    date: Date,
    amount: Annotated[int, whole(-36500, 36500)],
    unit: Annotated[str, choice("days", "weeks", "months", "years")] = "days",
) -> Answer:
    steps = {unit: amount}
    try:
        result = date + relativedelta(
            days=steps.get("days", 0),
            weeks=steps.get("weeks", 0),
            months=steps.get("months", 0),
            years=steps.get("years", 0),
        )
    except (ValueError, OverflowError):
        raise ParameterError("amount", "leads outside the years 1 to 9999") from None
    return {
        "date": str(date),
        "added": f"{amount} {unit}",
        "result": result.isoformat(),
        "weekday": calendar.day_name[result.weekday()],
    }


@tool.get("/weekday")
def weekday(date: Date) -> Answer:
    return {"date": str(date), "weekday": calendar.day_name[date.weekday()]}


@tool.get("/week_number")
def week_number(date: Date | None = None) -> Answer:
    day = date or today()
    year, week, _ = day.isocalendar()
    return {
        "date": str(day),
        "week_number": week,
        "iso_year": year,
        "day_of_year": day.timetuple().tm_yday,
    }


@tool.get("/age")
def age(birth_date: Date, on: Date | None = None) -> Answer:
    day = on or today()
    if day < birth_date:
        raise ParameterError("birth_date", f"{birth_date} lies after {day}")
    passed = relativedelta(day, birth_date)
    return {
        "birth_date": str(birth_date),
        "on": str(day),
        "age": passed.years,
        "exact_age": f"{passed.years} years, {passed.months} months, {passed.days} days",
        "days_lived": (day - birth_date).days,
    }


@tool.get("/leap_year/{year}")
def leap_year(year: Annotated[int, whole(1, 9999)]) -> Answer:
    leap = calendar.isleap(year)
    return {"year": year, "leap_year": leap, "days_in_year": 366 if leap else 365}


@tool.get("/unix")
def unix_time(timestamp: Annotated[int, whole(-62135596800, 253402300799)]) -> Answer:
    moment = datetime.fromtimestamp(timestamp, UTC)
    return {
        "timestamp": timestamp,
        "utc_time": moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00"),
        "weekday": calendar.day_name[moment.weekday()],
    }
