"""Data files are found in order, always verified, and never used partially."""

import gzip
import hashlib
import http.server
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from capnets.errors import InputError
from capnets.tasks import files
from capnets.tasks.files import FILES, DataFile, find, known, read

CONTENT = bytes(range(256)) * 40
NAME = "toys/blocks.gz"
NOWHERE = "http://127.0.0.1:9/blocks.gz"  # the discard port: refused at once


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three empty places to look at, and one known file that is at none of them."""
    folders = {name: tmp_path / name for name in ("data", "cache", "system")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setenv("CAPNETS_DATA", str(folders["data"]))
    monkeypatch.setenv("CAPNETS_CACHE", str(folders["cache"]))
    monkeypatch.setattr(files, "SYSTEM_FOLDER", folders["system"])
    toy = DataFile(
        NAME, hashlib.sha256(CONTENT).hexdigest(), "a toy", "none", url=NOWHERE, unpacks=True
    )
    monkeypatch.setitem(FILES, NAME, toy)
    return folders


def put(folder: Path, content: bytes, name: str = NAME) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A public home on this machine: what is put into the folder can be downloaded."""
    folder = tmp_path / "home"
    folder.mkdir()
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/{NAME}"
    yield folder, url
    server.shutdown()
    server.server_close()


def test_looked_for_in_order(places):
    packed = gzip.compress(CONTENT)
    for place in ("system", "cache", "data"):
        path = put(places[place], packed)
        assert find(NAME) == path
        assert read(NAME) == CONTENT


def test_how_it_was_compressed_does_not_matter(places):
    for content in (gzip.compress(CONTENT, 1), gzip.compress(CONTENT, 9), CONTENT):
        put(places["data"], content)
        assert read(NAME) == CONTENT


def test_an_unpacked_file_is_found_too(places):
    path = put(places["data"], CONTENT, NAME.removesuffix(".gz"))
    assert find(NAME) == path


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[: len(packed) // 2],
        lambda packed: packed[:-4],
        lambda packed: packed[:10] + bytes(20) + packed[30:],
        lambda packed: gzip.compress(CONTENT[:-1] + b"!"),
        lambda packed: b"",
        lambda packed: b"<html>not found</html>",
    ],
    ids=["half", "tail missing", "overwritten", "other content", "empty", "a web page"],
)
def test_a_damaged_file_is_named_and_not_used(places, damage):
    path = put(places["data"], damage(gzip.compress(CONTENT)))
    put(places["cache"], gzip.compress(CONTENT))  # an intact one elsewhere must not hide it
    for use in (find, read):
        with pytest.raises(InputError, match="truncated or") as caught:
            use(NAME)
        assert str(path) in str(caught.value)
    assert {f.file.name: f.status for f in known(verify=True)}[NAME] == "damaged"


def test_without_a_network_the_error_says_what_to_put_where(places):
    with pytest.raises(InputError) as caught:
        find(NAME)
    message = str(caught.value)
    for folder in places.values():
        assert str(folder / NAME) in message
    assert NOWHERE in message
    assert "CAPNETS_DATA" in message
    assert list(places["cache"].rglob("*.*")) == []


def test_file_without_public_address(places, monkeypatch):
    monkeypatch.setitem(FILES, NAME, replace(FILES[NAME], url=None))
    with pytest.raises(InputError, match="no public address"):
        find(NAME)


def test_downloaded_once_and_then_kept(places, home, monkeypatch):
    folder, url = home
    source = put(folder, gzip.compress(CONTENT))
    monkeypatch.setitem(FILES, NAME, replace(FILES[NAME], url=url))
    seen = []
    path = find(NAME, progress=lambda what, done, total: seen.append((what, done, total)))
    assert path == places["cache"] / NAME
    assert read(NAME) == CONTENT
    size = source.stat().st_size
    assert seen[-1] == (f"downloading {NAME}", size, size)
    source.unlink()
    assert find(NAME) == path


@pytest.mark.parametrize("content", [b"<html>", gzip.compress(CONTENT)[:-9]], ids=["page", "short"])
def test_a_broken_download_leaves_nothing_behind(places, home, monkeypatch, content):
    folder, url = home
    put(folder, content)
    monkeypatch.setitem(FILES, NAME, replace(FILES[NAME], url=url))
    with pytest.raises(InputError, match="the download from http"):
        find(NAME)
    assert [p for p in places["cache"].rglob("*") if p.is_file()] == []


def test_missing_data_folder(places, monkeypatch):
    monkeypatch.setenv("CAPNETS_DATA", str(places["data"] / "no"))
    with pytest.raises(InputError, match="CAPNETS_DATA"):
        find(NAME)


def test_an_unknown_name_lists_the_near_ones():
    with pytest.raises(InputError, match=r"did you mean 'mil/elephant\.npz'"):
        find("mil/elefant.npz")


def test_listing(places):
    status = {f.file.name: f.status for f in known()}
    assert status["mnist/train-images-idx3-ubyte.gz"] == "downloadable"
    assert status["mil/musk1.npz"] == "missing"
    path = put(places["system"], gzip.compress(CONTENT))
    assert next(f for f in known() if f.file.name == NAME).path == path


@pytest.mark.data
def test_all_data_files_are_what_they_should_be(data_folder):
    damaged = [f.file.name for f in known(verify=True) if f.status != "present"]
    assert damaged == []
