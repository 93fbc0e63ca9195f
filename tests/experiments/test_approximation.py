"""Errors of every draw and landmark rule; the orders that the literature reports."""

import csv
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surff.draws import DRAWS, split_weights
from surff.estimators import FourierFeatures
from surff.experiments import approximation
from surff.experiments.approximation import (
    ERRORS,
    Approximation,
    Rows,
    approximation_report,
    run_approximation,
    trial_part,
    trial_rows,
)
from surff.experiments.approximation import map_features as features_of
from surff.experiments.figures import STYLES
from surff.experiments.methods import ABLATION, DRAW_LABELS, LANDMARKS, METHODS
from surff.experiments.runner import Trial, select_rows
from surff.experiments.store import ResultStore
from surff.inspection import KernelErrors, relative_error, spectral_approximation
from surff.kernels import Gaussian, kernel_estimate

KEY = Approximation.KEY


@pytest.fixture
def small(monkeypatch):
    """120 rows to fit to and 60 to take errors on, of the 569 of a real set."""
    monkeypatch.setattr(approximation, "FIT_ROWS", 120)
    monkeypatch.setattr(approximation, "N_ROWS", 60)


def make_config(**options):
    options = {
        "dataset": "breast_cancer",
        "draws": ("monte_carlo", "sobol", "sparse_grid", "modified"),
        "landmarks": ("uniform", "kmeans"),
        "multiples": (2, 1),
        "trials": 2,
        **options,
    }
    return Approximation(**options)


def synthetic(n=200, d=5):
    return Rows("synthetic", np.random.default_rng(0).normal(size=(n, d)))


def test_every_draw_and_rule_has_a_name_and_a_style():
    methods = {*DRAWS, *(f"nystroem-{rule}" for rule in LANDMARKS)}
    assert set(Approximation().methods) == methods == DRAW_LABELS.keys()
    assert STYLES.keys() >= {*METHODS, *ABLATION, *DRAW_LABELS}


def test_errors_are_those_of_the_public_features():
    data, config = synthetic(), make_config(alpha=0.02, gamma=0.3)
    part = trial_part(data, config, 1)
    (row,) = trial_rows(data, config, Trial("synthetic", 3, 1, ("sobol",), 1.0), part)
    assert (row["n_frequencies"], row["n_rows"], row["gamma_"]) == (15, 200, 0.3)
    assert row["generation_time"] > 0
    # The seed is that of the trial and the size; any other gives another map.
    rng = np.random.default_rng(
        approximation.seed_sequence(config.seed, data, 1, 3)
    ).integers(2**31)
    features = FourierFeatures(30, gamma=0.3, draw="sobol", random_state=int(rng))
    Z = features.fit(part.fit).transform(part.sample)
    K = Gaussian().kernel(part.sample, gamma=0.3)
    for norm in ("spectral", "frobenius"):
        assert row[norm] == pytest.approx(relative_error(K, Z, norm))
    assert row["delta"] == pytest.approx(spectral_approximation(K, Z, 0.02 * 200))


def errors_of(X, method, n_components, gamma, n_seeds):
    """Mean and standard error of the errors over seeds, as dicts."""
    errors = KernelErrors(Gaussian().kernel(X, gamma=gamma), 1e-3 * len(X))
    values = []
    for seed in range(n_seeds):
        features = features_of(method, n_components, "rbf", gamma, seed)
        values.append(list(errors(features.fit_transform(X)).values()))
    means, spreads = np.mean(values, axis=0), np.std(values, axis=0)
    return (
        dict(zip(ERRORS, means, strict=True)),
        dict(zip(ERRORS, spreads / math.sqrt(n_seeds), strict=True)),
    )


