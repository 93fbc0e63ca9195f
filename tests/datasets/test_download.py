import pytest

from surff.datasets import DatasetCorruptError, DatasetNotFoundError, fetch
from surff.datasets.download import download_file
from surff.datasets.unpack import TooLargeError


@pytest.mark.parametrize("base_url", ["http://a.org", "ftp://a.org", "file:///a", "a"])
def test_mirror_must_be_https(base_url, places):
    message = f"base_url must start with https://, got '{base_url}'"
    for name in ("eeg", "digits"):
        with pytest.raises(ValueError, match=message):
            fetch(name, base_url=base_url)
    assert not places[1].exists()


def test_redirect_away_from_https_is_not_followed(places, mirror):
    message = r"The download of .* failed: redirected to ftp://example.org/x, which is"
    with pytest.raises(DatasetNotFoundError, match=message):
        fetch("eeg", progress=False, base_url=f"{mirror[1]}/redirect")
    assert list(places[1].iterdir()) == []


def test_address_that_is_not_https_is_refused(mirror, tmp_path, monkeypatch):
    directory, base_url = mirror
    (directory / "a").write_bytes(b"x")
    monkeypatch.setattr("surff.datasets.download.SECURE", ("https://",))
    with pytest.raises(OSError, match=r"127.*/a, which is not https"):
        download_file(f"{base_url}/a", tmp_path / "a", max_bytes=10)


@pytest.mark.parametrize("path", ["told", "quiet"])
def test_download_stops_at_its_bound(path, mirror, tmp_path):
    directory, base_url = mirror
    (directory / path).write_bytes(bytes(100_000))
    got, url = tmp_path / "got", f"{base_url}/{path}"
    download_file(url, got, max_bytes=100_000)
    assert got.stat().st_size == 100_000
    with pytest.raises(TooLargeError, match=f"{path} .* more than the 50,000 bytes"):
        download_file(url, got, max_bytes=50_000)
    # Nothing of it where the server says how long it is, no more than the bound else.
    assert got.stat().st_size == {"told": 0, "quiet": 50_000 // 1024 * 1024}[path]


def test_download_that_is_too_large_leaves_nothing(places, mirror):
    directory, base_url = mirror
    (directory / "letter+recognition.zip").write_bytes(bytes(1_500_001))
    message = r"download of .* was refused: letter\+recognition.zip .* 1,500,000 bytes"
    with pytest.raises(DatasetCorruptError, match=message):
        fetch("letter", progress=False, base_url=base_url)
    assert list(places[1].iterdir()) == []
