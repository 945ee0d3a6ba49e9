"""A model hub on 127.0.0.1: the paths of both public ones, and every way to misbehave."""

import hashlib
import io
import json
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from asr.hub import manifest, transfer
from asr.hub.manifest import Distribution, File, Model, Source


class Hub:
    """Serves ``files`` as both hubs would.

    Attributes:
        files: (repository, path) -> bytes.
        manners: (hub, path) -> list of manners, one for each request; then it behaves.
            A number answers with that status. ``html`` is a login page, ``loop`` redirects to
            itself, ``cdn`` to another path. ``cut:N`` ends the body after N bytes, ``slow:N``
            sends N bytes and then one at a time, ``stall:N`` sends N bytes and then none until
            ``gate`` is set. ``wrong`` flips a bit, ``long`` sends a longer file,
            ``endless`` one of unsaid length. ``norange``
            ignores Range, ``badrange`` starts a byte too late.
        asked: (hub, path, Range header or None) of every request, in order.
    """

    def __init__(self, files):
        self.files = files
        self.manners = {}
        self.asked = []
        self.gate = threading.Event()  # ends ``slow`` and ``stall``
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def environment(self, *, hf=True, modelscope=True):
        """The variables that lead to this hub; False leads to a port where nobody listens."""
        dead = "http://127.0.0.1:1"
        return {
            "HF_ENDPOINT": self.url if hf else dead,
            "MODELSCOPE_ENDPOINT": self.url if modelscope else dead,
        }

    def settle(self, monkeypatch, cache):
        """Make this the only hub that the test knows, with an empty cache and little patience."""
        for key, value in {**self.environment(), "ASR_CACHE": str(cache)}.items():
            monkeypatch.setenv(key, value)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setitem(manifest.MODELS, "toy", toy_model())
        monkeypatch.setattr(transfer, "BACKOFF_S", 0.01)

    def paths(self, hub=None):
        """The files that were asked for, in order; listings left out."""
        return [path for h, path, _ in self.asked if hub in (None, h) and path != "*listing*"]


def _handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.close_connection = True
            name, repo, path = _place(self.path)
            hub.asked.append((name, path, self.headers.get("Range")))
            waiting = hub.manners.get((name, path)) or []
            manner = waiting.pop(0) if waiting else ""
            if manner.isdecimal():
                return self._answer(int(manner), b"no", {"Retry-After": "0"})
            if manner == "html":
                return self._answer(200, b"<html>log in</html>", {"Content-Type": "text/html"})
            if manner in ("loop", "cdn"):
                to = self.path if manner == "loop" else f"/cdn/{name}/{repo}/{path}"
                return self._answer(302, b"", {"Location": to})
            if path == "*listing*":
                return self._answer(200, json.dumps(_listing(hub.files, name, repo)).encode(), {})
            if (repo, path) not in hub.files:
                return self._answer(404, b"not here", {})
            return self._file(name, hub.files[repo, path], manner)

        def _file(self, name, data, manner):
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
            start = int(asked[1]) if asked and manner != "norange" else 0
            if start and start >= len(data):
                return self._answer(416, b"", {})
            if manner == "badrange":
                start += 1
            body = data[start:]
            headers = {"Content-Length": str(len(body))}
            if asked and manner != "norange":
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            # ModelScope answers a range with 200, as the real one does.
            status = 206 if headers.get("Content-Range") and name == "hf" else 200
            if manner == "wrong":
                body = body[:-1] + bytes([body[-1] ^ 1])
            if manner == "long":
                body += b"more"
                headers = {"Content-Length": str(len(body))}
            if manner == "endless":
                body, headers = body * 9, {}
            if manner.startswith("cut:"):
                body = body[: int(manner[4:])]
            return self._send(status, headers, body, manner)

        def _send(self, status, headers, body, manner):
            self.send_response(status)
            for key, value in {"Content-Type": "application/octet-stream", **headers}.items():
                self.send_header(key, value)
            self.send_header("Connection", "close")
            self.end_headers()
            kind, _, count = manner.partition(":")
            first = int(count) if kind in ("slow", "stall") else len(body)
            try:
                self.wfile.write(body[:first])
                while first < len(body) and not hub.gate.wait(0.02 if kind == "slow" else 10):
                    self.wfile.write(body[first : first + 1])
                    first += 1
                self.wfile.write(body[first:])
            except OSError:
                self.wfile = io.BytesIO()  # the client has gone

        def _answer(self, status, body, headers):
            self._send(status, {"Content-Length": str(len(body)), **headers}, body, "")

    return Handler


