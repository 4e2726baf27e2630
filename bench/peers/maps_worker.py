"""The maps of peers, for `maps.py`: runs inside their environment. Takes a question and an answer file."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from typing import Any

import betacal.beta_calibration
import numpy as np
import probmetrics.calibrators.logistic as logistic
import torch
from betacal import BetaCalibration
from netcal import scaling
from probmetrics.calibrators import get_calibrator
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from venn_abers import VennAbers
from venn_abers.venn_abers import geo_mean

warnings.filterwarnings("ignore")


class Finished:
    """torchmin's place: the same loss, by SciPy in double precision, until its gradient is 0."""

    @staticmethod
    def minimize(loss: Any, start: torch.Tensor, method: str) -> Any:
        def value(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            at = torch.tensor(parameters, dtype=torch.float64, requires_grad=True)
            found = loss(at)
            found.backward()
            return float(found), at.grad.numpy()

        options = {"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-11}
        found = minimize(value, start.numpy(), jac=True, method="L-BFGS-B", options=options)
        found.x, found.success = torch.tensor(found.x), True
        return found


def polished(fun: Any, x0: Any, args: Any = (), bounds: Any = None) -> Any:
    """SciPy's minimize as netcal calls it, with differences for a gradient, then without one to the end."""
    found = minimize(fun, x0, args=args, bounds=bounds)
    options = {"xatol": 1e-11, "fatol": 1e-16, "maxiter": 20_000, "maxfev": 20_000}
    for _ in range(3):
        found = minimize(
            fun, found.x, args=args, bounds=bounds, method="Nelder-Mead", options=options
        )
    return found


def exact_logits(probs: np.ndarray) -> np.ndarray:
    """probmetrics' logits without their way through single precision."""
    return np.maximum(
        np.log(np.asarray(probs, dtype=np.float64)), np.log(np.finfo(np.float32).tiny)
    )


def main() -> None:
    data = np.load(sys.argv[1])
    p, y, new, probs, classes = (data[k] for k in ("p", "y", "new", "probs", "classes"))
    venn = VennAbers()
    venn.fit(np.stack([1 - p, p], axis=1), y)
    mapped, both = venn.predict_proba(np.stack([1 - new, new], axis=1))
    found = {"venn-abers": mapped[:, 1]}
    found["venn-abers, lower"], found["venn-abers, upper"] = both.T

    lows, highs = [], []
    for k in range(int(data["fold"].max()) + 1):
        part = VennAbers()
        part.fit(np.stack([1 - p, p], axis=1)[data["fold"] == k], y[data["fold"] == k])
        low, high = part.predict_proba(np.stack([1 - new, new], axis=1))[1].T
        lows.append(low)
        highs.append(high)
    of_event, of_none = geo_mean(np.stack(highs, axis=1)), geo_mean(1 - np.stack(lows, axis=1))
    found["venn-abers, cross"] = of_event / (of_none + of_event)

    def beta(at: np.ndarray) -> np.ndarray:
        return BetaCalibration("abm").fit(p.reshape(-1, 1), y).predict(at.reshape(-1, 1))

    def of_netcal(made: type, at: np.ndarray) -> np.ndarray:
        fitted = made()
        fitted.fit(p, y)
        return np.ravel(fitted.transform(at))

    def structured(name: str) -> np.ndarray:
        made = get_calibrator(name)
        made.fit(probs, classes)
        return made.predict_proba(probs)

    of_two = {
        "betacal": beta,
        "netcal beta": functools.partial(of_netcal, scaling.BetaCalibration),
        "netcal logistic": functools.partial(of_netcal, scaling.LogisticCalibration),
        "netcal temperature": functools.partial(of_netcal, scaling.TemperatureScaling),
    }
    for name, fit in of_two.items():
        found[name], found[f"{name}, learned"] = fit(new), fit(p)
    found["probmetrics temperature"] = structured("temp-scaling")
    names = {"probmetrics SVS": "svs", "probmetrics SMS": "sms"}
    found |= {name: structured(method) for name, method in names.items()}
    betacal.beta_calibration.LogisticRegression = functools.partial(
        LogisticRegression, tol=1e-12, max_iter=100_000
    )
    logistic.torchmin, logistic.multiclass_probs_to_logits = Finished, exact_logits
    # The package has a class of this name, too.
    importlib.import_module("netcal.scaling.AbstractLogisticRegression").minimize = polished
    found |= {f"{name}, finished": fit(new) for name, fit in of_two.items()}
    found |= {f"{name}, finished": structured(method) for name, method in names.items()}
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
