"""
Reading an explanation
======================

The label of a set of digits is the sum of its *distinct* digits: a second 8 adds nothing. The
network sees images and sums, never the class of a digit.
"""

# %%
# Train on sets whose values are known
# ------------------------------------
#
# The task knows the exact added values, so we can check the explanation. Sets have one to eight
# digits. If all sets had eight, labels would determine only the sum of the values.

import matplotlib.pyplot as plt
import numpy as np

import capnets
from capnets.explain import Orders, explain, shapley_values
from capnets.explain.render.instances import Texts
from capnets.tasks import make, parse_task

counts = {"sets": 8000, "valid_sets": 500, "test_sets": 500}
spec = parse_task("US:digits", sizes=range(1, 9), **counts)
task = make(spec)
model = capnets.build("c-deepset", in_features=64, seed=0)
recipe = capnets.Recipe(epochs=12, batch_size=100)
capnets.fit(model, task.train, task.valid, recipe=recipe, seed=0)
error = np.abs(capnets.added_values(model, task.test) - task.expected(task.test))
print(f"mean error of added values on new sets: {error.mean():.2f}")

# %%
# One set, in the given order
# ---------------------------
#
# A value is what the digit added to those before it. The values sum to the prediction.

largest = int(np.argmax(task.test.sizes))
one = task.test[largest : largest + 1]
classes = task.classes(one)
values = capnets.added_values(model, one)
for digit, value, exact in zip(classes, values, task.expected(one), strict=True):
    print(f"digit {digit}: added {value:5.2f}, exact {exact:.0f}")

# %%
# The same set over many orders
# -----------------------------
#
# Of two equal digits, the first one gets the credit. Averaged over orders, they share it equally.

averaged = explain(model, one, orders=Orders.random(32))
_, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
averaged.plot(0, instances=Texts(tuple(f"digit {c}" for c in classes)), ax=axes)
plt.show()

# %%
# *Each of the two 8s gets about 4. The thin line at the end of a bar is the standard deviation of
# the value over orders: it is long for the 8s, whose values depend on which of them comes first.*

# %%
# Shapley values
# --------------
#
# The Shapley value of a digit is its mean contribution to all subsets of the others. Digits are
# removed from the set, not replaced by zeros.

shares = shapley_values(model, one)
for digit, value in zip(classes, shares.values, strict=True):
    print(f"digit {digit}: Shapley value {value:5.2f}")
