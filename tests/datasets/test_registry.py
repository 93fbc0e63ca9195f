from surff.datasets import DATASETS, available
from surff.datasets.registry import FILES, PAPER_TEST_STEM


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
        assert FILES[stem].n_features == description.n_features
        if part != "paper-test":
            assert FILES[stem].n_samples == description.n_samples[part]


def test_every_file_belongs_to_a_data_set_and_has_one_source():
    for stem, file in FILES.items():
        assert file.stem == stem
        assert len(file.columns) == len(set(file.columns)) == file.n_features + 1
        owners = {name for name, d in DATASETS.items() if stem in d.stems.values()}
        assert file.dataset in owners or stem == PAPER_TEST_STEM
        assert file.url.startswith("https://")
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
