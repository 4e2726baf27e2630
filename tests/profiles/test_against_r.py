"""The real R, asked about data that nobody has seen before."""

import shutil
import subprocess

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal

pytestmark = pytest.mark.heavy

SCRIPT = """
suppressMessages({library(rms); library(pROC)})
d <- read.csv("rows.csv"); z <- qlogis(d$p)
tight <- glm.control(epsilon=1e-15, maxit=200)
o <- glm(y ~ 1, offset=z, family=binomial, data=d, control=tight)
f <- glm(y ~ z, family=binomial, data=d, control=tight)
# R's covariance is that of the step before the last: fits that start at the maximum have its own.
o <- glm(y ~ 1, offset=z, family=binomial, data=d, control=tight, start=coef(o))
f <- glm(y ~ z, family=binomial, data=d, control=tight, start=coef(f))
null <- sum(dbinom(d$y, 1, d$p, log=TRUE))
v <- suppressWarnings(val.prob(d$p, d$y, pl=FALSE))
a <- ci.auc(roc(d$y, d$p, quiet=TRUE, direction="<", levels=c(0, 1)), method="delong")
cat(sprintf("%.15g\\n", c(coef(o), sqrt(vcov(o)), coef(f)[2], sqrt(vcov(f)[2, 2]), coef(f)[1],
    2 * (as.numeric(logLik(f)) - null), v["Brier"], v["S:z"], a[2], a[1], a[3])))
"""


@pytest.mark.parametrize(
    ("n", "slope", "spread"), [(300, 0.7, 1.0), (1000, 1.0, 2.0), (2000, 0.3, 4.0), (150, 1.4, 0.5)]
)
def test_rms_and_proc_agree_to_1e_7(n, slope, spread, tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed (Debian: r-base-core r-cran-rms r-cran-proc)")
    rng = np.random.default_rng([n, 18])
    z = np.round(rng.normal(-0.5, spread, n), 2)  # with ties
    y = (rng.random(n) < expit(0.2 + slope * z)).astype(int)
    p = expit(z)
    table = np.column_stack([y, p])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="y,p", comments="", fmt="%.17g")
    asked = subprocess.run(
        ["Rscript", "-e", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert asked.returncode == 0, asked.stderr
    r = [float(line) for line in asked.stdout.split()]
    found = cal.assess(y, p, profile="clinical").profile
    intercept, line, area = (
        found[name] for name in ("calibration intercept", "calibration slope", "AUC")
    )
    ours = [
        intercept.value,
        intercept.standard_error,
        line.value,
        line.standard_error,
        found["intercept given slope"].value,
        found["intercept 0 and slope 1, χ² (2 df)"].value,
        found["Brier score"].value,
        found["Spiegelhalter's z"].value,
        area.value,
        area.low,
        area.high,
    ]
    assert ours == pytest.approx(r, rel=1e-7, abs=1e-7)