def _place(target):
    """Which hub, repository and file an address means."""
    split = urlsplit(target)
    query = parse_qs(split.query)
    if match := re.fullmatch(r"/cdn/(\w+)/([^/]+/[^/]+)/(.+)", split.path):
        return match[1], match[2], match[3]
    if match := re.fullmatch(r"/api/v1/models/([^/]+/[^/]+)/repo(/files)?", split.path):
        if match[2]:
            assert query["Recursive"] == ["True"]
            return "modelscope", match[1], "*listing*"
        assert query["Revision"]
        return "modelscope", match[1], query["FilePath"][0]
    if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/[^/]+", split.path):
        return "hf", match[1], "*listing*"
    if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", split.path):
        return "hf", match[1], unquote(match[2])
    return "?", "?", target


def _listing(files, hub, repo):
    """What the hub publishes: Hugging Face has a sha256 only for large files."""
    rows = [(path, data) for (owner, path), data in files.items() if owner == repo]
    if hub == "modelscope":
        return {
            "Code": 200,
            "Data": {
                "Files": [
                    {"Path": p, "Size": len(d), "Type": "blob", "Sha256": sha256(d)}
                    for p, d in rows
                ]
            },
        }
    return [{"type": "directory", "path": "figures", "oid": "0", "size": 0}] + [
        {
            "type": "file",
            "path": p,
            "size": len(d),
            "oid": hashlib.sha1(b"blob %d\0" % len(d) + d).hexdigest(),
            **({"lfs": {"oid": sha256(d), "size": len(d)}} if len(d) > 100_000 else {}),
        }
        for p, d in rows
    ]


def sha256(data):
    """In hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ a model to pull

MODELSCOPE = Source("modelscope", "iic/Toy-onnx", "master")
HUGGING_FACE = Source("hf", "someone/Toy-onnx", "0" * 40)
TOKENIZER_MS, TOKENIZER_HF = Source("modelscope", "iic/Toy", "master"), Source("hf", "Fun/Toy", "1")
OTHER = Source("hf", "k2/toy-sherpa", "2")

#: The same in every process.
TOY = {
    "config.yaml": b"model: SenseVoiceSmall\n",
    "toy.bpe.model": random.Random(1).randbytes(3_000),
    "model_quant.onnx": random.Random(2).randbytes(200_000),
}
SHERPA = {"tokens.txt": b"a 0\n", "model.int8.onnx": random.Random(3).randbytes(5_000)}


def served(toy=None):
    """(repository, path) -> bytes, on both hubs."""
    toy = toy or TOY
    files = {}
    for path, data in toy.items():
        for source in _sources(path):
            files[source.repo, path] = data
    return files | {(OTHER.repo, path): data for path, data in SHERPA.items()}


def toy_model(toy=None, *, pinned=True, name="toy"):
    """The manifest's entry; not ``pinned`` leaves the checksums to the source."""

    def file(path, data, sources):
        return File(path, len(data), sha256(data) if pinned else None, sources)

    licence = manifest.FUNASR_1_1
    funasr = tuple(file(path, data, _sources(path)) for path, data in (toy or TOY).items())
    sherpa = tuple(file(path, data, (OTHER,)) for path, data in SHERPA.items())
    exports = (Distribution("funasr", funasr), Distribution("sherpa-onnx", sherpa))
    return Model(name, ("en", "zh"), licence, exports)


def _sources(path):
    if path.endswith(".bpe.model"):
        return (TOKENIZER_MS, TOKENIZER_HF)
    return (MODELSCOPE, HUGGING_FACE)


def main():
    """``asr`` with the toy in its manifest: what the tests run as a process."""
    from asr.cli import main as asr

    manifest.MODELS["toy"] = toy_model()
    return asr()
