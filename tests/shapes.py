"""The type checker that the tests lay over the package: shapes, and nothing else.

Every function that states shapes (jaxtyping) is checked by beartype at each call. The others are left
alone: tests hand them wrong input on purpose, to read the error that a user would get.
"""

import inspect
import re
from collections.abc import Callable

from beartype import beartype

SHAPED = re.compile(r"\b(Bool|Complex|Float\d*|Inexact|Int\d*|Integer|Num|Real|Shaped|UInt\d*)\[")


def check(function: Callable) -> Callable:
    hints = " ".join(map(str, inspect.get_annotations(function).values()))
    # beartype knows Self only in classes that it decorates itself.
    return beartype(function) if SHAPED.search(hints) and "Self" not in hints else function
