"""Real predictions with reference values: breast cancer by two features, fitted to half of the rows."""

from functools import cache

import numpy as np
from scipy.special import expit


@cache
def breast_cancer():
    """y_true, y_prob of the odd rows, from an unpenalised logistic regression on the even ones."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    x, y = data.data[:, :2], (data.target == 0).astype(float)
    train, test = slice(0, None, 2), slice(1, None, 2)
    x = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    design = np.column_stack([np.ones(len(x)), x])
    beta = np.zeros(3)
    for _ in range(30):
        q = expit(design[train] @ beta)
        information = design[train].T @ (design[train] * (q * (1 - q))[:, None])
        beta += np.linalg.solve(information, design[train].T @ (y[train] - q))
    return y[test].astype(int), expit(design[test] @ beta)
