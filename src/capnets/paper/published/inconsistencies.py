"""Inconsistencies of the printed numbers with each other, with the text, or with arithmetic.

The data are not corrected: they hold the printed numbers. Tests verify every numerical
inconsistency by calculation.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INCONSISTENCIES", "Inconsistency"]


@dataclass(frozen=True)
class Inconsistency:
    """One disagreement: its name, the tables (by their names here), and what disagrees."""

    name: str
    tables: tuple[str, ...]
    what: str


INCONSISTENCIES = (
    Inconsistency(
        "varying-tric",
        ("label-statistics", "varying-mean", "varying-median"),
        "Labels of TriC with varying sizes have the mean 32.11 and the variance 108.26; sets of "
        "6, 8, 10, 12 and 14 instances give 14.9 and 34.9. The errors of RNN (107.51) and GRU "
        "(105.26) agree with the printed variance, so this column comes from larger sets.",
    ),
    Inconsistency(
        "varying-synergy",
        ("label-statistics",),
        "Labels of US+S with varying sizes have the mean 50.56; five pairs, whichever they are, "
        "give 48.67 with the sizes stated, 35 standard errors less.",
    ),
    Inconsistency(
        "added-value-error-twice",
        ("added-value-error", "prefix-added-values"),
        "The errors of the capacity networks' added values on WTri and TriC are printed twice and "
        "differ in all six cases, on TriC by as much as 1.15 against 0.62.",
    ),
    Inconsistency(
        "product-sum",
        ("example-product",),
        "C-GRU's added values 2.85, 26.21 and 88.37 sum to 117.43; 117.68 is printed.",
    ),
    Inconsistency(
        "product-empty-set",
        ("example-product",),
        "The empty product is said to be 1, which would make 5 of the first added value of 6, 5, "
        "4; the expected value printed is 6, counted from 0.",
    ),
    Inconsistency(
        "attention-parameters",
        ("parameters",),
        "No sizes of A and B in the formula given for Attention make 17,794 parameters.",
    ),
    Inconsistency(
        "order-deviations",
        ("order-points", "order-statistics"),
        "The deviations printed for the five orders fit neither of the usual definitions: those of "
        "RNN and C-RNN divide by five, those of GRU and C-GRU by four.",
    ),
    Inconsistency(
        "order-lstm",
        ("order-points", "order-statistics"),
        "Capacity networks are said to be less sensitive to order in all three cases; the printed "
        "points of C-LSTM deviate more (0.030) than those of LSTM (0.028).",
    ),
    Inconsistency(
        "order-level",
        ("order-statistics", "main-mean", "main-deviation"),
        "Averaged over five orders, LSTM and GRU have 0.34 on US, three of the main table's "
        "deviations below its 0.43 and 0.47; instances are read in random order there, too.",
    ),
    Inconsistency(
        "search-against-main",
        ("hyper-parameters", "main-mean", "main-deviation"),
        "With the chosen settings, the search has validation errors far from the main table's test "
        "errors: C-LSTM on US+S 1.04 against 1.61 with a deviation of 0.03, DeepSet on WTri 3.60 "
        "against 2.90 with 0.15.",
    ),
    Inconsistency(
        "search-bold",
        ("hyper-parameters",),
        "For Set Transformer L on US+S the highlighted best result is 18.22; the lowest is 12.40.",
    ),
    Inconsistency(
        "training-bold",
        ("training-absolute",),
        "For US+S with 30k sets the highlighted best result is C-LSTM's 6.14; C-GRU (5.33) and "
        "LSTM (5.71) are lower.",
    ),
    Inconsistency(
        "training-caption",
        ("training-absolute",),
        "The caption speaks of three architectures and four training set sizes; the table has ten "
        "and three.",
    ),
    Inconsistency(
        "training-accuracy-order",
        ("training-absolute", "training-accuracy"),
        "With 30k sets of US+S, RNN has the higher accuracy (46.70 against 30.67 %) but the six "
        "times higher MSE (63.87 against 9.89): a mean of seeds, at least one of which failed.",
    ),
    Inconsistency(
        "histogram-wtri",
        ("label-histograms", "label-statistics"),
        "The histogram of WTri ends at 199 and lacks 13 of the 100,000 sets; the statistics are "
        "those of all of them.",
    ),
    Inconsistency(
        "tric-not-learned",
        ("main-mean", "main-median", "label-statistics"),
        "On TriC the medians of RNN, C-RNN and Attention (4.08 to 4.09) are the labels' variance "
        "(4.02): these networks predict the mean, so the printed means mix runs that learned with "
        "runs that did not.",
    ),
    Inconsistency(
        "equation-number",
        ("without-abs",),
        "The absolute value is said to be in equation 8; it is in equation 5.",
    ),
)
