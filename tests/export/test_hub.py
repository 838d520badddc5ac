"""Push runs to a hub and load them: a local server stands in for the hub."""

import base64
import json
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest

from capnets.errors import InputError
from capnets.estimators import SetRegressor
from capnets.estimators.runs import load_estimator
from capnets.export.hub import from_pretrained, push_to_hub
from ragged import QUICK, amounts, ragged

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest(content):
    return sha1(content).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's interface that pushing and loading use; files are kept in memory."""

    files: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *args):
        pass

    def _answer(self, content=b"", code=200, **headers):
        self.send_response(code)
        self.send_header("X-Repo-Commit", COMMIT)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, value):
        self._answer(json.dumps(value).encode(), Content_Type="application/json")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/repos/create":
            here = f"http://{self.headers['Host']}"
            self._json({"url": f"{here}/me/sets", "name": "me/sets", "id": "1"})
        elif "/preupload/" in self.path:
            names = [f["path"] for f in json.loads(body)["files"]]
            regular = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            self._json({"files": [{"path": name, **regular} for name in names]})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.files[line["value"]["path"]] = content
            self._json(
                {
                    "commitUrl": "https://huggingface.co/me/sets/commit/" + COMMIT,
                    "commitOid": COMMIT,
                    "success": True,
                }
            )
        else:
            self._json({"errors": [], "warnings": []})

    def do_GET(self):
        if self.path.startswith("/api/models/me/sets/tree/"):
            self._json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": digest(content)}
                    for name, content in self.files.items()
                ]
            )
        elif self.path.startswith("/api/models/me/sets"):
            names = [{"rfilename": name} for name in self.files]
            self._json({"id": "me/sets", "sha": COMMIT, "siblings": names, "private": False})
        elif self.path.startswith(f"/me/sets/resolve/{COMMIT}/"):
            name = self.path.rpartition("/")[2]
            content = self.files[name]
            self._answer(content, ETag=f'"{digest(content)}"')
        else:
            self._answer(b"{}", 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture
def hub(monkeypatch, tmp_path):
    Hub.files = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    X = ragged(20)
    folder = tmp_path_factory.mktemp("hub") / "run"
    return SetRegressor(**QUICK | {"epochs": 1}).fit(X, amounts(X)).save(folder)


def push(run, hub):
    return push_to_hub(run.folder, "me/sets", endpoint=hub)


@pytest.mark.filterwarnings("ignore")
def test_there_and_back(hub, run):
    push(run, hub)
    assert {"config.json", "manifest.json", "weights.safetensors", "README.md"} <= set(Hub.files)
    assert not [name for name in Hub.files if name.endswith((".pkl", ".pt", ".bin"))]
    card = Hub.files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: capnets\n")
    assert "a network for sets" in card
    again = from_pretrained("me/sets", endpoint=hub)
    X = ragged(5, seed=1)
    expected = load_estimator(run.folder).predict(X)
    np.testing.assert_array_equal(load_estimator(again.folder).predict(X), expected)


@pytest.mark.filterwarnings("ignore")
def test_a_changed_file_is_refused(hub, run):
    push(run, hub)
    weights = bytearray(Hub.files["weights.safetensors"])
    weights[-1] ^= 1
    Hub.files["weights.safetensors"] = bytes(weights)
    with pytest.raises(InputError, match="weights"):
        from_pretrained("me/sets", endpoint=hub)


@pytest.mark.filterwarnings("ignore")
def test_faults(hub, run, tmp_path):
    push(run, hub)
    del Hub.files["manifest.json"]
    with pytest.raises(InputError, match="manifest"):
        from_pretrained("me/sets", endpoint=hub)
    with pytest.raises(InputError, match="loading you/nothing failed"):
        from_pretrained("you/nothing", endpoint=hub)
    with pytest.raises(InputError):
        push_to_hub(tmp_path, "me/sets", endpoint=hub)
