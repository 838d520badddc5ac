"""Convert an explanation to JSON objects, one per set."""

from __future__ import annotations

from typing import Any

from capnets.explain.explanation import Explanation
from capnets.explain.render.instances import Features, Instances, Texts, checked

__all__ = ["records"]


def records(explanation: Explanation) -> list[dict[str, Any]]:
    """Return one JSON object per set, with one per instance in it."""
    instances = checked(None, explanation)
    frame = explanation.to_frame().rename(columns={"value": "added_value"})
    frame = frame[[c for c in ("added_value", "error", "spread", "expected") if c in frame]]
    found = []
    for k in range(len(explanation)):
        own = explanation.span(k)
        rows = frame[own].to_dict("records")
        found.append(
            {
                "set": explanation.name(k),
                "prediction": float(explanation.predictions[k]),
                "baseline": float(explanation.baselines[k]),
                **_labels(explanation, k),
                "instances": [
                    _about(instances, place) | row for place, row in enumerate(rows, own.start)
                ],
            }
        )
    return found


def _labels(explanation: Explanation, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if explanation.labels is not None:
        found["label"] = float(explanation.labels[k])
    if explanation.probabilities is not None:
        found["class"] = explanation.output
        found["probability"] = float(explanation.probabilities[k])
    if explanation.predicted_classes is not None:
        found["predicted_class"] = explanation.predicted_classes[k]
    if explanation.true_classes is not None:
        found["true_class"] = explanation.true_classes[k]
    return found


def _about(instances: Instances, place: int) -> dict[str, Any]:
    """Return the name of an instance, and its features if it is a row of a table."""
    named = isinstance(instances, Texts) or instances.names is not None
    about: dict[str, Any] = {"name": instances.label(place)} if named else {}
    if isinstance(instances, Features):
        row = instances.table[place].tolist()
        about["features"] = dict(zip(instances.columns, row, strict=True))
    return about
