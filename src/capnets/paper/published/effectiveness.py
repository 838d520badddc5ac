"""Published errors of the networks: how well they predict the labels of sets."""

from __future__ import annotations

from capnets.paper.published.printed import rows

__all__ = [
    "LARGER_SETS",
    "MAIN_MEAN",
    "MAIN_MEDIAN",
    "MAIN_STDEV",
    "TRAINING_ACCURACY",
    "TRAINING_RELATIVE",
    "TRAINING_SIZES",
    "VARYING_MEAN",
    "VARYING_MEDIAN",
    "WITHOUT_ABS",
]

FOUR_TASKS = ("US", "WTri", "US+S", "TriC")
# Columns of the three tables about the amount of training data: (task, training sets).
TASKS_BY_SETS = tuple(
    (task, sets) for task in ("US", "WTri", "US+S") for sets in (30_000, 50_000, 70_000)
)

# Table 1: mean test MSE of three seeds.
MAIN_MEAN = rows(
    ("UC", "US", "WTri", "US+S", "TriC", "Sent"),
    """
    rnn               0.56 0.91 1.73  6.76 4.09 1.98
    lstm              0.22 0.43 0.87  2.68 1.01 1.58
    gru               0.21 0.47 0.86  2.44 3.02 0.74
    c-rnn             0.22 0.43 0.57  2.57 3.17 0.70
    c-lstm            0.25 0.27 0.59  1.61 1.02 0.67
    c-gru             0.18 0.25 0.48  1.63 2.13 0.71
    deepset           0.51 0.27 2.90  2.19 2.03 0.79
    attention         0.73 0.51 1.01  2.44 3.12 1.98
    set-transformer   0.30 1.91 8.72 14.74 1.22 0.92
    set-transformer-l 0.28 1.72 3.01 12.61 1.19 0.91
    """,
)

# Table 8: median of the same three runs; UC and Sent are not given.
MAIN_MEDIAN = rows(
    FOUR_TASKS,
    """
    rnn               0.91 1.65  7.04 4.09
    lstm              0.41 0.87  2.80 1.01
    gru               0.48 0.89  2.56 3.98
    c-rnn             0.44 0.61  2.61 4.08
    c-lstm            0.27 0.56  1.62 1.01
    c-gru             0.27 0.48  1.93 1.26
    deepset           0.24 2.87  2.43 1.02
    attention         0.53 0.94  3.01 4.08
    set-transformer   1.93 8.39 15.15 1.21
    set-transformer-l 1.66 2.80 11.31 1.19
    """,
)

# Table 9: deviation of the same three runs (dividing by three, see the tests).
MAIN_STDEV = rows(
    FOUR_TASKS,
    """
    rnn               0.10 0.21 0.64 0.00
    lstm              0.03 0.21 0.18 0.01
    gru               0.04 0.24 0.29 1.44
    c-rnn             0.03 0.07 0.21 1.30
    c-lstm            0.01 0.13 0.03 0.02
    c-gru             0.06 0.08 0.49 1.39
    deepset           0.06 0.15 0.52 1.47
    attention         0.20 0.21 0.96 1.36
    set-transformer   0.09 1.44 1.25 0.02
    set-transformer-l 0.11 0.61 2.47 0.02
    """,
)

# Figure 2: test MSE on WTri by set size.
LARGER_SETS = rows(
    (10, 20, 30, 40),
    """
    rnn                 1.726  21.504 166.297 632.863
    lstm                0.868   7.238   14.28  27.029
    gru                 0.858   4.713  12.221  28.036
    c-rnn               0.573   5.462  22.803  53.555
    c-lstm              0.591   1.597    4.68  10.892
    c-gru               0.484   1.513    3.21    8.85
    deepset             2.896  18.641   51.49  94.563
    attention           1.009   7.417  25.014  49.747
    set-transformer     8.717  37.139  95.767 179.005
    set-transformer-l   3.006  10.117  26.267  38.221
    """,
)

# Table 14: test MSE by number of training sets.
TRAINING_SIZES = rows(
    TASKS_BY_SETS,
    """
    rnn               1.42 1.01 1.04 11.68  5.91  3.02  63.87  8.27  7.88
    lstm              0.84 0.60 0.42  5.05  2.41  1.27   5.71  3.55  2.58
    gru               0.76 0.50 0.40  4.18  1.95  1.01   6.19  4.01  2.82
    c-rnn             0.98 0.55 0.50  5.47  2.14  0.91   9.89  4.60  3.07
    c-lstm            0.70 0.37 0.29  4.33  1.60  0.82   6.14  2.75  1.73
    c-gru             0.76 0.42 0.45  3.73  1.37  0.66   5.33  2.89  1.94
    deepset           1.54 9.84 0.35 10.85  6.20  4.24 111.38  6.03 55.68
    attention         1.88 0.42 0.35  5.56  2.70  2.18  65.61  4.42  2.24
    set-transformer   4.61 3.30 2.50 34.03 19.08 12.53  27.07 20.39 17.28
    set-transformer-l 3.50 2.62 1.95 20.81 13.47  9.36  18.63 17.17 14.97
    """,
)

# Table 2: the same, capacity networks printed as the difference from their counterpart.
TRAINING_RELATIVE = rows(
    TASKS_BY_SETS,
    """
    rnn     1.42  1.01  1.04 11.68  5.91  3.02  63.87  8.27  7.88
    c-rnn  -0.45 -0.46 -0.54 -6.21 -3.78 -2.11 -53.98 -3.67 -4.81
    lstm    0.84  0.60  0.42  5.05  2.41  1.27   5.71  3.55  2.58
    c-lstm -0.14 -0.24 -0.12 -0.73 -0.80 -0.45  +0.43 -0.80 -0.85
    gru     0.76  0.50  0.40  4.18  1.95  1.01   6.19  4.01  2.82
    c-gru   0.00 -0.07 +0.05 -0.45 -0.59 -0.35  -0.86 -1.12 -0.88
    """,
)

# Table 17: percentage of sets whose rounded prediction is the label.
TRAINING_ACCURACY = rows(
    TASKS_BY_SETS,
    """
    rnn   60.61 68.93 73.22 17.01 29.06 40.13 46.70 54.52 53.71
    c-rnn 71.42 92.31 96.13 33.04 71.37 74.30 30.67 58.74 76.51
    """,
)

# Table 11: test MSE of capacity networks whose added values may be negative.
WITHOUT_ABS = rows(
    FOUR_TASKS,
    """
    c-rnn  0.40 0.79 2.12 0.98
    c-lstm 0.22 0.66 1.28 1.03
    c-gru  0.21 0.75 1.05 1.02
    """,
)

# Table 12: mean test MSE when sets hold 6, 8, 10, 12 or 14 instances.
VARYING_MEAN = rows(
    FOUR_TASKS,
    """
    rnn    1.31 3.55 9.12 107.51
    lstm   0.42 2.14 2.76   2.16
    gru    0.43 1.01 2.45 105.26
    c-rnn  0.36 0.98 2.92  38.07
    c-lstm 0.25 0.77 1.56   1.89
    c-gru  0.29 0.40 1.75   1.57
    """,
)

# Table 13: median of the same runs.
VARYING_MEDIAN = rows(
    FOUR_TASKS,
    """
    rnn    1.20 4.06 9.51 107.51
    lstm   0.40 1.59 2.77   2.11
    gru    0.40 0.98 2.56 105.26
    c-rnn  0.39 1.03 3.01   3.44
    c-lstm 0.26 0.69 1.52   1.82
    c-gru  0.28 0.40 1.78   1.49
    """,
)
