"""Cost of generating features: surrogate and leverage against plain RFF, in one run.

On EEG's training half (sample z-scores, as the paper's table) with a pool of s
candidates: plain RFF is one pass of the feature map, the surrogate one pass that sums
the scores, leverage the Gram matrix of the pool and its inverse. Ratios are taken round
by round. Run: ``python benchmarks/generation.py``.
"""

import argparse

from children import ratio
from paired import rounds
from surff.estimators import FourierFeatures
from surff.experiments.protocol import (
    load_problem,
    map_pass,
    published_leverage,
    published_surrogate,
    sample_z_scores,
    split,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="eeg")
    parser.add_argument("--multiples", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    part = split(load_problem(options.dataset), trial=0, seed=0)
    part = part._replace(X=sample_z_scores(part.X))
    print("| s | surrogate / RFF | min to max | leverage / surrogate | min to max |")
    print("|---:|---:|---|---:|---|")
    for multiple in options.multiples:
        s = multiple * part.X.shape[1]
        features = FourierFeatures(2 * s, gamma=0.5, random_state=0).fit(part.X)
        feature_map = features.feature_map()
        seconds = rounds(
            {
                "rff": lambda m=feature_map: map_pass(m, part.X),
                "surrogate": lambda m=feature_map: published_surrogate(m, part),
                "leverage": lambda m=feature_map: published_leverage(m, part),
            },
            options.repeats,
        )
        median, low, high = ratio(seconds["surrogate"], seconds["rff"])
        row = f"| {multiple} d | {median:.2f} | {low:.2f} to {high:.2f} "
        median, low, high = ratio(seconds["leverage"], seconds["surrogate"])
        print(row + f"| {median:.1f} | {low:.1f} to {high:.1f} |")


if __name__ == "__main__":
    main()
