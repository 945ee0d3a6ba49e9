"""Bytes over HTTP into a file: resumed, retried, and never believed too early.

The sender is asked for what is missing; how much it sends is compared with what it announced and
with what is expected. Checksums are the caller's. Proxies come from the environment, as in urllib.
"""

import functools
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from typing import BinaryIO

from asr.errors import SystemAccessError

#: Seconds without a single byte, connecting included.
TIMEOUT_S = 20.0
#: A sender below this many bytes per second, over this many seconds, is given up.
SLOW_BYTES_PER_S, SLOW_WINDOW_S = 1000, 30.0
#: Tries from one source that bring less than PROGRESS_BYTES, and seconds before the second.
ATTEMPTS, PROGRESS_BYTES, BACKOFF_S = 4, 1_000_000, 1.0
#: The longest wait a server may ask for.
MAX_WAIT_S = 60.0
CHUNK_BYTES = 256 * 1024
MAX_JSON_BYTES = 16_000_000

#: Called with the bytes that are there, and the bytes there will be.
Progress = Callable[[int, int], None]


class AttemptError(Exception):
    """Why a source failed, in half a sentence.

    Args:
        reason: expected what, found what.
        retry: the same source may do better.
        wait_s: seconds it asked to wait.
    """

    def __init__(self, reason: str, *, retry: bool = False, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry = retry
        self.wait_s = wait_s


def fetch(url: str, part: Path, size: int, progress: Progress) -> None:
    """Bring a file, beginning where an earlier try stopped.

    Args:
        url: of the file.
        part: what is there so far, if anything; grows, and stays when this fails.
        size: bytes there will be.
        progress: told what is there.

    Raises:
        AttemptError: the source failed, after retries where those could help.
        SystemAccessError: the file cannot be written.
    """
    failures = 0
    while True:
        before = length(part)
        try:
            _attempt(url, part, size, progress)
        except AttemptError as error:
            failures = 1 if length(part) - before >= PROGRESS_BYTES else failures + 1
            _pause(error, failures)
        else:
            return


def read_json(url: str) -> object:
    """What a hub's listing says.

    Raises:
        AttemptError: no answer, or something else than JSON.
    """
    failures = 0
    while True:
        try:
            answer = _listing(url)
        except AttemptError as error:  # noqa: PERF203 - a network is slower
            failures += 1
            _pause(error, failures)
        else:
            return answer


def _listing(url: str) -> object:
    with _open(url, 0) as response:
        try:
            return json.loads(_read(response, MAX_JSON_BYTES, whole=True))
        except ValueError:
            raise AttemptError(f"expected a list of files in JSON at {url}, found none") from None


def _pause(error: AttemptError, failures: int) -> None:
    """Wait before the next try, or raise the error where none is left."""
    if not error.retry or failures >= ATTEMPTS:
        raise error
    time.sleep(error.wait_s or BACKOFF_S * 2 ** (failures - 1))


def length(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot look at the file: {error.strerror}") from None


def _attempt(url: str, part: Path, size: int, progress: Progress) -> None:
    have = length(part)
    if have == size:
        return
    if have > size:
        part.unlink()
        have = 0
    try:
        response = _open(url, have)
    except _BadRangeError:
        part.unlink(missing_ok=True)
        raise AttemptError(
            f"expected the bytes from {have} on, found that {url} does not have them", retry=True
        ) from None
    with response:
        start, total = _span(response, url)
        if start > have:
            part.unlink(missing_ok=True)
            raise AttemptError(f"expected bytes from {have} on, found from {start} on", retry=True)
        if total != size and "text/html" in (response.headers.get("Content-Type") or ""):
            raise AttemptError(
                f"expected a file, found a web page at {url}; does this network want a login?"
            )
        if total is not None and total != size:
            raise AttemptError(f"expected {size} bytes, found {total} at {url}")
        _stream(response, part, start, size, progress)


def _open(url: str, start: int) -> HTTPResponse:
    headers = {"User-Agent": "asr-rtf", "Accept": "*/*"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - endpoint() checks it
    try:
        response: HTTPResponse = _opener().open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            raise _http_error(error, url) from None
    except urllib.error.URLError as error:
        raise _network_error(error.reason, url) from None
    except (OSError, HTTPException, ValueError) as error:
        raise _network_error(error, url) from None
    return response


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    """The usual one of urllib, without handlers that follow a redirect to ftp or a file."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


class _BadRangeError(Exception):
    """HTTP 416: what was asked for is not there."""


def _http_error(error: urllib.error.HTTPError, url: str) -> Exception:
    code = error.code
    if code == 416:
        return _BadRangeError()
    if 300 <= code < 400:
        return AttemptError(f"expected a file, found redirects that lead nowhere at {url}")
    if code == 429:
        wait_s = _retry_after_s(error)
        return AttemptError(f"HTTP 429, too many requests, from {url}", retry=True, wait_s=wait_s)
    if code == 408 or code >= 500:
        return AttemptError(f"HTTP {code} from {url}", retry=True, wait_s=_retry_after_s(error))
    meaning = {401: "not allowed", 403: "not allowed", 404: "no such file"}.get(code, "refused")
    return AttemptError(f"HTTP {code}, {meaning}, from {url}")


def _retry_after_s(error: urllib.error.HTTPError) -> float | None:
    """What the server asks for; the date form of the header is not worth parsing."""
    word = error.headers.get("Retry-After") or ""
    return min(float(word), MAX_WAIT_S) if re.fullmatch(r"[0-9]{1,9}", word) else None


def _network_error(reason: object, url: str) -> AttemptError:
    if isinstance(reason, TimeoutError):
        return AttemptError(f"no answer in {TIMEOUT_S:g} s from {url}", retry=True)
    if isinstance(reason, ConnectionRefusedError):
        return AttemptError(f"connection refused by {url}")
    if isinstance(reason, socket.gaierror):
        return AttemptError(f"no such host, or no network: {url}")
    if isinstance(reason, ssl.SSLCertVerificationError):
        return AttemptError(f"certificate not trusted ({reason.verify_message}) at {url}")
    if isinstance(reason, (str, ValueError, InvalidURL)):
        return AttemptError(f"no usable address ({reason}): {url}")
    return AttemptError(f"connection lost ({reason or type(reason).__name__}) at {url}", retry=True)


def _span(response: HTTPResponse, url: str) -> tuple[int, int | None]:
    """The first byte that is sent, and the size of the whole file where it is told.

    The header decides, not the status: ModelScope answers 200 where others answer 206.
    """
    if content_range := response.headers.get("Content-Range"):
        match = re.match(r"bytes (\d+)-\d+/(\d+|\*)", content_range)
        if match is None:
            raise AttemptError(f"expected a range of bytes, found {content_range!r} at {url}")
        return int(match[1]), None if match[2] == "*" else int(match[2])
    return 0, response.length


def _stream(response: HTTPResponse, part: Path, start: int, size: int, progress: Progress) -> None:
    have, window_start_s, window_bytes = start, time.monotonic(), 0
    try:
        file = part.open("r+b" if start else "wb")
    except OSError as error:
        raise SystemAccessError(f"{part}: cannot write the file: {error.strerror}") from None
    with file:
        file.truncate(start)
        file.seek(start)
        progress(have, size)
        while chunk := _read(response, CHUNK_BYTES):
            have += len(chunk)
            if have > size:
                raise AttemptError(f"expected {size} bytes, found more")
            _write(file, chunk, part)
            progress(have, size)
            window_bytes += len(chunk)
            passed_s = time.monotonic() - window_start_s
            if passed_s >= SLOW_WINDOW_S:
                if window_bytes < SLOW_BYTES_PER_S * passed_s:
                    speed = window_bytes / passed_s
                    raise AttemptError(f"only {speed:.0f} bytes per second", retry=True)
                window_start_s, window_bytes = time.monotonic(), 0
    if have < size:
        raise AttemptError(f"expected {size} bytes, found an end after {have}", retry=True)


def _read(response: HTTPResponse, count: int, *, whole: bool = False) -> bytes:
    """What has arrived, at least a byte; nothing at the end."""
    try:
        return response.read(count) if whole else response.read1(count)
    except TimeoutError:
        raise AttemptError(f"no byte for {TIMEOUT_S:g} s", retry=True) from None
    except (OSError, HTTPException) as error:
        raise AttemptError(f"connection lost ({error})", retry=True) from None


def _write(file: BinaryIO, chunk: bytes, part: Path) -> None:
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise SystemAccessError(
            f"{part}: cannot write the file: {error.strerror}; "
            "make room, or set ASR_CACHE to a folder on another disk, and run it again"
        ) from None
