"""Choose how encoder, cell and decoder are computed, and explain the choice.

There are three backends. They compute the same numbers up to rounding, and all of them can be
differentiated any number of times.

- ``kernels``: compiled forward and backward passes (`capnets.nn.kernels`). Encoder, cell and
  decoder are one function to torch; where one of the two layers does not qualify, the cell alone.
- ``native``: torch's own modules, operation by operation.
- ``reference``: the equations (`capnets.nn.reference`); slow, but works under every transform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.function import Function
from torch.func import functional_call

from capnets.errors import unknown
from capnets.nn import kernels
from capnets.nn.encoders import each
from capnets.nn.kernels.chain import LARGE_LAYER, Modules, find_chain
from capnets.nn.kernels.kernel import BLOCK, Array, CellKernel, Kernel, to_array

if TYPE_CHECKING:
    from capnets.nn.cells import Cell, RecurrentCell

Instances = Float[Tensor, "sets size *features"]
Results = Float[Tensor, "sets size last"]
Gradients = tuple[Tensor | None, ...]
Found = tuple[Kernel, ...] | str

BACKENDS = ("auto", "kernels", "native", "reference")

_wanted: ContextVar[str] = ContextVar("backend", default="auto")
_choices: ContextVar[list[Choice] | None] = ContextVar("choices", default=None)


class Choice(NamedTuple):
    """The backend of some modules, and the reason for it."""

    modules: Modules
    backend: str
    reason: str
    chain: tuple[Kernel, ...] = ()

    def __str__(self) -> str:
        names = " + ".join(type(module).__name__ for module in self.modules)
        return f"{names}: {self.backend} ({self.reason})"


@contextmanager
def use(name: str) -> Iterator[None]:
    """Use one backend inside this block, where it supports the computation.

    The block holds for its own thread. ``auto`` is the default.
    """
    if name not in BACKENDS:
        raise unknown("backend", name, BACKENDS)
    token = _wanted.set(name)
    try:
        yield
    finally:
        _wanted.reset(token)


def explain(model: nn.Module, x: Tensor) -> str:
    """Return which backends compute the prediction of `x`, and why, one line per choice.

    Examples
    --------
    >>> from capnets.models import build
    >>> with use("native"):
    ...     print(explain(build("c-gru", in_features=3), torch.zeros(2, 5, 3)))
    Sequential + GRUCell + Sequential: native (asked for by use("native"))
    GRUCell: native (asked for by use("native"))
    """
    choices: list[Choice] = []
    token = _choices.set(choices)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            model(x)
    finally:
        _choices.reset(token)
    lines = dict.fromkeys(str(choice) for choice in choices)
    return "\n".join(lines) or f"{type(model).__name__}: native (it has no cell and no attention)"


def encode_scan_decode(
    x: Instances, encoder: nn.Module, cell: Cell, decoder: nn.Module | None = None
) -> Results:
    """Apply an encoder, a cell and a decoder to all instances; without a decoder, return states."""
    modules = (encoder, cell) if decoder is None else (encoder, cell, decoder)
    choice = _choose(modules, x)
    if choice.chain:
        return _run(choice, x, cell.initial_state(len(x)))[0]
    z, _ = cell(each(encoder, x))
    return z if decoder is None else each(decoder, z)


def scan(cell: RecurrentCell, e: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Apply a cell alone; return all outputs and the state after the last instance."""
    choice = _choose((cell,), e)
    if choice.chain:
        return _run(choice, e, state)
    return (cell.equations if choice.backend == "reference" else cell.native)(e, state)


def is_transformed() -> bool:
    """Return whether a transform of `torch.func` or forward-mode differentiation is active.

    Neither supports custom functions such as ours, nor torch's own recurrent modules.
    """
    return not torch.compiler.is_compiling() and (
        torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    )


@contextmanager
def threads_for(model: nn.Module) -> Iterator[None]:
    """Give torch one thread inside this block if all layers of a network on a CPU are small.

    Threads that share small operations spend their time waiting: five times the processor time for
    no gain, and more on a busy machine. The setting holds for the calling thread.
    """
    threads = torch.get_num_threads()
    if threads == 1 or any(p.numel() > LARGE_LAYER or not p.is_cpu for p in model.parameters()):
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def wants_kernels() -> bool:
    """Return whether `use` allows kernels."""
    return _wanted.get() in ("auto", "kernels")


def choose(modules: Modules, x: Tensor, find: Callable[[bool], Found]) -> Choice:
    """Choose a backend, for `explain` to see.

    `find` returns kernels, or the reason why there are none; True asks for slower ones, too.
    """
    choice = _decide(modules, x, find)
    if (choices := _choices.get()) is not None:
        choices.append(choice)
    return choice


def _choose(modules: Modules, x: Tensor) -> Choice:
    return choose(modules, x, lambda forced: find_chain(modules, x, forced=forced))


