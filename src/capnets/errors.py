"""Errors for people: what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec

__all__ = [
    "DataWarning", "InputError", "LeakageWarning", "SizeWarning", "SplitWarning", "check_extra",
    "unknown",
]  # fmt: skip

#: Longer lists of choices are cut.
MOST_CHOICES = 50


class InputError(ValueError):
    """Invalid input; the message tells the user what is wrong and what to do."""


class DataWarning(UserWarning):
    """Data is valid, but probably not read as intended."""


class LeakageWarning(DataWarning):
    """A feature leaks the label."""


class SizeWarning(DataWarning):
    """Sets have other sizes than all training sets."""


class SplitWarning(DataWarning):
    """Sets to be scored have the names of training sets, but other instances."""


def unknown(kind: str, name: object, choices: Iterable[str], *, listed: str = "") -> InputError:
    """Create the error for an unknown name; it lists the closest choices first.

    If there are too many choices to list, `listed` is the command that lists them.

    >>> print(unknown("model", "deepsets", ["gru", "c-gru", "deepset"]))
    unknown model 'deepsets': did you mean 'deepset'? Choices: gru, c-gru, deepset
    >>> print(unknown("set", "x", map(str, range(100))))
    unknown set 'x'. Choices: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more
    """
    known = list(choices)
    near = get_close_matches(str(name), known, n=3)
    hint = f": did you mean {' or '.join(map(repr, near))}?" if near else "."
    some = known if len(known) <= MOST_CHOICES else known[:10]
    more = f" and {len(known) - len(some):,} more" if len(some) < len(known) else ""
    rest = f"`{listed}` lists all" if listed else f"Choices: {', '.join(some)}{more}"
    return InputError(f"unknown {kind} {name!r}{hint} {rest}")


def check_extra(module: str, extra: str, *, purpose: str) -> None:
    """Raise an error that says what to install, unless a module of an extra is installed.

    >>> check_extra("no_such_module", "plot", purpose="drawing figures")
    Traceback (most recent call last):
    capnets.errors.InputError: drawing figures needs no_such_module: pip install 'capnets[plot]'
    """
    if find_spec(module) is None:
        raise InputError(f"{purpose} needs {module}: pip install 'capnets[{extra}]'")
