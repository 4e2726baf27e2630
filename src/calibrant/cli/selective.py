"""`calibrant selective`: how often answers are wrong when only the most confident ones are given."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from functools import partial

from calibrant._format import decimals
from calibrant.cli.certify import results_of
from calibrant.cli.inputs import load_sketches
from calibrant.cli.output import in_bytes, note, printable, require_ending, shown, written
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.cli.table import Column, show_table
from calibrant.decisions.selective import Selective, selective
from calibrant.errors import InputError
from calibrant.measures.result_record import plain
from calibrant.plotting.risk_coverage import RiskCoverageDiagram

__all__ = ["run_selective"]

SCHEMA = "calibrant.selective/1"
PICTURES = (".svg", ".pdf", ".png")


def run_selective(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Print the areas of every group, and draw the curve of one."""
    target = None if output is None else require_ending(output, PICTURES, "a picture", files)
    loaded = load_sketches(files, reading, grouping, measuring)
    if loaded.columns is not None and not grouping.per_file:
        loaded.columns.hint()
    results = results_of(loaded, partial(selective, confidence=measuring.confidence))
    if json:
        groups = [dict(zip(loaded.by, map(plain, name), strict=False)) for name in results]
        document = {
            "schema": SCHEMA,
            "files": loaded.files,
            "log": loaded.log,
            "results": [
                {"group": group, **one.to_dict()}
                for group, one in zip(groups, results.values(), strict=True)
            ],
        }
        print(json_format.dumps(document, indent=2))
    elif len(results) == 1:
        print(next(iter(results.values())))
    else:
        _show(loaded.by, results)
    if target is not None:
        if len(results) > 1:
            raise InputError(
                "draws one group",
                argument="output",
                seen=len(results),
                cure="Choose one group, or leave it out.",
            )
        picture = RiskCoverageDiagram(next(iter(results.values())))
        size = written(target, picture.save)
        note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).")


def _show(by: Sequence[str], results: dict[tuple[object, ...], Selective]) -> None:
    results_shown = list(results.values())
    names = [
        Column(name, [shown(key[place]) for key in results], is_name=True)
        for place, name in enumerate(by)
    ]
    show_table(
        [
            *names,
            Column("rows", [f"{one.n:,}" for one in results_shown]),
            Column("risk", [decimals(one.risk, places=3) for one in results_shown]),
            Column("AURC", [decimals(one.aurc, places=3) for one in results_shown]),
            Column("excess", [decimals(one.excess_aurc, places=3) for one in results_shown]),
            Column("AUGRC", [decimals(one.augrc, places=3) for one in results_shown]),
            Column("at 80%", [_risk_at(one, 0.8) for one in results_shown]),
            Column("at 50%", [_risk_at(one, 0.5) for one in results_shown]),
        ],
        caption="risk: share wrong, of all and of the most confident 80% and 50%",
    )


def _risk_at(one: Selective, coverage: float) -> str:
    return decimals(one.risk_at(coverage), places=3) if coverage <= one.coverage else "–"