def _decide(modules: Modules, x: Tensor, find: Callable[[bool], Found]) -> Choice:
    """Decide on one backend; the only place that does."""

    def native(reason: str) -> Choice:
        return Choice(modules, "native", reason)

    wanted = _wanted.get()
    if torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
        return native("torch.compile and ONNX export trace torch's operations")
    if is_transformed():
        return Choice(modules, "reference", "inside a torch.func transform")
    if wanted in ("native", "reference"):
        return Choice(modules, wanted, f'asked for by use("{wanted}")')
    if type(x) is not Tensor or x.dtype != torch.float32 or x.device.type != "cpu":
        return native(f"kernels are for float32 on a CPU, not {x.dtype} on {x.device}")
    if torch.is_autocast_enabled("cpu"):
        return native("autocast chooses the precision of torch's operations")
    if x.ndim != 3 or not x.shape[:2].numel():
        return native(f"kernels read sets x instances x features, not {tuple(x.shape)}")
    if not kernels.available():
        return native("numba is not installed: pip install 'capnets[compiled]'")
    chain = find(wanted == "kernels")
    if isinstance(chain, str):
        return native(chain)
    words = "one compiled function" if len(modules) > 1 else "compiled"
    return Choice(modules, "kernels", words, chain)


def _run(choice: Choice, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Run a chain of kernels; return all outputs and the state after the last instance."""
    parameters = [p for kernel in choice.chain for p in kernel.parameters]
    keep = torch.is_grad_enabled()
    y, after = _Compiled.apply(choice, keep, x, state, *parameters)  # type: ignore[no-untyped-call]
    return y.transpose(0, 1), after


class _Compiled(Function):
    """A chain of kernels, one of them a cell's, as one function of torch."""

    @staticmethod
    def forward(
        ctx: Any, choice: Choice, keep: bool, x: Tensor, state: Tensor, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        chain, (sets, size) = choice.chain, x.shape[:2]
        ctx.multiplications = min(sets * size, BLOCK) * max(p.numel() for p in parameters)
        cell = _cell_kernel(chain)
        cell.before = to_array(state)
        y = to_array(x.transpose(0, 1))
        with kernels.one_blas_thread(ctx.multiplications):
            for kernel in chain:
                y = kernel.forward(y, keep=keep)
        if keep:
            # Saved by torch, so that changing them in place before the backward pass is an error.
            ctx.save_for_backward(x, state, *parameters)
            ctx.modules, ctx.chain = choice.modules, chain
        return torch.from_numpy(y), torch.from_numpy(cell.after)

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dafter: Tensor) -> Gradients:
        inputs = ctx.saved_tensors  # checks that none was changed
        chain, ctx.chain = ctx.chain, None  # kernels store results for one backward pass
        if chain is None or torch.is_grad_enabled():
            return None, None, *_differentiate(ctx, inputs, dy, dafter)
        cell = _cell_kernel(chain)
        cell.dafter = to_array(dafter)
        need_dx = ctx.needs_input_grad[2]
        d: Array | None = to_array(dy)
        gradients: list[Array] = []
        with kernels.one_blas_thread(ctx.multiplications):
            for place in reversed(range(len(chain))):
                assert d is not None
                d, found = chain[place].backward(d, need_dx=need_dx or place > 0)
                gradients = found + gradients
        dx = None if d is None else torch.from_numpy(d).transpose(0, 1)
        return None, None, dx, *map(torch.from_numpy, [cell.dbefore, *gradients])


def _cell_kernel(chain: tuple[Kernel, ...]) -> CellKernel:
    cell = chain[len(chain) > 1]
    assert isinstance(cell, CellKernel)
    return cell


def _differentiate(ctx: Any, inputs: tuple[Tensor, ...], dy: Tensor, dafter: Tensor) -> Gradients:
    """Differentiate the reference computation: a second time, or with a graph of the gradients."""
    again = torch.is_grad_enabled()
    x, state, *parameters = inputs
    with torch.enable_grad(), use("reference"):
        y, after = _with_parameters(ctx.modules, x, state, parameters)
        pairs = [(y.transpose(0, 1), dy), (after, dafter)]
    outputs, arriving = zip(*(pair for pair in pairs if pair[0].requires_grad), strict=True)
    needed = ctx.needs_input_grad[2:]
    asked = [t for t, need in zip(inputs, needed, strict=True) if need]
    options = {"create_graph": again, "allow_unused": True}
    found = iter(torch.autograd.grad(outputs, asked, arriving, **options))
    return tuple(next(found) if need else None for need in needed)


def _with_parameters(
    modules: Modules, x: Tensor, state: Tensor, parameters: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Apply modules with given parameters, which may have been replaced (`functional_call`)."""
    left = iter(parameters)

    def applied(module: nn.Module, *args: Tensor) -> Any:
        names = [name for name, _ in module.named_parameters(remove_duplicate=False)]
        return functional_call(module, dict(zip(names, left, strict=False)), args)

    if len(modules) == 1:
        y, after = applied(modules[0], x, state)
        return y, after
    encoder, cell, *decoder = modules
    z, after = applied(cell, applied(encoder, x), state)
    return (applied(decoder[0], z) if decoder else z), after
