"""Data sets: the paper's four, larger ones, those of other papers, two without file.

- `load` gives the arrays of one part of a data set,
- `load_masks` gives the test rows of a set that comes with several divisions,
- `fetch` makes sure that its files are on disk,
- `status` tells where they are,
- `available` lists the names; ``DATASETS`` describes each.

Files are looked for in ``$SURFF_DATA``, then in the user cache (``$SURFF_CACHE``), and
otherwise downloaded over https from their original source. Reading them needs the extra
``surff[cli]``. This room imports no other.
"""

from surff.datasets.loaders import Dataset, load, load_masks
from surff.datasets.registry import DATASETS, EEG_OUTLIER_ROWS, DatasetDescription
from surff.datasets.store import (
    DatasetCorruptError,
    DatasetNotFoundError,
    DatasetStatus,
    FileStatus,
    cache_directory,
    fetch,
    status,
)

__all__ = [
    "DATASETS",
    "EEG_OUTLIER_ROWS",
    "Dataset",
    "DatasetCorruptError",
    "DatasetDescription",
    "DatasetNotFoundError",
    "DatasetStatus",
    "FileStatus",
    "available",
    "cache_directory",
    "fetch",
    "load",
    "load_masks",
    "status",
]


def available() -> list[str]:
    """Names that `load` takes, the paper's four sets first.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from surff.datasets import available
    >>> available()[:4]
    ['eeg', 'magic04', 'cod-rna', 'covtype']
    """
    return list(DATASETS)
