"""The same rows give the same sketch, whatever holds them."""

import subprocess
import sys

import numpy as np
import pytest

from calibrant import Sketch, smooth_ece
from calibrant.data.rows import as_rows

Y = np.array([0, 1, 1, 0, 1, 0])
P = np.array([0.125, 0.75, 1.0, 0.0, 0.5, 0.625])  # exact in every float type
EXPECTED = Sketch.from_arrays(Y, P)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "longdouble", ">f4", ">f8", "<f8", object])
def test_predictions_of_any_float_type(dtype):
    assert Sketch.from_arrays(Y, P.astype(dtype)) == EXPECTED


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i4", ">f8", object],
)
def test_labels_of_any_type(dtype):
    assert Sketch.from_arrays(Y.astype(dtype), P) == EXPECTED


def layouts(values):
    wide = np.zeros((values.size, 3), values.dtype)
    wide[:, 1] = values
    yield wide[:, 1]
    yield values[::-1].copy()[::-1]
    frozen = values.copy()
    frozen.flags.writeable = False
    yield frozen
    yield np.ndarray(values.size, values.dtype, b"x" + values.tobytes(), 1)  # not aligned
    yield values.tolist()
    yield tuple(values.tolist())
    yield np.ma.array(values)


@pytest.mark.parametrize("which", range(7))
def test_any_layout(which):
    y, p = list(layouts(Y))[which], list(layouts(P))[which]
    assert Sketch.from_arrays(y, p) == EXPECTED
    assert Sketch.from_arrays(y, p, sample_weight=p) == Sketch.from_arrays(Y, P, sample_weight=P)


def test_inputs_are_not_changed():
    y, p = Y.copy(), P.copy()
    smooth_ece(y, p, sample_weight=p)
    assert np.array_equal(y, Y)
    assert np.array_equal(p, P)


def test_minus_zero_is_zero_and_the_float_below_one_is_below_one():
    assert Sketch.from_arrays([0], [-0.0]) == Sketch.from_arrays([0], [0.0])
    assert Sketch.from_arrays([0], [np.nextafter(1, 0)]).cells.tolist() == [2**16 - 1]
    assert Sketch.from_arrays([0], [1.0]).cells.tolist() == [2**16]
    assert Sketch.from_arrays([0], [5e-324]).cells.tolist() == [0]


def foreign(values, missing):
    """The values in the columns of every library, with missing ones at `missing`."""
    pandas, polars, pyarrow = (pytest.importorskip(m) for m in ("pandas", "polars", "pyarrow"))
    holes = [None if row in missing else value for row, value in enumerate(values.tolist())]
    whole = values.dtype.kind == "i"
    yield holes
    yield np.ma.array(values, mask=[row in missing for row in range(values.size)])
    yield pandas.Series(holes, dtype="float64")
    yield pandas.Series(holes, dtype="Int64" if whole else "Float64")
    yield pandas.Series(holes, dtype="int64[pyarrow]" if whole else "double[pyarrow]")
    yield pandas.Series(holes, dtype=object, index=range(5, 5 + len(holes)))
    yield polars.Series(holes)
    yield pyarrow.array(holes)
    yield pyarrow.chunked_array([holes[:2], holes[2:]])


@pytest.mark.parametrize("missing", [(), (1, 4)])
def test_columns_of_any_library(missing):
    kept = np.setdiff1d(np.arange(Y.size), missing)
    for y, p in zip(foreign(Y, missing), foreign(P, missing), strict=True):
        pairs = as_rows(y, p, on_invalid="drop")
        assert np.array_equal(pairs.p, P[kept])
        assert np.array_equal(pairs.y, Y[kept])
        assert dict(pairs.dropped) == ({"missing prediction": 2} if missing else {})


def test_text_and_booleans_of_any_library():
    pandas, polars, pyarrow = (pytest.importorskip(m) for m in ("pandas", "polars", "pyarrow"))
    words = ["no", "yes", None, "no"]
    for column in (
        words,
        np.array(words, object),
        np.array(["no", "yes", pandas.NA, "no"], object),
        np.ma.array(["no", "yes", "?", "no"], mask=[0, 0, 1, 0]),
        pandas.Series(words),
        pandas.Series(words, dtype="string"),
        pandas.Series(words, dtype="category"),
        pandas.Series(words, dtype="string[pyarrow]"),
        polars.Series(words),
        polars.Series(words, dtype=polars.Categorical),
        pyarrow.array(words),
    ):
        pairs = as_rows(column, [0.1, 0.2, 0.3, 0.4], pos_label="yes", on_invalid="drop")
        assert pairs.y.tolist() == [0, 1, 0]
        assert dict(pairs.dropped) == {"missing label": 1}
    booleans = [False, True, None, False]
    for column in (
        booleans,
        pandas.Series(booleans, dtype="boolean"),
        polars.Series(booleans),
        pyarrow.array(booleans),
    ):
        pairs = as_rows(column, [0.1, 0.2, 0.3, 0.4], on_invalid="drop")
        assert pairs.y.tolist() == [0, 1, 0]


def test_logits_and_percentages_mean_what_they_say():
    assert as_rows([0, 1], [-np.inf, np.inf], from_logits=True).p.tolist() == [0, 1]
    assert as_rows([0], [0], from_logits=True).p.tolist() == [0.5]
    assert as_rows([0, 1], [0, 100], percent=True).p.tolist() == [0, 1]


@pytest.mark.heavy
def test_tensors():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        p = torch.tensor(P, dtype=dtype, requires_grad=True)
        assert Sketch.from_arrays(torch.tensor(Y), p) == EXPECTED
    assert Sketch.from_arrays(torch.tensor(Y) == 1, torch.tensor(P)) == EXPECTED


@pytest.mark.heavy
def test_jax_arrays():
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16"):
        assert Sketch.from_arrays(jax.numpy.array(Y), jax.numpy.array(P, dtype)) == EXPECTED


def loaded_by(code):
    names = "{name.split('.')[0] for name in sys.modules}"
    script = f"import sys\n{code}\nprint(*sorted({names}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HEAVY = {
    "scipy",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "torch",
    "jax",
    "sklearn",
    "matplotlib",
    "duckdb",
}


def test_importing_calibrant_loads_numpy_at_most():
    assert not loaded_by("import calibrant; dir(calibrant)") & HEAVY


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("calibrant.smooth_ece([0, 1], [.2, .7])", set()),
        (
            "import numpy; calibrant.smooth_ece(numpy.array([0, 1]), numpy.array([.2, .7]))",
            set(),
        ),
        (
            "import polars; calibrant.smooth_ece(polars.Series([0, 1]), polars.Series([.2, .7]))",
            {"narwhals", "polars"},
        ),
        (
            "import pyarrow as pa; calibrant.smooth_ece(pa.array([0, 1]), pa.array([.2, .7]))",
            {"narwhals", "pyarrow", "pandas"},  # pyarrow itself asks for pandas
        ),
    ],
)
def test_one_library_does_not_bring_in_another(code, allowed):
    assert not (loaded_by(f"import calibrant\n{code}") & HEAVY) - allowed
