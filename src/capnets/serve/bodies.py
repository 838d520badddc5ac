"""Bodies of requests, beside the sets themselves."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from capnets.serve.tensors import SetsBody

__all__ = ["EmbedBody", "ExplainBody", "PushBody", "SelectBody"]


class ExplainBody(SetsBody):
    """Sets to explain."""

    method: Literal["added", "shapley"] = Field(
        default="added", description="Added values, or Shapley values by real removal."
    )
    orders: int | None = Field(
        default=None, ge=1, description="Random orders; none: the given order, or exact values."
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Random seed of the orders.")
    output: int | str | None = Field(default=None, description="The output, by index or name.")


class SelectBody(SetsBody):
    """Sets to select from."""

    k: int = Field(ge=1, lt=2**31, description="Instances to select per set.")
    method: Literal["greedy", "lazy", "single"] = "greedy"
    output: int | str | None = Field(default=None, description="The output, by index or name.")


class EmbedBody(BaseModel):
    """Text for a network that reads sentences."""

    model_config = ConfigDict(extra="ignore")
    text: str = Field(min_length=1, description="A document, or one sentence.")
    split: bool = Field(default=True, description="Divide the text into sentences.")


class PushBody(BaseModel):
    """Instances that a stream reads next."""

    model_config = ConfigDict(extra="ignore")
    instances: list[Any] = Field(min_length=1, description="Instances x features.")
