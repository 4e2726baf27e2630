"""`python -m tests.fuzz`: damaged files, every way in against exact sums, threads, kills and forks."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

from tests.fuzz.corruption import Outcomes, try_flips
from tests.fuzz.file_kinds import KINDS
from tests.fuzz.forgery import try_forgeries
from tests.fuzz.processes import try_forks, try_kills, try_threads

FLIPS_AT_ONCE = 2500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000, help="damaged files of each kind")
    parser.add_argument("--checks", type=int, default=50_000, help="comparisons with exact sums")
    parser.add_argument(
        "--clusters", type=int, default=100, help="of them by each of Dask, Ray and Spark"
    )
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="of damaged files")
    parser.add_argument("--kills", type=int, default=100, help="writers killed with -9")
    parser.add_argument("--forks", type=int, default=200, help="children forked during updates")
    parser.add_argument("--seed", type=int, default=0, help="other files, rows and moments")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="files at a time")
    options = parser.parse_args()
    failures: list[str] = []
    began = time.monotonic()

    def say(what: str, result: object, wrong: list[str]) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {what}: {result}", flush=True)
        print("".join(f"    {line}\n" for line in wrong[:10]), end="", flush=True)
        failures.extend(wrong)

    for name in options.kinds:
        outcomes = flipped(name, options.flips, options.seed, options.workers)
        say(name, outcomes, outcomes.failures)
    say("forged states", *try_forgeries(options.flips))
    if options.checks:
        from tests.fuzz.differential import CLUSTERS, try_rows  # needs every engine

        checks = try_rows(options.checks, options.seed)
        say("every way in", checks, checks.failures)
        for engine, package in CLUSTERS.items():
            if find_spec(package) is None:
                say(engine, "not installed", [])
                continue
            checks = try_rows(options.clusters, options.seed, [engine])
            say(engine, checks, checks.failures)
    say("threads", *try_threads())
    say("kills", *try_kills(options.kills, options.seed))
    say("forks", *try_forks(options.forks))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def flipped(name: str, flips: int, seed: int, workers: int) -> Outcomes:
    """The outcomes of so many damaged files of one kind, some thousand to a child."""
    total = Outcomes()
    sizes = [min(FLIPS_AT_ONCE, flips - first) for first in range(0, flips, FLIPS_AT_ONCE)]
    with ThreadPoolExecutor(workers) as pool:
        seeds = range(1000 * seed, 1000 * seed + len(sizes))
        for part in pool.map(partial(try_flips, [name]), sizes, seeds):
            total.counts += part[name].counts
            total.failures += part[name].failures
    return total


if __name__ == "__main__":
    sys.exit(main())
