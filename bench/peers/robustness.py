"""What each package does with rows that cannot be right."""

from __future__ import annotations

import sys
from typing import Any

from bench import pages
from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask


def study() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in PEERS:
        print(f"bad input to {name}", file=sys.stderr, flush=True)
        try:
            found[name] = ask(name, "bad inputs")["answers"]
        except NoAnswer as error:
            found[name] = {"none": str(error)}
    return found


def _cell(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return f"error: {answer['error']}"
    number = "NaN" if answer["number"] is None else f"{answer['number']:.3g}"
    return f"warns, {number}" if answer["warned"] else number


def tables(found: dict[str, Any]) -> list[pages.Table]:
    cases = list(next(answers for answers in found.values() if "none" not in answers))
    rows = []
    for name, answers in found.items():
        if "none" in answers:
            rows.append([name, answers["none"], *[""] * (len(cases) - 1)])
        else:
            rows.append([name, *(_cell(answers[case]) for case in cases)])
    said = [
        [case, f"{answer['error']}: {answer['says']}"]
        for case, answer in found["calibrant"].items()
        if "error" in answer
    ]
    return [
        pages.Table(
            "Invalid input",
            ["package", *cases],
            rows,
            [
                "1,000 rows, one of them bad for NaN, sentinel and tie. A number means that the "
                "package returned it without a warning. `clean` is the same data without a bad row: if "
                "a package gives the same number for labels in {-1, 1}, it read them as intended.",
                "scikit-learn gives a curve; the number here is the widest gap of that curve.",
            ],
        ),
        pages.Table("What calibrant says", ["input", "message"], said),
    ]
