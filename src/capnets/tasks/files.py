"""Locate, download and verify data files.

A file is searched in the folder named by the environment variable CAPNETS_DATA, in the cache
(CAPNETS_CACHE, or the user's cache folder) and in Debian's /usr/share/datasets. If it is in none of
them, it is downloaded into the cache. Its checksum is always verified before use.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from capnets.errors import InputError, check_extra, unknown
from capnets.files import writing

__all__ = [
    "FILES",
    "DataFile",
    "Found",
    "NoData",
    "Progress",
    "cache_folder",
    "find",
    "known",
    "read",
]

Progress = Callable[[str, int, int], None]
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


_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _idx_files(folder: str, home: str, origin: str, terms: str, *sums: str) -> list[DataFile]:
    return [
        DataFile(f"{folder}/{name}", sha, origin, terms, url=f"{home}/{name}", unpacks=True)
        for name, sha in zip(_IDX, sums, strict=True)
    ]


_WMIL = "Pappas & Popescu-Belis, weighted multiple-instance learning (EMNLP 2014)"

# The .npz files were converted from other formats, so they have no public address.
FILES: dict[str, DataFile] = {
    file.name: file
    for file in [
        *_idx_files(
            "mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "MNIST, LeCun, Cortes & Burges",
            "CC BY-SA 3.0",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        *_idx_files(
            "fashion-mnist",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            "Fashion-MNIST, Zalando Research",
            "MIT",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        DataFile(
            "mil/musk1.npz",
            "45ff80553a1541038f8373531e7b380db888e78567027ad30fc0ab9b8235eeef",
            "Musk (Version 1), UCI Machine Learning Repository",
            "CC BY 4.0",
        ),
        DataFile(
            "mil/musk2.npz",
            "8b6647324dbddfbbf983e28077596eb65c13e2e75fd07cbbec884d3415fb3931",
            "Musk (Version 2), UCI Machine Learning Repository",
            "CC BY 4.0",
        ),
        DataFile(
            "mil/elephant.npz",
            "c067b20dfcc81a91babf276812839dcdfa21a3fed5f2a93299a4084d68509794",
            "Elephant, Andrews, Tsochantaridis & Hofmann (2002)",
            "not stated",
        ),
        DataFile(
            "mil/mutagenesis.npz",
            "1af97acf49030b07fc150e4d9a6707a1d51321d66174028d312f2d7ea66b5529",
            "Mutagenesis, CTUAvastLab datasets",
            "CC0",
        ),
        DataFile(
            "mil/thrombin.npz",
            "035c1ba5734cd21c9a667163731ac06c8ff3a24365f5c736fe98eeba036ebb78",
            "Thrombin (ChEMBL 204), through cimm-kzn/3D-MIL-QSAR",
            "CC BY-SA",
        ),
        DataFile(
            "mil/birds.npz",
            "76c7f65022fe40221fedf3d1129eedf98b7479c040d80c6e975447e9e19ba9de",
            "HJA birdsong, Briggs et al. (2012), through macarbonneau/MILSurvey",
            "research use",
        ),
        DataFile(
            "mil/protein.npz",
            "9ffca0c66cb3e682f99e699ad8e8d9b7b373b010c7652f7ad4709571997d805a",
            "TrX proteins, Wang et al. (2004), through the package mil",
            "MIT",
        ),
        DataFile(
            "mil/web1.npz",
            "54e3a2cfb5bbac61c20adc23b097d9644887c05b802658281c602487d990a7cf",
            "Web recommendation, Zhou et al. (2005), through the package mil",
            "MIT",
        ),
        DataFile(
            "reviews/ted_comments.npz",
            "7771d0496d37ba1aee82cecbe3ee61ddf53784dc19a0f807183ab8c9171e1353",
            f"TED comments, {_WMIL}",
            "research use",
        ),
        DataFile(
            "reviews/audible.npz",
            "7ddab9bb728465226f6e1cdfa090c5fad5c8ffed2304289229f4f518068dd167",
            f"Audible reviews, {_WMIL}",
            "research use",
        ),
        DataFile(
            "reviews/womens_clothing.jsonl.gz",
            "a5c2b8e0fdd5e4b47b4a2787d12a2869658366f22b9a2af003dc3f67a1dce4da",
            "Women's E-Commerce Clothing Reviews",
            "CC0",
        ),
    ]
}


def cache_folder() -> Path:
    """Return the cache folder: CAPNETS_CACHE, or the user's cache folder."""
    chosen = os.environ.get("CAPNETS_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("capnets", appauthor=False))


def find(name: str, *, progress: Progress | None = None) -> Path:
    """Return the path of a verified data file; download it if necessary."""
    path, _ = _verified(_entry(name), progress)
    return path


def read(name: str, *, progress: Progress | None = None) -> bytes:
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


def _verified(file: DataFile, progress: Progress | None) -> tuple[Path, bytes]:
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


def _download(file: DataFile, progress: Progress | None) -> Path:
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
    """Adapt a `Progress` callable to the interface that pooch expects."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.progress, self.total, self.done = name, progress, 0, 0

    def update(self, count: int) -> None:
        self.done += count
        self.progress(f"downloading {self.name}", self.done, self.total)

    def reset(self) -> None:
        # pooch resets the bar and fills it once more when a download is complete.
        self.done = 0

    def close(self) -> None:
        pass
