"""A web server on this machine that stands in for the sources of the data sets."""

import functools
import http.server
import threading

import pytest

from surff.datasets import download
from surff.datasets.registry import DATASETS, FILES
from surff.datasets.store import find, read_csv_bytes


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass

    def do_GET(self):
        # A path with "redirect" in it leads away from the web.
        if "redirect" not in self.path:
            return super().do_GET()
        self.send_response(302)
        self.send_header("Location", "ftp://example.org/x")
        self.end_headers()
        return None

    def send_header(self, keyword, value):
        # A path with "quiet" in it does not say how long the answer is.
        if keyword != "Content-Length" or "quiet" not in self.path:
            super().send_header(keyword, value)

    def copyfile(self, source, outputfile):
        # A name with "cut" in it loses its second half on the way.
        content = source.read()
        outputfile.write(
            content[: len(content) // 2] if "cut" in self.path else content
        )


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """``(directory, base_url)``: what lies in the one is served under the other.

    Over http, which is refused everywhere else: a server of https needs a certificate.
    """
    monkeypatch.setattr(download, "SECURE", ("http://127.0.0.1:",))
    directory = tmp_path / "mirror"
    directory.mkdir()
    handler = functools.partial(_Handler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield directory, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def real_csv():
    """Function ``stem -> bytes``: the CSV of a file on disk, or the test is skipped."""

    def get(stem):
        found = find(FILES[stem])
        if found.path is None:
            pytest.skip(
                f"{found.filename} not found: set SURFF_DATA to a directory that "
                "holds it"
            )
        return read_csv_bytes(FILES[stem], found.path)

    return get


@pytest.fixture
def places(tmp_path, monkeypatch):
    """``(data, cache)``: empty, ``$SURFF_DATA`` and the user cache of the test."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("SURFF_DATA", str(data))
    monkeypatch.setenv("SURFF_CACHE", str(cache))
    return data, cache


@pytest.fixture(params=list(DATASETS))
def name(request):
    """Name of every data set in turn."""
    return request.param