def test_orders_of_the_draws():
    # At d = 5 the literature has Sobol < Halton < orthogonal < independent; here with
    # 512 frequencies, in the mean of 64 seeds and by margins of 30, 40 and 10 %. The
    # last is the closest, three standard errors off: wrong code aside, another seed
    # fails with probability 0.01 at most.
    methods = ("sobol", "halton", "orthogonal", "monte_carlo")
    found = [errors_of(synthetic().X, m, 1024, 0.1, 64) for m in methods]
    means = [mean["spectral"] for mean, _ in found]
    spreads = [spread["spectral"] for _, spread in found]
    for i, margin in enumerate((0.7, 0.6, 0.9)):
        assert means[i] < margin * means[i + 1]
        slack = margin * means[i + 1] - means[i]
        assert slack > 2.4 * math.hypot(spreads[i], margin * spreads[i + 1])
    frobenius = [mean["frobenius"] for mean, _ in found]
    assert frobenius == sorted(frobenius)


def test_spherical_radial_is_exact_near_zero():
    # Rows so close together that the kernel is nearly quadratic: the signed rule has
    # no error up to that degree, independent draws have one that falls as s^(-1/2).
    X, s = 0.05 * synthetic().X, 121
    K = Gaussian().kernel(X)
    errors = {}
    for name, draw in (
        ("iid", DRAWS["monte_carlo"]()),
        ("ssr", DRAWS["spherical_radial"](signed=True)),
    ):
        drawn = draw.draw(Gaussian(), s, 5, np.random.default_rng(0))
        frequencies, weights = split_weights(drawn)
        weights = np.ones(s) if weights is None else weights
        errors[name] = np.linalg.norm(kernel_estimate(X, frequencies, weights) - K)
    assert errors["ssr"] < 0.05 * errors["iid"]


def test_orders_of_the_landmarks():
    # Of 400 rows all but 20 lie together, and uniform landmarks fall among them. The
    # other rules leave less than a half of the error, in the mean of eight seeds.
    scale = np.where(np.arange(400) < 380, 0.05, 2.0)[:, None]
    X = np.random.default_rng(0).normal(size=(400, 3)) * scale
    means = {
        rule: errors_of(X, f"nystroem-{rule}", 48, 0.3, 8)[0]["delta"]
        for rule in LANDMARKS
    }
    for rule in ("leverage", "rpcholesky", "kmeans"):
        assert means[rule] < 0.5 * means["uniform"]


def test_landmarks_leave_the_kernel_below_and_draws_do_not():
    # K - Z Z^T is positive semi-definite, so that Delta is at most 1.
    X = synthetic().X
    assert errors_of(X, "nystroem-uniform", 20, 0.3, 2)[0]["delta"] <= 1.0
    assert errors_of(X, "sobol", 20, 0.3, 2)[0]["delta"] > 1.0


