"""Share runs on a Hugging Face hub: push a finished run, and load it again.

A repository holds the files of the run (JSON and safetensors, no pickles), its model card as
README.md and, where the network has them, its ONNX graphs. Digests of the manifest are checked
when a run is loaded, so a changed or incomplete download is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capnets.errors import InputError, check_extra
from capnets.export.folder import export
from capnets.runs import Run

__all__ = ["from_pretrained", "push_to_hub"]

#: Files that are pushed and loaded; others, such as pickles, are left alone.
PATTERNS = ("*.json", "*.jsonl", "*.safetensors", "*.npy", "*.onnx", "README.md")
#: Names of files in a run folder that are never pushed: they belong to training.
LOCAL = ("checkpoint*", ".*")


def push_to_hub(
    run: str | Path, repository: str, *, private: bool = True, endpoint: str | None = None
) -> str:
    """Push a finished run as a model repository; return its address.

    Parameters
    ----------
    run
        The run folder.
    repository
        Name of the repository, `user/name`; created if there is none. The token is that of
        `hf auth login`.
    private
        Whether a new repository is private.
    endpoint
        Address of the hub, if not the public one.
    """
    check_extra("huggingface_hub", "hub", purpose="sharing runs")
    from huggingface_hub import CommitOperationAdd, HfApi

    found = Run(run)
    if not found.finished or not found.verified:
        raise InputError(f"{run} is not finished or has no digests: train it to its end first")
    api = HfApi(endpoint=endpoint, library_name="capnets")
    with _readable(f"pushing to {repository}"), tempfile.TemporaryDirectory() as folder:
        files = _card(found, Path(folder) / "export")
        files |= {
            path.name: path
            for path in sorted(found.folder.iterdir())
            if path.is_file()
            and any(path.match(p) for p in PATTERNS)
            and not any(path.match(p) for p in LOCAL)
        }
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.create_commit(
            repository,
            [CommitOperationAdd(name, str(path)) for name, path in files.items()],
            commit_message=f"Add {found.config.model.title} for sets",
        )
    return str(address)


def from_pretrained(
    repository: str, *, revision: str | None = None, endpoint: str | None = None
) -> Run:
    """Load a run from a hub, through the cache of huggingface_hub; digests are checked.

    Parameters
    ----------
    repository
        Name of the repository, `user/name`.
    revision
        Branch, tag or commit.
    endpoint
        Address of the hub, if not the public one.
    """
    check_extra("huggingface_hub", "hub", purpose="loading shared runs")
    from huggingface_hub import snapshot_download

    with _readable(f"loading {repository}"):
        folder = snapshot_download(
            repository, revision=revision, endpoint=endpoint, allow_patterns=list(PATTERNS)
        )
    run = Run(folder)
    if not run.verified:
        raise InputError(f"{repository} has no manifest of digests: it was not pushed by capnets")
    _ = run.model  # damaged weights raise here
    return run


def _card(run: Run, folder: Path) -> dict[str, Path]:
    """Write the model card, and graphs if the network has them; return files by name."""
    name = run.config.model.name
    head = f"---\nlibrary_name: capnets\ntags: [capnets, sets, {name}]\n---\n\n"
    how = (
        "\n## Load it\n\n```python\nfrom capnets.export.hub import from_pretrained\n\n"
        'run = from_pretrained("user/name")\n```\n'
    )
    try:
        export(run.folder, folder)
        page = (folder / "README.md").read_text(encoding="utf-8")
    except InputError as error:  # no graphs, or ONNX is not installed
        folder.mkdir(parents=True, exist_ok=True)
        page = f"# {name}: a network for sets\n\nThere are no ONNX graphs: {error}\n"
    (folder / "README.md").write_text(head + page + how, encoding="utf-8")
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn errors of the hub into errors for people."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except InputError:
        raise
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{what} failed: {reason}") from error
