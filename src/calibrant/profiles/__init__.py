"""What each field of use asks for: a profile lists quantities, each with its interval and its source.

`calibrant.assess(..., profile="clinical")` computes one beside the assessment. A profile of your own is
a `Profile` with a name and functions from a `Sample` to a `Quantity`.
"""

from calibrant.inference.profile import Profile, Profiled, Quantity, Sample, Table, Unavailable
from calibrant.profiles.clinical import clinical
from calibrant.profiles.credit import credit
from calibrant.profiles.llm import llm
from calibrant.profiles.weather import weather

__all__ = [
    "Profile",
    "Profiled",
    "Quantity",
    "Sample",
    "Table",
    "Unavailable",
    "clinical",
    "credit",
    "llm",
    "weather",
]
