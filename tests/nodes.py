"""Run the scripts of the page outside a browser, with node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import capnets.pages

STATIC = Path(capnets.pages.__file__).parent / "static"


def node(code: str):
    """Run a module with node and return the JSON that it prints."""
    if shutil.which("node") is None:
        pytest.skip("no node: install it to have the scripts of the page tested")
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
