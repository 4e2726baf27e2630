"""Profiles: the quantities that a field of use asks for, each with its interval and its source.

`calibrant.assess(..., profile="clinical")` computes one beside the assessment. A profile of your own is
a `Profile` with a name and functions from a `Sample` to a `Quantity`. With the decorator `profile`, `assess`
and the command line know it by name.
"""

from calibrant.inference.profile import (
    PROFILES,
    Profile,
    Profiled,
    Quantity,
    Sample,
    Table,
    Unavailable,
    profile,
)
from calibrant.profiles.clinical import clinical
from calibrant.profiles.credit import credit
from calibrant.profiles.llm import llm
from calibrant.profiles.weather import weather

__all__ = [
    "PROFILES",
    "Profile",
    "Profiled",
    "Quantity",
    "Sample",
    "Table",
    "Unavailable",
    "clinical",
    "credit",
    "llm",
    "profile",
    "weather",
]
