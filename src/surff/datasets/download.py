"""A download over https, within a bound.

Every address must be https, including those the source redirects to, and no more bytes
are written to disk than the file may have.
"""

import contextlib
import os
from typing import Any
from urllib.parse import urljoin

from surff.datasets.unpack import TooLargeError

__all__ = ["download_file", "is_secure"]

#: How the addresses of downloads start. Over any other protocol, others could read and
#: change what comes.
SECURE = ("https://",)


def is_secure(url: str) -> bool:
    """Whether an address is https."""
    return url.lower().startswith(SECURE)


class _BoundedFile:
    """What a download writes to; it refuses to grow beyond a bound."""

    def __init__(self, file, max_bytes, what):
        self.file = file
        self.room = max_bytes
        self.error = TooLargeError(what, max_bytes)

    def write(self, chunk):
        self.room -= len(chunk)
        if self.room < 0:
            raise self.error
        return self.file.write(chunk)

    def flush(self):
        self.file.flush()


def download_file(
    url: str,
    path: str | os.PathLike[str],
    *,
    max_bytes: int,
    progress: Any = False,
) -> None:
    """Download one file.

    Parameters
    ----------
    url : str
        An https address.
    path : path-like
        Where to write it.
    max_bytes : int
        Bound on the size that the server declares, and on what it sends.
    progress : bool or object, default=False
        As in `fetch`.

    Raises
    ------
    TooLargeError
        The file is larger; what was written of it stays at ``path``.
    OSError
        The download failed, or was redirected to an address that is not https.
    """
    import pooch

    what, responses = url.rpartition("/")[-1], contextlib.ExitStack()

    def check(response, **_):
        responses.callback(response.close)  # pooch leaves it open after an error
        target = response.url
        if response.is_redirect:
            target = urljoin(response.url, response.headers["location"])
        if not is_secure(target):
            raise OSError(f"redirected to {target}, which is not https")
        declared = response.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > max_bytes:
            raise TooLargeError(what, max_bytes)

    downloader = pooch.HTTPDownloader(progress, hooks={"response": check})
    with responses, open(path, "wb") as file:
        downloader(url, _BoundedFile(file, max_bytes, what), None)
