"""
Reading an explanation
======================

The label of a set of digits is the sum of its *distinct* digits. A second 8 adds nothing. The
network never sees the digits' classes, only sums.
"""

# %%
# Train on sets whose values are known
# ------------------------------------
#
# The task knows the exact added values, so we can check the explanation. Sets have one to eight
# digits. If all had eight, labels would determine the sum of the values, but not the single ones.

import matplotlib.pyplot as plt
import numpy as np

import capnets
from capnets.explain import Orders, explain, shapley_values
from capnets.tasks import make, parse_task

spec = parse_task("US:digits", sizes=range(1, 9), sets=8000, valid_sets=500, test_sets=500)
task = make(spec)
model = capnets.build("c-deepset", in_features=64, seed=0)
recipe = capnets.Recipe(epochs=12, batch_size=100)
capnets.fit(model, task.train, task.valid, recipe=recipe, seed=0)
error = np.abs(capnets.added_values(model, task.test) - task.expected(task.test)).mean()
print(f"mean error of added values on new sets: {error:.2f}")

# %%
# One set, in the given order
# ---------------------------
#
# A value is what the digit added to those before it. Values sum to the prediction.

largest = int(np.argmax(task.test.sizes))
one = task.test[largest : largest + 1]
classes = task.classes(one)
for digit, value, exact in zip(
    classes, capnets.added_values(model, one), task.expected(one), strict=True
):
    print(f"digit {digit}: added {value:5.2f}, exact {exact:.0f}")

# %%
# The same set over many orders
# -----------------------------
#
# Of two equal digits the first one gets the credit. Averaged over orders they share it. The line at
# the end of a bar is the standard deviation over orders: long where it matters what came before.

averaged = explain(model, one, orders=Orders.random(32))
_, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
averaged.plot(0, ax=axes)
plt.show()

# %%
# Shapley values
# --------------
#
# They compare the predictions of all subsets, with real removal, and do not depend on the order.

shares = shapley_values(model, one)
for digit, value in zip(classes, shares.values, strict=True):
    print(f"digit {digit}: Shapley value {value:5.2f}")
