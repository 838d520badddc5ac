"""Check annotated tensor shapes of the package during tests.

Every function that states shapes (jaxtyping) is checked by beartype at each call. The others are
left alone: tests hand them wrong input on purpose, to read the error that a user would get.
"""

import inspect
import re
from collections.abc import Callable

from beartype import beartype

SHAPED = re.compile(r"\b(Bool|Complex|Float|Inexact|Int|Integer|Num|Real|Shaped|UInt)\d*\[")


def check(function: Callable) -> Callable:
    """beartype, for a function with shapes in its signature."""
    hints = inspect.get_annotations(function).values()
    # beartype knows Self only in classes that it decorates itself.
    if any("Self" in str(hint) for hint in hints):
        return function
    scope = inspect.unwrap(function).__globals__
    return beartype(function) if any(_has_shape(hint, scope) for hint in hints) else function


def _has_shape(hint: object, scope: dict[str, object]) -> bool:
    if isinstance(hint, str):
        try:
            hint = eval(hint, scope)
        except NameError:  # a class that is defined further down: not a shape
            return False
    return bool(SHAPED.search(str(hint)))
