"""Choose the devices of a training: one, in plain PyTorch, or several through lightning-fabric."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from capnets.errors import InputError, check_extra, unknown

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Devices", "OneDevice", "make_fabric"]


@dataclass(frozen=True)
class OneDevice:
    """The part of lightning-fabric's `Fabric` that a training on one device needs.

    The import of lightning-fabric takes longer than that of torch, so one device does without it.

    Parameters
    ----------
    device
        The device.
    mixed
        Whether networks compute in bfloat16.
    """

    device: torch.device
    mixed: bool = False
    world_size: ClassVar[int] = 1
    global_rank: ClassVar[int] = 0
    is_global_zero: ClassVar[bool] = True

    def launch(self) -> None:
        """Start no other process."""

    def setup(self, network: nn.Module, optimizer: Optimizer) -> tuple[Any, Optimizer]:
        """Move a network to the device."""
        return network.to(self.device), optimizer

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context in which networks compute as `mixed` says."""
        if not self.mixed:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def backward(self, loss: Tensor) -> None:
        """Compute gradients."""
        loss.backward()  # type: ignore[no-untyped-call]

    def clip_gradients(
        self, network: nn.Module, optimizer: Optimizer, *, max_norm: float, error_if_nonfinite: bool
    ) -> None:
        """Limit the norm of all gradients together."""
        nn.utils.clip_grad_norm_(
            network.parameters(), max_norm, error_if_nonfinite=error_if_nonfinite
        )

    def all_reduce(self, value: Tensor, *, reduce_op: str) -> Tensor:
        """Return the value, which no other process shares."""
        return value


Devices: TypeAlias = "OneDevice | Fabric"


def make_fabric(devices: int = 1, *, device: str | None = None) -> Devices:
    """Return devices, with mixed precision only where it pays.

    Parameters
    ----------
    devices
        Number of devices. Several need the extra `devices`; `launch` of the result then starts the
        program once more for every other one.
    device
        Kind: `cpu`, `cuda` or `mps`; None takes the best available.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device is not None and not available.get(device, False):
        if device not in available:
            raise unknown("device", device, available)
        raise InputError(f"device {device!r} is not available here; leave it out, or use 'cpu'")
    kind = device or next(name for name, there in available.items() if there)
    if devices == 1:
        return OneDevice(torch.device(kind), mixed=kind == "cuda")
    check_extra("lightning_fabric", "devices", purpose="training on several devices")
    from lightning_fabric import Fabric

    precision: Any = "bf16-mixed" if kind == "cuda" else "32-true"
    return Fabric(accelerator=kind, devices=devices, strategy="ddp", precision=precision)
