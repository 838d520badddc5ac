"""Draw random numbers from a given generator instead of torch's global one.

By default, layers draw initial weights and dropout masks from a generator that all threads of a
process share. Weights would then depend on the timing of other threads, and building a network
would change the caller's random numbers. Inside `draw_from`, random operations of the calling
thread use the given generator; the global one is neither read nor changed.

Redirecting costs 2 to 5 microseconds per operation. Modules that call `generator` need no
redirection: training redirects only networks with other random modules, see `draws_elsewhere`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["draw_from", "drawn_again", "draws_elsewhere", "generator"]


class draw_from:  # noqa: N801
    """Take the random numbers of a block from one generator.

    The numbers are those that `torch.manual_seed` with the seed of the generator would give. The
    block affects the calling thread only. Entering it again continues the sequence.

    Parameters
    ----------
    source
        A generator on the CPU, or a seed for a new one. Operations on another device draw from a
        generator of that device with the same initial seed.
    redirect
        Redirect all operations of torch. Otherwise only modules that call `generator` use it.

    Examples
    --------
    >>> before = torch.get_rng_state()
    >>> with draw_from(0):
    ...     a = nn.Linear(2, 1)
    >>> with draw_from(torch.Generator().manual_seed(0)):
    ...     b = nn.Linear(2, 1)
    >>> torch.equal(a.weight, b.weight), torch.equal(before, torch.get_rng_state())
    (True, True)
    """

    def __init__(self, source: torch.Generator | int, *, redirect: bool = True) -> None:
        if isinstance(source, int):
            source = torch.Generator().manual_seed(source)
        self._generators = {torch.device("cpu"): source}
        self._mode = _Redirect(self) if redirect else None
        self._tokens: list[Token[draw_from | None]] = []

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of a device."""
        if device not in self._generators:
            seed = self._generators[torch.device("cpu")].initial_seed()
            self._generators[device] = torch.Generator(device).manual_seed(seed)
        return self._generators[device]

    def copy(self) -> draw_from:
        """Return a source that will draw the numbers that this one draws next."""
        again = draw_from(0, redirect=self._mode is not None)
        again._generators = {d: g.clone_state() for d, g in self._generators.items()}
        return again

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self))
        if self._mode is not None:
            self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mode is not None:
            self._mode.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        _current.reset(self._tokens.pop())


_current: ContextVar[draw_from | None] = ContextVar("draw_from", default=None)


def generator(device: torch.device) -> torch.Generator | None:
    """Return the generator of the enclosing `draw_from`; None, torch's own, outside of one."""
    source = _current.get()
    return None if source is None else source.generator(device)


def drawn_again() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two blocks that draw the same numbers, for a computation and its repetition.

    The first block draws from the enclosing `draw_from`. Outside of one, numbers differ.
    """
    source = _current.get()
    return nullcontext(), nullcontext() if source is None else source.copy()


def draws_elsewhere(part: object) -> bool:
    """Return whether a network or a prior may draw random numbers without calling `generator`.

    True for torch's dropout layers, and for code of other packages, which may draw anything.

    >>> draws_elsewhere(nn.Sequential(nn.Linear(2, 2), nn.ReLU())), draws_elsewhere(nn.Dropout())
    (False, True)
    """
    return any(map(_draws, part.modules() if isinstance(part, nn.Module) else [part]))


def _draws(part: object) -> bool:
    package = type(part).__module__.partition(".")[0]
    if package != "torch":
        return package != "capnets"
    layers = nn.modules.dropout._DropoutNd | nn.RReLU
    return isinstance(part, layers) or bool(getattr(part, "dropout", 0.0))


class _Redirect(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Pass a generator to every random operation that was given none."""

    def __init__(self, source: draw_from) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.source = source

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None:
            taking = _taking_generator(func, args, kwargs)
            if taking is not None:
                tensors = (x for x in args if isinstance(x, torch.Tensor))
                device = next((x.device for x in tensors), kwargs.get("device") or "cpu")
                kwargs["generator"] = self.source.generator(torch.device(device))
                func = taking
        return func(*args, **kwargs)

    # Do not redirect compiled code, and do not import torch's compiler, which is slow.
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def _taking_generator(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """Return the variant of a random operation that takes a generator; None if it draws nothing."""
    names = [argument.name for argument in func._schema.arguments]
    if "generator" in names:
        return func  # type: ignore[no-any-return]
    packet = func.overloadpacket
    for name in packet.overloads():
        words = name.split("_")
        if "generator" in words:
            words.remove("generator")
            if ("_".join(words) or "default") == func._overloadname:
                return getattr(packet, name)  # type: ignore[no-any-return]
    if packet is torch.ops.aten.native_dropout:
        return _dropout
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    dropout = given.get("dropout_p") or given.get("dropout")
    if not dropout or packet is torch.ops.aten._fused_sdp_choice:
        return None
    raise NotImplementedError(f"{func} can only draw from torch's global generator")


def _dropout(
    x: torch.Tensor, p: float, train: bool | None, *, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `aten.native_dropout`, which CUDA uses and which takes no generator."""
    if train is False or not p:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p, generator=generator)
    return x * kept / (1 - p), kept
