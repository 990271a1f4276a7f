"""Chemistry Bench: elements and formulas. Library: molmass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from molmass import ELEMENTS, Element, Formula, FormulaError

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, NotFoundError, quoted
from toolsrv_catalogs.offline.values.number import Positive, significant, tidy
from toolsrv_catalogs.offline.values.once import once
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
    "nitrogen": "N2", "hydrogen": "H2", "chlorine": "Cl2", "table sugar": "C12H22O11",
    "fructose": "C6H12O6", "lactose": "C12H22O11", "ethane": "C2H6", "propane": "C3H8",
    "butane": "C4H10", "pentane": "C5H12", "hexane": "C6H14", "heptane": "C7H16",
    "octane": "C8H18", "ethylene": "C2H4", "acetylene": "C2H2", "methanol": "CH4O",
    "propanol": "C3H8O", "isopropanol": "C3H8O", "toluene": "C7H8", "formaldehyde": "CH2O",
    "glycerol": "C3H8O3", "urea": "CH4N2O", "citric acid": "C6H8O7", "lactic acid": "C3H6O3",
    "nitric acid": "HNO3", "phosphoric acid": "H3PO4", "carbonic acid": "H2CO3",
    "sodium hydroxide": "NaOH", "lye": "NaOH", "potassium hydroxide": "KOH",
    "sodium chloride": "NaCl", "sodium bicarbonate": "NaHCO3", "washing soda": "Na2CO3",
    "calcium carbonate": "CaCO3", "limestone": "CaCO3", "chalk": "CaCO3", "gypsum": "CaSO4",
    "bleach": "NaClO", "carbon monoxide": "CO", "nitrous oxide": "N2O", "rust": "Fe2O3",
    "quartz": "SiO2", "paracetamol": "C8H9NO2", "ibuprofen": "C13H18O2", "nicotine": "C10H14N2",
    "cholesterol": "C27H46O", "vitamin c": "C6H8O6", "alanine": "C3H7NO2", "glycine": "C2H5NO2",
}  # fmt: skip
_SYMBOLS = frozenset(element.symbol for element in ELEMENTS) | {"D", "T"}
_SYMBOL = re.compile(r"[A-Z][a-z]?")
_SALTS = (
    "KCl", "AgNO3", "CuSO4", "MgSO4", "FeCl3", "NH4Cl", "CaCl2", "MgCl2", "TiO2", "Al2O3",
    "KMnO4", "KNO3", "CaO", "MgO", "ZnO", "HF", "HBr", "KI", "NaF", "Na2SO4", "SO2", "NO2",
)  # fmt: skip
_IN_SMALL = {formula.lower(): formula for formula in (*_SALTS, *_COMMON.values())}
"""What formulas in small letters are: nacl has no nitrogen."""

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


@once
def _symbol_of() -> Mapping[str, str]:
    """Return the symbol of each element by its name; of gases whose molecules are meant, those."""
    names = {element.name.lower(): element.symbol for element in ELEMENTS}
    return names | {said: names[name] for said, name in _SPELLINGS.items()} | _COMMON


def _compound(text: str) -> Compound:
    plain = _symbol_of().get(fold(text[:60])) or text.strip().translate(_SUBSCRIPTS)
    plain = _IN_SMALL.get(plain, plain.upper()) if plain.islower() else plain
    # molmass would read other letters as the amino acids of a peptide.
    known = _SYMBOLS.issuperset(_SYMBOL.findall(plain))
    if len(plain) > 60 or not known or not _FORMULA.fullmatch(plain):
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