def test_run_and_resume(tmp_path, small):
    config = make_config()
    path = tmp_path / "approximation.jsonl"
    run_approximation(config, ResultStore(path, KEY))
    content = path.read_bytes()
    rows = select_rows(config, ResultStore(path, KEY).rows)
    assert len(rows) == 2 * 2 * 6
    assert [row["multiple"] for row in rows[:4]] == [1, 1, 2, 2]
    left_out = {(row["method"], row["multiple"]) for row in rows if "left_out" in row}
    assert left_out == {
        ("sparse_grid", 1),  # needs d + 1 frequencies
        ("modified", 1),
        ("modified", 2),
        ("nystroem-uniform", 2),  # 2 s = 120 landmarks are all rows
        ("nystroem-kmeans", 2),
    }
    assert all(
        row[name] > 0 for row in rows if "left_out" not in row for name in ERRORS
    )

    path.write_bytes(content[: len(content) // 2])
    run_approximation(config, ResultStore(path, KEY))
    again = select_rows(config, ResultStore(path, KEY).rows)
    for old, new in zip(rows, again, strict=True):
        old.pop("generation_time", None)
        new.pop("generation_time", None)
        assert new == pytest.approx(old)
    # Other settings share the file and start from nothing.
    for other in ({"alpha": 0.1}, {"kernel": "matern"}, {"gamma": 0.2}, {"seed": 1}):
        assert not select_rows(make_config(**other), ResultStore(path, KEY).rows)


def test_everything_left_out_is_named_in_every_output(tmp_path, small):
    draws = ("monte_carlo", "orthogonal", "gauss_hermite")
    config = make_config(kernel="laplacian", draws=draws)
    store = ResultStore(tmp_path / "approximation.jsonl", KEY)
    run_approximation(config, store)
    rows = select_rows(config, store.rows)
    paths = approximation_report(config, rows).write(tmp_path / "out")
    stem = "approximation-breast_cancer-laplacian"
    assert [path.name for path in paths] == [
        f"{stem}.{suffix}" for suffix in ("md", "tex", "csv", "png", "svg")
    ]
    for path in paths[:3]:
        text = path.read_text("utf-8")
        assert "Laplace is not isotropic" in text
        assert "landmarks are all of 120 rows" in text
    text = paths[0].read_text("utf-8")
    assert "Left out: orthogonal, Gauss-Hermite at d, 2d: Laplace is not" in text
    assert "alpha = 0.001 n = 0.06." in text
    with paths[2].open(newline="") as file:
        lines = {(row["method"], row["multiple"]): row for row in csv.DictReader(file)}
    assert len(lines) == 2 * 5
    found = [r["delta"] for r in rows if r["method"] == "monte_carlo"][:2]
    line = lines["monte_carlo", "1"]
    assert float(line["delta"]) == pytest.approx(np.mean(found), rel=1e-5)
    assert float(line["delta_std"]) == pytest.approx(np.std(found, ddof=1), rel=1e-5)
    assert lines["orthogonal", "2"]["delta"] == ""
    assert lines["orthogonal", "2"]["trials"] == "0"


def test_nothing_to_draw_is_no_picture(tmp_path, small):
    config = make_config(draws=("modified",), landmarks=(), trials=1)
    store = ResultStore(tmp_path / "approximation.jsonl", KEY)
    run_approximation(config, store)
    paths = approximation_report(config, select_rows(config, store.rows)).write(
        tmp_path
    )
    assert [path.suffix for path in paths] == [".md", ".tex", ".csv"]


def test_the_variance_of_the_modified_draw_is_what_its_limit_says():
    limit, why = approximation.LARGEST["d"]["modified"]
    assert "(0.56 T)^d, T = 4" in why
    assert DRAWS["modified"]().truncation == 4.0
    _, weights = DRAWS["modified"]().draw(
        Gaussian(), 50_000, 3, np.random.default_rng(0)
    )
    assert_allclose(np.mean(weights**2), (0.56 * 4.0) ** 3, rtol=0.1)
    assert (0.56 * 4.0) ** (limit + 1) > 100.0


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"dataset": "egg"}, ["dataset must be one of eeg, magic04", "got 'egg'"]),
        ({"kernel": "poly"}, ["kernel must be one of rbf", "got 'poly'"]),
        ({"draws": ("dice",)}, ["draws must be one of monte_carlo", "got 'dice'"]),
        ({"landmarks": ("x",)}, ["landmarks must be one of uniform", "got 'x'"]),
        ({"multiples": (0,)}, ["multiples must be an integer of at least 1", "got 0"]),
        ({"multiples": ()}, ["multiples must have at least one number"]),
        ({"draws": (), "landmarks": ()}, ["draws and landmarks must have at least"]),
        ({"trials": 0}, ["trials must be an integer of at least 1", "got 0"]),
        ({"seed": -1}, ["seed must be an integer of at least 0", "got -1"]),
        ({"gamma": "wide"}, ["gamma must be 'scale', 'median' or positive", "'wide'"]),
        ({"gamma": 0.0}, ["gamma must be", "got 0.0"]),
        ({"alpha": -1.0}, ["alpha must be positive, got -1.0"]),
        ({"alpha": math.nan}, ["alpha must be positive, got nan"]),
    ],
)
def test_wrong_settings_are_named(options, parts):
    with pytest.raises(ValueError, match=parts[0]) as error:
        make_config(**options)
    for part in parts:
        assert part in str(error.value)
