"""Locate, download and verify data files.

A file is searched in the folder named by the environment variable CAPNETS_DATA, in the cache
(CAPNETS_CACHE, or the user's cache folder) and in Debian's /usr/share/datasets. If it is in none of
them, it is downloaded into the cache. Its checksum is always verified before use.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tomllib
import zlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from capnets.errors import InputError, check_extra, unknown
from capnets.files import writing
from capnets.progress import TitledProgress

__all__ = [
    "FILES",
    "DataFile",
    "Found",
    "NoData",
    "cache_folder",
    "find",
    "known",
    "read",
]

"""Called with a description, the amount done and the total."""

SYSTEM_FOLDER = Path("/usr/share/datasets")


class NoData(InputError):  # noqa: N818
    """A data file is missing and cannot be downloaded, or its checksum does not match."""


@dataclass(frozen=True)
class DataFile:
    """One data file.

    Parameters
    ----------
    name
        Path inside a data folder.
    sha256
        Checksum of the content. For a file that `unpacks`, of the decompressed content, which does
        not depend on how it was compressed.
    origin, terms
        Source and licence of the data.
    url
        Public address of exactly this file, or None.
    unpacks
        Whether to decompress the file.
    """

    name: str
    sha256: str
    origin: str
    terms: str
    url: str | None = None
    unpacks: bool = False


@dataclass(frozen=True)
class Found:
    """A data file and its status: present, damaged, downloadable or missing."""

    file: DataFile
    status: str
    path: Path | None


FILES: dict[str, DataFile] = {
    name: DataFile(name, **about)
    for name, about in tomllib.loads(
        files(__package__).joinpath("files.toml").read_text(encoding="utf-8")
    ).items()
}


def cache_folder() -> Path:
    """Return the cache folder: CAPNETS_CACHE, or the user's cache folder."""
    chosen = os.environ.get("CAPNETS_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("capnets", appauthor=False))


def find(name: str, *, progress: TitledProgress | None = None) -> Path:
    """Return the path of a verified data file; download it if necessary."""
    path, _ = _verified(_entry(name), progress)
    return path


def read(name: str, *, progress: TitledProgress | None = None) -> bytes:
    """Return the verified content of a data file, decompressed if its entry says so."""
    _, content = _verified(_entry(name), progress)
    return content


def known(*, verify: bool = False) -> list[Found]:
    """List all data files with their status; checksums are computed only if `verify` is set."""
    listing = []
    for file in FILES.values():
        path = _present(file)
        status = "present" if path else "downloadable" if file.url else "missing"
        if path and verify:
            try:
                _content(file, path)
            except InputError:
                status = "damaged"
        listing.append(Found(file, status, path))
    return listing


def _entry(name: str) -> DataFile:
    if name not in FILES:
        raise unknown("data file", name, FILES)
    return FILES[name]


def _verified(file: DataFile, progress: TitledProgress | None) -> tuple[Path, bytes]:
    try:
        path = _present(file) or _download(file, progress)
        return path, _content(file, path)
    except InputError as error:
        raise NoData(str(error)) from error


def _folders() -> list[Path]:
    chosen = os.environ.get("CAPNETS_DATA")
    if chosen and not Path(chosen).is_dir():
        raise InputError(f"CAPNETS_DATA is {chosen}, which is not a folder; correct or unset it")
    return [*([Path(chosen)] if chosen else []), cache_folder(), SYSTEM_FOLDER]


def _present(file: DataFile) -> Path | None:
    names = [file.name, file.name.removesuffix(".gz")] if file.unpacks else [file.name]
    places = (folder / name for folder in _folders() for name in names)
    return next((place for place in places if place.is_file()), None)


def _content(file: DataFile, path: Path, what: str = "") -> bytes:
    """Return the verified content of the file at `path`; errors call it `what`."""
    what = what or str(path)
    try:
        content = path.read_bytes()
        if file.unpacks and content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{what} cannot be read as {file.name}: {error}. It is truncated or damaged; "
            "replace or remove it."
        ) from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(
            f"{what} does not match {file.name}: the checksum of its "
            f"content ({len(content):,} bytes) is not {file.sha256}. "
            "It is truncated or was changed; replace or remove it."
        )
    return content


def _download(file: DataFile, progress: TitledProgress | None) -> Path:
    target = cache_folder() / file.name
    places = "\n".join(f"  {folder / file.name}" for folder in _folders())
    wanted = f"{file.name} ({file.origin}) was not found. Searched:\n{places}"
    advice = "Put it into one of these places, or set CAPNETS_DATA to a folder that contains it."
    if file.url is None:
        raise InputError(f"{wanted}\nIt has no public address to download it from.\n{advice}")
    check_extra("pooch", "data", purpose="downloading data files")
    import pooch

    with writing(target) as temporary:
        fetch = pooch.HTTPDownloader(
            timeout=30,
            chunk_size=2**18,
            progressbar=_Bar(file.name, progress) if progress else False,
        )
        try:
            fetch(file.url, str(temporary), None)
        except OSError as error:
            raise InputError(
                f"{wanted}\nDownloading it from {file.url} failed:\n  {error}\n{advice}"
            ) from error
        # Verified before it gets its name: a broken download leaves nothing behind.
        _content(file, temporary, what=f"the download from {file.url}")
    return target


class _Bar:
    """Adapt a `TitledProgress` callable to the interface that pooch expects."""

    def __init__(self, name: str, progress: TitledProgress) -> None:
        self.name, self.progress, self.total, self.done = name, progress, 0, 0

    def update(self, count: int) -> None:
        self.done += count
        self.progress(f"downloading {self.name}", self.done, self.total)

    def reset(self) -> None:
        # pooch resets the bar and fills it once more when a download is complete.
        self.done = 0

    def close(self) -> None:
        pass
