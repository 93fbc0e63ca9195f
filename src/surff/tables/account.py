"""What a fit has found, to print and to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surff.tables.encoder import lines

__all__ = ["Account"]

#: Score below that of gradient boosting that is said: R2, or share of rows.
BEHIND = {"R2": 0.02, "accuracy": 0.01}


class Account(Mapping):
    """Account of a fit: a mapping of names to values, which prints as text.

    Parameters
    ----------
    entries : dict
        Text, numbers, lists and dictionaries of them.

    Examples
    --------
    >>> account = Account({"target": "price", "metric": "R2", "score": 0.81})
    >>> account["score"]
    0.81
    """

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def __getitem__(self, name: str) -> Any:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Account({self.entries!r})"

    def __str__(self) -> str:
        entries = self.entries
        text = []
        if "rows" in entries:
            text.append(
                f"{entries.get('source', 'table')}: {entries['rows']:,} rows, "
                f"{entries['columns']} columns besides the target"
            )
        if "dialect" in entries:
            text.append(f"read with {entries['dialect']}")
        if "task_said" in entries:
            text.append(f"target {entries['target']!r}: {entries['task_said']}")
        if "made" in entries:
            text += ["", lines(entries["made"])]
        if "method" in entries:
            alpha = entries["alpha"]
            leaves = f", {n} leaves" if (n := entries.get("n_leaves")) else ""
            text += [
                "",
                f"{entries['method']}: {entries['n_components']} features{leaves}, "
                f"gamma {entries['gamma']:.3g}, alpha {alpha:.3g}",
            ]
        text += [*self._scores(), *entries.get("notes", [])]
        if "seconds" in entries:
            text.append(f"{entries['seconds']:.0f} seconds")
        return "\n".join(text)

    def _scores(self):
        """Held-out scores, one per line."""
        entries = self.entries
        if "score" not in entries:
            return []
        metric = entries["metric"]
        scores = {"surff": entries["score"], **entries.get("others", {})}
        head = f"{metric} on {entries['held_out_rows']:,} rows that were held out:"
        width = max(map(len, scores))
        return ["", head, *(f"  {k:{width}}  {v:.4f}" for k, v in scores.items())]


def verdict(metric: str, score: float, others: Mapping[str, float]) -> list[str]:
    """Say where another model is ahead by more than `BEHIND`."""
    return [
        f"{name} is ahead by {other - score:.3f} in {metric}: prefer it for this "
        "table, or give surff more time (max_time=)."
        for name, other in others.items()
        if other - score > BEHIND[metric]
    ]
