r"""Compare groups of predicted risk by Kaplan-Meier curves.

The curve of a group is the product-limit estimate

.. math:: S(t) = \prod_{t_i \le t} (1 - d_i / n_i)

with :math:`d_i` events at time :math:`t_i` among :math:`n_i` sets at risk (Kaplan and Meier, 1958).
The log-rank test asks whether the groups have one hazard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from capnets.errors import InputError
from capnets.sets import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RiskGroups", "kaplan_meier", "log_rank"]


def kaplan_meier(time: Any, event: Any) -> tuple[Array, Array]:
    """Return the times of events, and the share that survives each of them.

    >>> times, share = kaplan_meier([1, 2, 2, 3], [1, 1, 0, 1])
    >>> times.tolist(), share.tolist()
    ([1, 2, 3], [0.75, 0.5, 0.0])
    """
    times, deaths, at_risk = _counts(np.asarray(time), np.asarray(event))
    return times, np.cumprod(1 - deaths / at_risk)


def log_rank(time: Any, event: Any, group: Any) -> tuple[float, float]:
    """Return the statistic of the log-rank test for several groups, and its p-value."""
    from scipy.stats import chi2

    time, event, group = map(np.asarray, (time, event, group))
    names = np.unique(group)
    times, deaths, at_risk = _counts(time, event)
    happened = event > 0
    own = np.array([[(time[group == g] >= t).sum() for g in names] for t in times])
    died = np.array([[((time == t) & happened & (group == g)).sum() for g in names] for t in times])
    share = own / at_risk[:, None]
    excess = (died - deaths[:, None] * share).sum(axis=0)
    spread = deaths * (at_risk - deaths) / np.maximum(at_risk - 1, 1)
    covariance = np.diag(spread @ share) - np.einsum("t,tg,th->gh", spread, share, share)
    # The excesses sum to 0, so one group is redundant.
    statistic = float(excess[1:] @ np.linalg.pinv(covariance[1:, 1:]) @ excess[1:])
    return statistic, float(chi2.sf(statistic, len(names) - 1))


@dataclass(frozen=True, eq=False)
class RiskGroups:
    """Sets in groups of predicted risk, the lowest first.

    Parameters
    ----------
    group
        Number of the group of every set.
    time, event
        Times until the event (1) or until censoring (0).
    hazard
        Predicted log-hazards.
    """

    group: Array
    time: Array
    event: Array
    hazard: Array

    @classmethod
    def divide(cls, hazard: Any, time: Any, event: Any, *, groups: int = 3) -> RiskGroups:
        """Divide sets at quantiles of their predicted log-hazards.

        Parameters
        ----------
        hazard
            Predicted log-hazards.
        time, event
            Times until the event (1) or until censoring (0).
        groups
            Number of groups; equal hazards are never divided.
        """
        hazard, time, event = (np.asarray(a, dtype=np.float64) for a in (hazard, time, event))
        if not 2 <= groups <= len(hazard):
            raise InputError(f"groups must be from 2 to the number of sets, not {groups}")
        cuts = np.quantile(hazard, np.arange(1, groups) / groups)
        found = np.searchsorted(cuts, hazard, "left")
        if len(np.unique(found)) < groups:
            raise InputError(
                f"{groups} groups: too many predictions are equal to divide the sets; "
                "ask for fewer groups"
            )
        return cls(found, time, event, hazard)

    def record(self) -> dict[str, Any]:
        """Return sizes, events and curves of the groups, and the log-rank test, for JSON."""
        statistic, p = log_rank(self.time, self.event, self.group)
        rows = []
        for k in range(int(self.group.max()) + 1):
            own = self.group == k
            times, share = kaplan_meier(self.time[own], self.event[own])
            rows.append(
                {
                    "group": k + 1,
                    "sets": int(own.sum()),
                    "events": int(self.event[own].sum()),
                    "mean_log_hazard": float(self.hazard[own].mean()),
                    "median_time": _median(times, share),
                    "times": times.tolist(),
                    "survival": share.tolist(),
                }
            )
        return {"groups": rows, "log_rank": statistic, "p": p}

    def figure(self, *, ax: Axes | None = None) -> Figure:
        """Draw the curve of every group; ticks are censored sets."""
        from capnets.explain.render.figures import new_figure

        figure, axes = new_figure(5.6, 3.6, ax=ax)
        last = int(self.group.max())
        for row in self.record()["groups"]:
            own = self.group == row["group"] - 1
            times = np.array([0.0, *row["times"], self.time[own].max()])
            share = np.array([1.0, *row["survival"]])
            share = np.append(share, share[-1])
            line = axes.step(times, share, where="post", label=_named(row, last))[0]
            gone = self.time[own & (self.event == 0)]
            at = share[np.searchsorted(times[:-1], gone, "right") - 1]
            axes.plot(gone, at, "|", color=line.get_color(), ms=6)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("time")
        axes.set_ylabel("share without event")
        axes.legend(frameon=False, fontsize=8)
        return figure

    def to_html(self, *, title: str = "Survival by predicted risk", source: str = "") -> str:
        """Return the curves and their figures as one self-contained page."""
        from capnets.explain.render.global_page import figure_page
        from capnets.explain.render.rows import number

        found = self.record()
        rows = [
            [
                _named(row, len(found["groups"]) - 1).partition(" (")[0],
                f"{row['sets']:,}",
                f"{row['events']:,}",
                number(row["mean_log_hazard"]),
                "not reached" if row["median_time"] is None else number(row["median_time"]),
            ]
            for row in found["groups"]
        ]
        head = ["predicted risk", "sets", "events", "mean log-hazard", "median time"]
        about = (
            f"{len(self.time):,} sets, {int(self.event.sum()):,} events. Ticks are censored sets. "
            f"Log-rank test of equal hazards: statistic {found['log_rank']:.3g}, "
            f"p = {found['p']:.2g}."
        )
        return figure_page(
            title=title, source=source, about=about,
            figures=[("Kaplan-Meier curves", self.figure())],
            tables=[("Groups", {"head": head, "rows": rows})],
        )  # fmt: skip


def _counts(time: Array, event: Array) -> tuple[Array, Array, Array]:
    """Return the distinct times of events, the events then, and the sets at risk."""
    times, deaths = np.unique(time[event > 0], return_counts=True)
    if not len(times):
        return times, deaths, deaths
    at_risk = len(time) - np.searchsorted(np.sort(time), times, "left")
    return times, deaths, at_risk


def _median(times: Array, share: Array) -> float | None:
    """Return the first time at which at most half of the sets are without event."""
    below = np.flatnonzero(share <= 0.5)
    return float(times[below[0]]) if len(below) else None


def _named(row: dict[str, Any], last: int) -> str:
    k = row["group"] - 1
    name = "lowest" if k == 0 else "highest" if k == last else f"group {k + 1}"
    return f"{name} ({row['sets']:,} sets, {row['events']:,} events)"
