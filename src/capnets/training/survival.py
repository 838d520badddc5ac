r"""Cox's partial likelihood, for labels that are times until an event or until censoring.

A prediction :math:`h_i` is the logarithm of a relative hazard. With the risk set
:math:`R_i = \{j : t_j \ge t_i\}`, the loss of an event is

.. math:: \log \sum_{j \in R_i} e^{h_j} - h_i

and censored sets appear in risk sets only (Cox, 1972). Efron (1977) takes the events of one time
out of the risk set one after another; Breslow (1974) leaves all of them in. In training the risk
sets are those of the batch, so batches should be large enough to hold events.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from capnets.errors import InputError, unknown

__all__ = ["concordance", "cox_losses"]

PerSet = Float[Tensor, " sets"]


def cox_losses(hazard: PerSet, time: PerSet, event: PerSet, *, ties: str = "efron") -> PerSet:
    """Return the negative partial log-likelihood of every set; 0 for censored sets.

    Parameters
    ----------
    hazard
        Logarithms of relative hazards.
    time
        Times until the event or until censoring.
    event
        1 where the event happened, 0 where the set was censored.
    ties
        Treatment of events at the same time: `efron` or `breslow`.

    Examples
    --------
    >>> time, event = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0, 0.0])
    >>> [round(x, 4) for x in cox_losses(torch.zeros(3), time, event).exp().tolist()]
    [3.0, 2.0, 1.0]
    """
    if ties not in ("efron", "breslow"):
        raise unknown("treatment of ties", ties, ["efron", "breslow"])
    order = torch.argsort(time, descending=True, stable=True)
    h, happened = hazard[order], event[order] > 0
    _, group = torch.unique_consecutive(time[order], return_inverse=True)
    shift = h.detach().max() if len(h) else 0.0
    risk = (h - shift).exp()
    # The risk set of a time ends with the last set of that time in descending order.
    count = int(group[-1]) + 1 if len(group) else 0
    at_risk = h.new_zeros(count).index_add(0, group, risk).cumsum(0)[group]
    if ties == "efron":
        dying = h.new_zeros(count).index_add(0, group, risk * happened)[group]
        deaths = happened.new_zeros(count, dtype=h.dtype).index_add(0, group, happened.to(h))
        before = happened.to(h).cumsum(0) - happened.to(h)
        first = torch.cat([deaths.new_zeros(1), deaths.cumsum(0)[:-1]])[group]
        at_risk = at_risk - (before - first) / deaths[group].clamp_min(1) * dying
    tiny = torch.finfo(h.dtype).tiny
    loss = torch.where(happened, at_risk.clamp_min(tiny).log() + shift - h, 0.0)
    return torch.zeros_like(loss).index_copy(0, order, loss)


def concordance(hazard: PerSet, time: PerSet, event: PerSet) -> float:
    """Return Harrell's concordance index: the share of comparable pairs in the right order.

    A pair is comparable if the earlier of its times is an event; equal hazards count one half.

    >>> concordance(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 2.0]), torch.ones(2))
    1.0
    """
    earlier = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    # At the same time, an event counts as earlier than a censored set.
    earlier |= (time[:, None] == time[None, :]) & (event[:, None] > 0) & (event[None, :] == 0)
    pairs = int(earlier.sum())
    if not pairs:
        raise InputError("no two sets are comparable: there are too few events")
    higher = (hazard[:, None] > hazard[None, :]).double()
    higher += 0.5 * (hazard[:, None] == hazard[None, :])
    return float(higher[earlier].sum() / pairs)
