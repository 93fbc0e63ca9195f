import re
import subprocess
import sys

import pytest

from surff.datasets import DATASETS, available
from surff.datasets.convert import CONVERTERS
from surff.datasets.registry import FILES, PAPER_TEST_STEM, read_registry

ENTRY = """
[datasets]

[files.a]
dataset = "a"
n_samples = 3
columns = ["x", "y"]
label = "real"
checksums = ["sha256:00"]
max_bytes = 100
url = "https://example.org/a.zip"
download_name = "a.zip"
converter = "csv"
"""


def test_every_description_is_complete_and_consistent(name):
    description = DATASETS[name]
    assert description.name == name
    assert all(
        (
            description.title,
            description.source,
            description.licence,
            description.citation,
            description.where,
            description.note,
        )
    )
    assert description.task in ("classification", "regression")
    assert bool(description.classes) == (description.task == "classification")
    assert list(description.classes) == sorted(set(description.classes))
    assert tuple(description.n_samples) == description.parts
    assert not description.stems or tuple(description.stems) == description.parts
    for part, stem in description.stems.items():
        coded = FILES[stem].text  # as many columns as there are values
        assert coded or FILES[stem].n_features == description.n_features
        if part != "paper-test":
            assert FILES[stem].n_samples == description.n_samples[part]


def test_every_file_belongs_to_a_data_set_and_has_one_source():
    for stem, file in FILES.items():
        assert file.stem == stem
        assert len(file.columns) == len(set(file.columns)) == file.n_features + 1
        owners = {
            name for name, d in DATASETS.items() if stem in (*d.stems.values(), d.masks)
        }
        assert file.dataset in owners or stem == PAPER_TEST_STEM
        assert file.url.startswith("https://")
        assert file.converter in CONVERTERS
        assert file.n_bytes is None or file.n_bytes < file.max_bytes < 3 * file.n_bytes
    assert len({file.url for file in FILES.values()}) == len(FILES)


def test_checksums_have_the_length_of_their_algorithm():
    digits = {"sha256": 64, "sorted-sha256": 64, "libsvm-md5": 32, "md5": 32}
    for file in FILES.values():
        for checksum in (*file.checksums, file.download_checksum, file.raw_checksum):
            if checksum is not None:
                kind, value = checksum.split(":")
                assert len(value) == digits[kind]
                int(value, 16)
        assert len({checksum.partition(":")[0] for checksum in file.checksums}) == 1


def test_available_lists_the_papers_sets_first():
    assert available()[:4] == ["eeg", "magic04", "cod-rna", "covtype"]
    assert set(available()) == set(DATASETS)


def test_sets_with_masks_are_described_in_few_words():
    text = """
[datasets]
[files]
[masked]
source = "s"
citation = "c"
url = "https://example.org/{name}/"
note = "n"
licence = "free"
[masked.sets.b]
title = "B"
n_samples = 7
n_features = 2
n_bytes = 90
checksum = "sha256:00"
masks_checksum = "sha256:01"
"""
    datasets, files = read_registry(text)
    b, rows, masks = datasets["b"], files["uci/b"], files["uci/b.test_mask"]
    assert (b.task, b.n_samples, b.licence) == ("regression", {"all": 7}, "free")
    assert (b.stems, b.masks) == ({"all": "uci/b"}, "uci/b.test_mask")
    assert rows.columns == ("x1", "x2", "y")
    assert (len(masks.columns), masks.n_bytes) == (10, 140)
    assert rows.url == "https://example.org/b/data.csv.gz"
    assert not rows.header


def test_registry_gives_typed_records():
    datasets, files = read_registry(ENTRY)
    assert datasets == {}
    assert files["a"].columns == ("x", "y")
    assert (files["a"].n_features, files["a"].n_bytes) == (1, None)
    assert files["a"].filename == "a.csv.xz"


@pytest.mark.parametrize(
    ("now", "then", "message"),
    [
        ("n_samples = 3", "", "a: .*missing 1 required .*'n_samples'"),
        ("n_samples = 3", "n_rows = 3", "a: .*unexpected keyword argument 'n_rows'"),
        ("n_samples = 3", 'n_samples = "3"', "a: n_samples has the wrong type: '3'"),
        ('["x", "y"]', '["x", 1]', r"a: columns has the wrong type: \('x', 1\)"),
        ('"real"', '"float"', "a: label must be one of integer, .*, got 'float'"),
        ("https:", "http:", "a: url must start with https://, got 'http://example"),
        ("[datasets]", '[datasets.b]\ntitle = "B"', "b: .*missing .*'task'"),
        ("= 3", "=", "Invalid value"),
    ],
)
def test_registry_with_a_mistake_names_the_entry(now, then, message):
    with pytest.raises(ValueError, match=message):
        read_registry(re.sub(re.escape(now), lambda _: then, ENTRY, count=1))


def test_importing_surff_does_not_read_the_registry():
    code = "import sys, surff; print([m for m in sys.modules if 'datasets' in m])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "surff.datasets" not in result.stdout
