"""Turn a run into explanations and pages."""

from capnets.pages.explain_run import explain_run

__all__ = ["explain_run"]
