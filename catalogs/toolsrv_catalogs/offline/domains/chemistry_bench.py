"""Chemistry Bench: elements and formulas. Library: molmass."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from molmass import ELEMENTS, Element, Formula, FormulaError

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, NotFoundError, quoted
from toolsrv_catalogs.offline.values.number import Positive, significant, tidy
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_FORMULA = re.compile(r"(?:[A-Z][a-z]?[0-9]{0,3}|\(|\)[0-9]{0,2}|[·.*][0-9]{0,2})+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_COMMON = {
    "water": "H2O", "salt": "NaCl", "table salt": "NaCl", "glucose": "C6H12O6",
    "sugar": "C12H22O11", "sucrose": "C12H22O11", "carbon dioxide": "CO2", "ethanol": "C2H6O",
    "alcohol": "C2H6O", "caffeine": "C8H10N4O2", "ammonia": "NH3", "methane": "CH4",
    "aspirin": "C9H8O4", "sulfuric acid": "H2SO4", "hydrochloric acid": "HCl",
    "baking soda": "NaHCO3", "acetic acid": "C2H4O2", "vinegar": "C2H4O2", "benzene": "C6H6",
    "hydrogen peroxide": "H2O2", "acetone": "C3H6O", "ozone": "O3", "oxygen": "O2",
    "nitrogen": "N2", "hydrogen": "H2", "chlorine": "Cl2",
}  # fmt: skip
_SPELLINGS = {"aluminum": "aluminium", "cesium": "caesium", "sulphur": "sulfur"}


def _element(text: str) -> Element:
    name = fold(text[:40])
    name = _SPELLINGS.get(name, name)
    for element in ELEMENTS:
        names = (element.symbol.lower(), element.name.lower(), str(element.number))
        if name in names or name == _SPELLINGS.get(element.name.lower()):
            return element
    raise NotFoundError(f"no element {quoted(text)}; give a name, symbol or atomic number")


class Compound(NamedTuple):
    """A formula as it was written, and as molmass reads it."""

    text: str
    formula: Formula


def _compound(text: str) -> Compound:
    plain = _COMMON.get(fold(text[:60])) or text.strip().translate(_SUBSCRIPTS)
    plain = plain.upper() if plain.islower() else plain
    if len(plain) > 60 or not _FORMULA.fullmatch(plain):
        raise UsageError(f"{quoted(text)} is not a chemical formula; write it like H2O or C6H12O6")
    try:
        formula = Formula(plain.replace("·", ".").replace("*", "."))
        _ = formula.mass
    except (FormulaError, ValueError, KeyError, IndexError, ZeroDivisionError):
        raise UsageError(f"{quoted(text)} is not a chemical formula that can be read") from None
    return Compound(plain, formula)


ElementName = Annotated[Element, Field(_element)]
CompoundText = Annotated[Compound, Field(_compound)]


@tool.get("/element/{element}")
def element_info(element: ElementName) -> Answer:
    return {
        "element": element.name,
        "symbol": element.symbol,
        "atomic_number": element.number,
        "atomic_mass": tidy(element.mass, 4),
        "group": element.group,
        "period": element.period,
    }


@tool.get("/molar_mass")
def molar_mass(formula: CompoundText) -> Answer:
    return {
        "formula": formula.text,
        "molar_mass_g_per_mol": tidy(formula.formula.mass, 3),
        "atoms": formula.formula.atoms,
    }


@tool.get("/composition")
def composition(formula: CompoundText) -> Answer:
    shares = {
        item.symbol: tidy(100 * item.fraction, 2) for item in formula.formula.composition().values()
    }
    return {"formula": formula.text, "mass_percent": shares}


@tool.get("/moles")
def grams_to_moles(formula: CompoundText, grams: Positive) -> Answer:
    return {
        "formula": formula.text,
        "grams": tidy(grams),
        "moles": significant(grams / formula.formula.mass, 6),
    }
