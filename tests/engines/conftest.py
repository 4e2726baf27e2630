"""Every engine as a function from columns to a source, so that one suite runs over all of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.fuzz import engines
from tests.fuzz.draws import Rows
from tests.fuzz.engines import ENGINES
from tests.fuzz.ways import WAYS, Way, scan

LIGHT = [
    *("pandas", "pandas nullable", "pandas of arrow", "polars", "polars lazy", "duckdb"),
    *("arrow in chunks", "arrow dataset", "arrow reader", "batches of arrow", "dict of arrays"),
    *("parquet folder", "csv", "json lines", "arrow file"),
]
HEAVY = ["spark", "spark connect", "dask", "ray", "ray of pandas", "ibis", "modin"]
ALL = {**WAYS, **ENGINES, "spark connect": Way(engines.spark_connect, scan, package="grpc")}
TEXT = ("csv", "json lines", "dask", "pandas nullable", "spark connect", "ray of pandas")
"""Sources whose columns do not have types of their own, or not those of pandas' objects."""


def pytest_generate_tests(metafunc):
    for fixture, but in (("engine", ()), ("typed_engine", TEXT)):
        if fixture in metafunc.fixturenames:
            light = [name for name in LIGHT if name not in but]
            heavy = [pytest.param(one, marks=pytest.mark.heavy) for one in HEAVY if one not in but]
            metafunc.parametrize(fixture, [*light, *heavy], indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine(request, tmp_path_factory):
    """A function from a dict of lists (None for missing) to a source of the engine."""
    name = request.param
    if not ALL[name].is_installed:
        pytest.skip(f"{name} could not be started: {ALL[name].package} is not installed")
    if name.startswith("spark"):  # of its two kinds only one runs at a time
        request.addfinalizer(engines.stop_spark)  # noqa: PT021  the others need no end
    return lambda columns: ALL[name].make(Rows(pa.table(columns)), tmp_path_factory.mktemp("rows"))


typed_engine = engine
"""The same, for those whose columns hold dates, bytes and lists."""


def pytest_terminal_summary(terminalreporter, config):
    """Say at the end of `make test-all`, in one place, what did not run and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {str(report.longrepr[-1]) for report in skipped if isinstance(report.longrepr, tuple)}
    if config.option.markexpr == "heavy" and reasons:
        terminalreporter.section("did not run")
        for reason in sorted(reasons):
            terminalreporter.line(reason.removeprefix("Skipped: "))
