"""Find and install onnxruntime-web, the runtime of interactive pages.

The runtime is not part of this package. It is extracted once from its npm package into the user's
cache folder, and the SHA-256 digests of its files are checked at every use.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from capnets.errors import InputError
from capnets.files import write_bytes

__all__ = ["NAME", "Runtime", "find_runtime", "install_runtime"]

NAME = "onnxruntime-web-1.30.0"
SCRIPT = "ort.wasm.bundle.min.mjs"
WASM = "ort-wasm-simd-threaded.wasm"
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    WASM: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
#: Environment variable with the folder of the runtime, if it is not in the cache.
VARIABLE = "CAPNETS_RUNTIME"
ADVICE = (
    "install it once: `make page` in the repository, or `npm pack onnxruntime-web@1.30.0` and "
    f"`capnets page RUN --runtime {NAME}.tgz`"
)


@dataclass(frozen=True)
class Runtime:
    """The files of the runtime.

    Parameters
    ----------
    script
        The JavaScript module.
    wasm
        The WebAssembly module that it loads.
    """

    script: bytes
    wasm: bytes


def find_runtime() -> Runtime:
    """Return the installed runtime, or raise an error that says how to install it."""
    folder = _folder()
    try:
        found = {name: (folder / name).read_bytes() for name in SHA256}
    except OSError as error:
        raise InputError(f"the page needs {NAME}, which is not installed; {ADVICE}") from error
    for name, content in found.items():
        _check(name, content)
    return Runtime(found[SCRIPT], found[WASM])


def install_runtime(package: str | Path) -> Path:
    """Extract the runtime from its npm package (.tgz) and return its folder.

    Only the two known files are read, and only if their SHA-256 is right.
    """
    try:
        with tarfile.open(package, "r:gz") as archive:
            found = {name: _member(archive, f"package/dist/{name}") for name in SHA256}
    except (OSError, tarfile.TarError, KeyError) as error:
        raise InputError(f"{package} is not the npm package of {NAME}: {error}") from error
    for name, content in found.items():
        _check(name, content)
    folder = _folder()
    for name, content in found.items():
        write_bytes(folder / name, content)
    return folder


def _folder() -> Path:
    from platformdirs import user_cache_dir

    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else Path(user_cache_dir("capnets", appauthor=False)) / NAME


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(f"{name} is no file")
    return file.read()


def _check(name: str, content: bytes) -> None:
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise InputError(f"{name} is not the file of {NAME}: its SHA-256 differs; {ADVICE}")


if __name__ == "__main__":
    print(install_runtime(sys.argv[1]))
