"""
A messy table
=============

Text, dates, gaps, a constant and row numbers, as tables come. ``table_model`` puts an
encoder in front of a model. The encoder says in a line per column what it does, is
fitted and saved with the model, and takes the same table for predictions. At the end,
shuffling one column at a time shows which columns count.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance

import surff

plt.style.use("surff.inspection.surff")

rng = np.random.default_rng(0)
n = 3000
table = pd.DataFrame(
    {
        "id": [f"order {k}" for k in range(n)],
        "town": rng.choice(
            ["Oslo", "Rome", "Bern", "Pau"], n, p=[0.5, 0.3, 0.19, 0.01]
        ),
        "ordered": pd.Timestamp("2024-01-01")
        + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        "weight": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(0, 1, n)),
        "express": rng.random(n) < 0.3,
        "currency": "EUR",
    }
)
late = table["ordered"].dt.day_of_week >= 5
days = 3 + 2 * (table["town"] == "Rome") + 1.5 * late * ~table["express"]
days += np.log1p(table["weight"].fillna(1.0)) - table["express"]
days += 0.4 * rng.normal(size=n)

features = surff.FourierFeatures(128, random_state=0)
model = surff.table_model(surff.KernelRidgeRegressor(features))
model.fit(table[:2000], days[:2000])
print(model.encoder.describe())
print(f"R2 on new rows: {model.score(table[2000:], days[2000:]):.3f}")

found = permutation_importance(
    model, table[2000:], days[2000:], n_repeats=3, random_state=0
)
order = np.argsort(found.importances_mean)
figure, panel = plt.subplots(figsize=(6, 3), layout="constrained")
panel.barh(
    table.columns[order],
    found.importances_mean[order],
    xerr=found.importances_std[order],
)
panel.set_xlabel("fall of R2 when the column is shuffled")
plt.show()
