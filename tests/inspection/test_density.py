"""The predictive density against SciPy's."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV

from surff import FourierFeatures, KernelRidgeRegressor
from surff.inspection import neg_nlpd_scorer, nlpd

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(30,), (30, 2)])
def test_equals_the_normal_density(shape):
    y, mean = RNG.normal(size=(2, *shape))
    std = RNG.uniform(0.2, 3.0, size=shape)
    weight = RNG.integers(0, 3, size=30)
    logs = norm(mean, std).logpdf(y)
    assert nlpd(y, mean, std) == pytest.approx(-logs.mean(), rel=1e-12)
    repeated = np.repeat(logs, weight, axis=0)
    found = nlpd(y, mean, std, weight)
    assert found == pytest.approx(-repeated.mean(), rel=1e-12)


def test_what_is_no_prediction_is_refused():
    with pytest.raises(ValueError, match=r"must have one shape, got .*\(3,\)"):
        nlpd(np.zeros(3), np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="std must be positive, got a minimum of 0"):
        nlpd(np.zeros(3), np.zeros(3), [1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        nlpd(np.zeros(3), np.zeros(3), np.ones(3), np.ones(4))


def test_a_search_takes_the_scorer():
    X = RNG.normal(size=(120, 2))
    y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=120)
    model = KernelRidgeRegressor(FourierFeatures(16, random_state=0), cv="gcv")
    grid = {"features__gamma": [0.3, 300.0]}
    search = GridSearchCV(model, grid, scoring=neg_nlpd_scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"features__gamma": 0.3}
