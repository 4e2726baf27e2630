"""Size and coverage for outcomes beyond yes and no: python -m bench.outcomes [samples]."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.stats import norm

from calibrant import assess, distributions, quantiles, smooth_ece, survival

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
HORIZON = 1.0
LARGEST = 1000
"""Rows up to which distributions are tried: fifty isotonic regressions take long."""


def subjects(rng, n, leaving):
    """Times, events and predicted risks of which eight in ten come true; censored at the rate `leaving`."""
    risk = rng.beta(2, 3, n)
    event_time = rng.exponential(-1 / np.log1p(-0.8 * risk))
    censored_at = rng.exponential(1 / leaving, n)
    event = event_time <= censored_at
    return np.minimum(event_time, censored_at), event.astype(int), risk, event_time <= HORIZON


def coverage(samples, n, leaving):
    """Share of intervals that hold the population's SmoothECE; of subjects censored before the horizon."""
    _, _, risk, happened = subjects(np.random.default_rng(10**6), 10**6, leaving)
    truth, inside, censored = smooth_ece(happened.astype(int), risk), 0, 0.0
    for seed in range(samples):
        time, event, risk, _ = subjects(np.random.default_rng(seed), n, leaving)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = survival.at_horizon(time, event, risk, horizon=HORIZON)
            interval = assess(rows).interval
        inside += interval.low <= truth <= interval.high
        censored += float(np.mean((event == 0) & (time < HORIZON))) / samples
    return inside / samples, censored


def sizes(samples, n):
    """Share of calibrated samples in which the test of quantiles rejects, and that of distributions."""
    rng, rejected = np.random.default_rng(n), np.zeros(2)
    for _ in range(samples):
        mean, noise = rng.normal(size=(2, n))
        forecasts = {level: mean + norm.ppf(level) for level in LEVELS}
        rejected[0] += quantiles.assess(mean + noise, forecasts).miscalibrated
        if n <= LARGEST:
            rejected[1] += distributions.assess(mean + noise, mean=mean, sd=1.0).miscalibrated
    return rejected / samples


def main(samples: int) -> None:
    for n, leaving in ((800, 0.35), (400, 0.9), (800, 0.9)):
        share, censored = coverage(samples, n, leaving)
        print(f"survival n={n}, {censored:.2f} censored: coverage {share:.4f}", flush=True)
    for n in (100, 1000, 10_000):
        size = sizes(samples, n)
        other = f", of distributions {size[1]:.4f}" if n <= LARGEST else ""
        print(f"n={n}: size of quantiles {size[0]:.4f}{other}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
