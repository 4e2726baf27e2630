"""`python -m tests.fuzz`: damaged files, sums of every way in, bad arguments, threads, kills and forks."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

from tests.fuzz.arguments import try_arguments
from tests.fuzz.corruption import Outcomes, try_flips
from tests.fuzz.file_kinds import KINDS
from tests.fuzz.processes import try_forks, try_kills, try_threads

FLIPS_AT_ONCE, CHECKS_AT_ONCE = 2500, 5000


@dataclass
class Log:
    """What is printed as it is found, and again, in short, at the end."""

    began: float = field(default_factory=time.monotonic)
    failures: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)

    def say(self, what: str, result: object, wrong: list[str], *, in_short: bool = True) -> None:
        print(f"{time.monotonic() - self.began:6.0f} s  {what}: {result}", flush=True)
        print("".join(f"    {line}\n" for line in wrong[:100]), end="", flush=True)
        self.failures.extend(wrong)
        if in_short:
            self.summary.append(f"{what}: {result}")

    def end(self) -> int:
        """The summary, and the exit code."""
        code = 1 if self.failures else 0
        print(f"\nIn {time.monotonic() - self.began:,.0f} s:")
        print("\n".join(f"  {line}" for line in self.summary))
        print(f"{len(self.failures)} failures; exit code {code}", flush=True)
        return code


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("only", nargs="?", choices=["arguments"], help="bad arguments alone")
    parser.add_argument("--calls", type=int, help="with a bad argument; all unless told")
    parser.add_argument("--flips", type=int, default=2_000, help="damaged files of each kind")
    parser.add_argument("--checks", type=int, default=50_000, help="comparisons with exact sums")
    parser.add_argument("--engine-checks", type=int, default=3000, help="of each other engine")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="of damaged files")
    parser.add_argument("--engines", nargs="*", help="other engines; all unless told")
    parser.add_argument("--kills", type=int, default=100, help="writers killed with -9")
    parser.add_argument("--forks", type=int, default=200, help="children forked during updates")
    parser.add_argument("--seed", type=int, default=0, help="other files, rows and moments")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="files at a time")
    options = parser.parse_args()
    log = Log()
    log.say("bad arguments", *try_arguments(options.calls, options.seed))
    if options.only:
        return log.end()
    if options.flips:
        damage(log, options)
    if options.checks or options.engine_checks:
        compare(log, options)
    log.say("threads", *try_threads())
    log.say("kills", *try_kills(options.kills, options.seed))
    log.say("forks", *try_forks(options.forks))
    return log.end()


def damage(log: Log, options: argparse.Namespace) -> None:
    """Files of every kind, damaged."""
    total = Outcomes()
    for name in options.kinds:
        outcomes = flipped(name, options.flips, options.seed, options.workers)
        log.say(name, outcomes, outcomes.failures, in_short=False)
        total.counts += outcomes.counts
        total.failures += outcomes.failures
    read = sum(total.counts.values())
    log.summary.append(f"{read:,} damaged files of {len(options.kinds)} kinds: {total}")


def compare(log: Log, options: argparse.Namespace) -> None:
    """Every way in; of engines that are not always installed, those that are, and which are not."""
    from tests.fuzz.differential import ENGINES, try_cases, try_rows  # needs every light engine

    made: Counter[str] = Counter()
    sizes, seeds = parts(options.checks, CHECKS_AT_ONCE, options.seed)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for checks in pool.map(try_rows, sizes, seeds):
            log.say("every way in", checks, checks.failures, in_short=False)
            made += checks.made
    wanted = (options.engines or list(ENGINES)) if options.engine_checks else []
    for name in wanted:
        if ENGINES[name].is_installed:
            checks = try_cases(options.engine_checks, options.seed, [name])
            log.say(name, checks, checks.failures, in_short=False)
            made += checks.made
    missing = [name for name in wanted if not ENGINES[name].is_installed]
    log.say("not installed", ", ".join(missing) or "none", [])
    by_way = ", ".join(f"{name} {count:,}" for name, count in made.items())
    log.summary.append(f"{made.total():,} checks over {len(made)} ways in: {by_way}")


def flipped(name: str, flips: int, seed: int, workers: int) -> Outcomes:
    """The outcomes of so many damaged files of one kind, some thousand to a child."""
    total = Outcomes()
    sizes, seeds = parts(flips, FLIPS_AT_ONCE, seed)
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(partial(try_flips, [name]), sizes, seeds):
            total.counts += part[name].counts
            total.failures += part[name].failures
    return total


def parts(number: int, at_once: int, seed: int) -> tuple[list[int], range]:
    """So many, in parts for one process each, and the seeds of these."""
    sizes = [min(at_once, number - first) for first in range(0, number, at_once)]
    return sizes, range(1000 * seed, 1000 * seed + len(sizes))


if __name__ == "__main__":
    sys.exit(main())
