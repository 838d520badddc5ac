"""Published hyper-parameter search and the parameter counts of the networks it settled on."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capnets.paper.published.printed import numbers

__all__ = ["GRID", "GRID_RATES", "GRID_TASKS", "PARAMETERS", "GridRow"]

# Model, layers of encoder and decoder (None: the Set Transformers have no such choice), hidden.
GridRow = tuple[str, int | None, int]

GRID_TASKS = ("US", "WTri", "US+S")
GRID_RATES = (0.01, 0.001, 0.0001)

_GRID = """
    deepset           2  8 10.53 4.90 10.45 40.09 33.65 101.69 111.83 43.50 112.10
    deepset           2 16  6.43 2.73  3.35 19.06 22.66  52.38  52.13 16.07  29.37
    deepset           2 32  2.35 2.19  3.10 19.80 19.15  27.72  15.31 14.14  18.34
    deepset           3  8 13.12 3.11  3.84  7.94 11.23  26.10 157.40     -  88.05
    deepset           3 16  0.39 0.30  3.80  2.97  5.19  15.30   5.56     -  29.25
    deepset           3 32  0.53 0.27  0.94  3.20  3.60  11.86   8.68  2.79   7.16
    attention         2  8     - 7.20  9.54     - 28.08  52.37      - 40.34  78.56
    attention         2 16     - 0.88  2.89     -  5.43  12.72      -  6.38  37.33
    attention         2 32     - 0.52  1.25     -  3.76   7.95      -  3.60  11.97
    attention         3  8     -    -     -     -     -      -      -     -      -
    attention         3 16     - 0.21  1.77     -  2.16   5.93      -  3.80  44.75
    attention         3 32     - 0.22  0.46     -  0.98   4.12      -  1.77  28.30
    c-rnn             2  8     - 5.63 10.49     - 36.61  54.72      - 83.70  90.56
    c-rnn             2 16     - 1.38  4.16     -  5.42  26.88      - 18.34  63.88
    c-rnn             2 32     - 0.80  1.63     -  2.60  10.22      -  6.58  15.37
    c-rnn             3  8     - 4.21  8.59     - 25.26  36.73      - 74.67  91.49
    c-rnn             3 16     - 0.48  2.43     -  1.93  14.38      - 13.47  53.18
    c-rnn             3 32     - 0.47  0.79     -  0.57   6.48      -  2.86  11.99
    c-lstm            2  8     - 1.39  2.97 14.09 12.09  27.01      - 31.68  67.64
    c-lstm            2 16     - 0.48  1.41     -  5.10  14.16      -  3.02   7.97
    c-lstm            2 32     - 0.44  0.92     -  2.38   8.21      -  2.65   5.52
    c-lstm            3  8     - 2.22  3.95     -  5.82  22.62      - 26.34  53.95
    c-lstm            3 16     - 0.20  1.38 39.67  1.12  13.08      -  1.73   8.24
    c-lstm            3 32     - 0.23  0.50     -  0.52   5.02      -  1.04   3.80
    c-gru             2  8     - 1.53  3.86     - 15.67  28.21      - 29.71  66.70
    c-gru             2 16     - 0.58  1.25     -  3.59  11.17      -  3.99   8.05
    c-gru             2 32     - 0.47  0.63     -  3.40   8.37      -  3.18   4.87
    c-gru             3  8     - 1.47  2.04     -  9.84  20.02      - 20.28  37.06
    c-gru             3 16     - 0.29  0.71     -  0.84   7.32      -  1.39   4.85
    c-gru             3 32     - 0.29  0.50     -  0.38   4.05      -  1.46   2.83
    rnn               2  8     - 2.55 16.48     - 38.75 111.25      - 44.47 113.77
    rnn               2 16     - 2.10  3.60     - 15.21  64.85      - 12.89  57.02
    rnn               2 32     - 1.75  1.99     -  5.98  23.85      - 12.10  12.28
    rnn               3  8     -    -     -     -     -      -      -     -      -
    rnn               3 16     - 0.75  2.50     -  9.97  56.01      -  5.28  45.47
    rnn               3 32     - 1.06  0.76     -  1.88  15.88      -  5.95   4.40
    lstm              2  8     - 0.83  2.34     - 12.32  44.67      - 16.23  32.87
    lstm              2 16     - 0.60  0.77     -  3.85  17.51      -  3.87   4.98
    lstm              2 32     - 0.57  0.94     -  3.55   9.21      -  3.09   6.78
    lstm              3  8     -    -     -     -  7.23      -      -     -      -
    lstm              3 16     - 0.44  0.50     -  2.05  15.69      -  2.25   3.22
    lstm              3 32     - 0.31  0.57     -  0.74   5.10      -  2.27   2.98
    gru               2  8     - 0.71  1.43     - 11.22  26.02      - 12.66  20.74
    gru               2 16     - 0.61  0.74     -  4.46  13.94      -  3.23   4.37
    gru               2 32     - 0.52  0.60     -  2.26   8.75      -  2.82   3.19
    gru               3  8     -    -     - 50.76     -      -      -     -      -
    gru               3 16     - 0.48  0.53     -  2.11   7.46      -  2.49   3.19
    gru               3 32     - 0.38  0.54     -  0.65   4.25      -  2.57   2.67
    set-transformer   -  8  4.29 3.43  4.95 33.80 27.07  50.27  25.24 20.54  25.74
    set-transformer   - 16  2.08 2.69  3.79 18.62 16.62  27.55  21.58 16.99  19.68
    set-transformer   - 32  2.89 1.91  2.73 28.89  8.40  22.12  16.07 11.98  14.34
    set-transformer-l -  8  2.68 2.42  3.08 15.45 17.19  35.02  16.44 18.22  19.41
    set-transformer-l - 16  1.85 1.99  2.54 17.09  8.00  27.06  13.53 12.69  13.41
    set-transformer-l - 32  2.20 1.79  2.12 25.81  2.38  13.51  13.19 12.40  13.26
"""


def _grid() -> Mapping[GridRow, Mapping[tuple[str, float], float | None]]:
    columns = [(task, rate) for task in GRID_TASKS for rate in GRID_RATES]
    grid: dict[GridRow, Mapping[tuple[str, float], float | None]] = {}
    for line in _GRID.split("\n"):
        if line:
            model, layers, hidden, *printed = line.split()
            row = (model, None if layers == "-" else int(layers), int(hidden))
            grid[row] = MappingProxyType(dict(zip(columns, numbers(printed), strict=True)))
    return MappingProxyType(grid)


# Table 10: validation MSE by (task, learning rate); None where the paper prints a dash,
# which means that the network did not converge.
GRID = _grid()

# Table 6: trainable parameters with 64 input features and 32 hidden dimensions.
PARAMETERS: Mapping[str, int] = MappingProxyType(
    {
        "rnn": 15_681,
        "lstm": 22_049,
        "gru": 19_937,
        "c-rnn": 15_681,
        "c-lstm": 22_049,
        "c-gru": 19_937,
        "deepset": 13_601,
        "attention": 17_794,
        "set-transformer": 15_809,
        "set-transformer-l": 34_753,
    }
)
