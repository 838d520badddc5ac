"""Published statistics and histograms of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capnets.paper.published.printed import rows

__all__ = ["HISTOGRAMS", "STATISTICS", "VARYING_SIZES"]

# The paper's word for sets of different sizes; a set has each of these with equal probability.
VARYING_SIZES = (6, 8, 10, 12, 14)

# Table 7, by task and size of the sets ("var" for varying sizes).
STATISTICS = rows(
    ("mean", "median", "variance", "stdev"),
    """
    US/10      29.34  30     39.88  6.32
    WTri/10    65.19  62    407.16 20.18
    US+S/10    49.80  50    169.87 13.03
    TriC/10    14.50  14      4.02  2.00
    WTri/20   175.42 170   1869.67 43.24
    WTri/30   330.77 323   4885.71 69.9
    WTri/40   530.93 521   9805.65 99.02
    US/var     28.58  29     60.73  7.79
    WTri/var   66.84  62   1068.33 32.69
    US+S/var   50.56  50    292.40 17.10
    TriC/var   32.11  29    108.26 10.40
    """,
)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(count) for count in text.split())


# Figure 5: how many of 100,000 sets of 10 have the label 0, 1, 2, …
HISTOGRAMS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "US": _counts(
            """
            0 0 0 1 0 1 12 10 22 27 101 121 208 234 348 617 748 1009 1317 1746 2047 2832
            3042 3818 4134 4734 4932 5850 5919 6006 6321 5937 5711 5494 5009 4402 4324
            3154 2670 2214 1702 1096 1045 468 469 148 0 0 0 0 0
            """
        ),
        "WTri": _counts(
            """
            0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 8 7 4 7 16 23 24 38 56 87 94 103 138 199 262
            296 354 473 532 594 699 727 867 963 1075 1236 1328 1264 1394 1610 1660 1730
            1904 1890 2096 2153 2108 2083 2311 2213 2298 2315 2251 2185 2314 2144 2227
            2234 2007 1972 2136 1922 1881 1873 1825 1691 1738 1575 1474 1516 1381 1315
            1332 1241 1128 1127 963 985 1002 960 841 921 765 673 715 615 587 628 555 539
            464 420 376 403 342 339 344 279 258 253 223 185 239 192 191 211 166 160 173
            145 155 145 123 115 113 87 94 108 74 87 76 64 62 61 52 41 60 33 26 22 26 29
            26 25 22 27 17 17 27 20 19 18 21 16 10 11 11 16 13 11 9 11 10 8 7 13 7 9 9 9
            5 4 14 2 3 4 3 1 0 4 0 3 2 2 2 1 1 4 2 5 2 0 1 3 0 0 0 0 0 1 0 0 3 0
            """
        ),
        "US+S": _counts(
            """
            0 0 0 0 0 1 2 10 10 14 24 25 69 32 99 140 49 183 168 107 182 271 183 341 411
            462 629 460 1196 887 1100 1698 1287 1467 1618 1592 1598 1910 1588 2119 2008
            1754 2471 2351 2872 3167 2604 3993 2754 3604 3202 3380 2756 3575 2159 2520
            2916 1402 2595 1951 2366 1805 2108 1795 1831 1938 2113 1757 1458 914 893 585
            958 304 932 0 168 159 181 456 179 459 148 149 178 172 0 0 0 0 0 0 0 0 0 28 0
            0 0 0 0
            """
        ),
    }
)
