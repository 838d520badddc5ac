"""Memory freed during training stays with the process."""

import platform
import subprocess
import sys

import pytest

# A megabyte has 256 pages: what was given back is met as page faults when it is taken again.
PROGRAM = """
import resource, sys
import torch
from capnets.memory import keep_freed

if sys.argv[1] == "keep":
    keep_freed()

def step():
    for size in (40, 3, 20):
        torch.empty(size * 2**18).fill_(1)

for _ in range(20):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the malloc of glibc")
def test_freed_memory_is_kept():
    faults = {
        how: int(subprocess.check_output([sys.executable, "-c", PROGRAM, how]))
        for how in ("keep", "give back")
    }
    assert faults["give back"] > 10 * 40 * 200  # otherwise there is nothing to gain
    assert faults["keep"] < faults["give back"] / 50
