"""calibrant's companion measures beside those of the packages that have them too."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import pages
from bench.environments import make, pinned
from bench.peers.companions import BINS, COMPANIONS
from calibrant import smooth_ece
from calibrant.measures.catalogue import measure_all
from calibrant.measures.cumulative import cumulative_differences
from calibrant.measures.isotonic import binned_decomposition, corp_decomposition
from calibrant.measures.kernel import kernel_calibration_error, squared_kernel_calibration_error

SCRIPT = Path(__file__).with_name("companions.py")
ROWS = 3000
ROUNDING = 1e-6
NO_PEER = (
    "No package here has weak_calibration_error, distance_to_calibration (linear programs for HiGHS), "
    "truthful_atb, kde_ece, spline_ks_error, t_cal or cross_validated_ece. The tests compare these "
    "with their formulas, written out."
)


def sample() -> tuple[np.ndarray, np.ndarray]:
    """Overconfident predictions away from 0 and 1, where relplot is right too."""
    rng = np.random.default_rng(0)
    p = 0.01 + 0.98 * rng.random(ROWS)
    return (rng.random(ROWS) < p**1.05).astype(np.int64), p


def of_calibrant(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Every measure by the names of `companions`."""
    found = {line.name: line.value for line in measure_all(y, p, which="all")}
    cumulative, corp = cumulative_differences(y, p), corp_decomposition(y, p)
    return {
        **found,
        "smooth_ece_logit": smooth_ece(y, p, scale="logit"),
        "kernel_of_hits": kernel_calibration_error((p >= 0.5) == y, p, bandwidth=0.4),
        "ecce_mad_p_value": cumulative.mad_p_value,
        "ecce_range_p_value": cumulative.range_p_value,
        "discrimination": corp.discrimination,
        "binned_decomposition": binned_decomposition(y, p, n_bins=BINS).miscalibration,
        "squared_kernel_calibration_error": squared_kernel_calibration_error(y, p, unbiased=True),
    }


def of_peers(y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    """Answers by "measure peer": a number, or why there is none."""
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("p.npy", "y.npy")]
        np.save(files[0], p)
        np.save(files[1], y)
        for name in sorted({companion.environment for companion in COMPANIONS}):
            try:
                asked = [str(make(name)), str(SCRIPT), *files, name]
                done = subprocess.run(
                    asked, capture_output=True, text=True, timeout=300, check=True
                )
                answers |= json.loads(done.stdout.splitlines()[-1])
            except (subprocess.SubprocessError, OSError) as error:
                print(f"{name}: {type(error).__name__}")
    return answers


def versions() -> dict[str, str]:
    return pinned(*sorted({companion.peer for companion in COMPANIONS}))


def table() -> pages.Table:
    """What calibrant says, what the peer says, and why they differ if they do."""
    y, p = sample()
    ours, theirs = of_calibrant(y, p), of_peers(y, p)
    rows = []
    for one in COMPANIONS:
        value = theirs.get(f"{one.measure} {one.peer}", "no answer")
        mine = ours[one.measure]
        if isinstance(value, float):
            same = abs(value - mine) <= ROUNDING * max(1.0, abs(mine))
            why = "" if same else one.differs or "UNEXPLAINED"
            rows.append(
                [one.measure, one.peer, f"`{one.asked}`", f"{mine:.8g}", f"{value:.8g}",
                 f"{value - mine:+.1e}", why]
            )  # fmt: skip
        else:
            rows.append(
                [one.measure, one.peer, f"`{one.asked}`", f"{mine:.8g}", "none", "", str(value)]
            )
    header = [
        "measure",
        "package",
        "call",
        "calibrant",
        "package's value",
        "difference",
        "reason",
    ]
    return pages.Table(
        f"Compared with other packages: {ROWS:,} predictions between .01 and .99",
        header,
        rows,
        [
            NO_PEER,
            "kernel_of_hits: `kernel_calibration_error` with bandwidth .4, of p against whether the "
            "predicted class (p ≥ ½) was right. This is what netcal's MMCE measures.",
        ],
    )
