"""
First steps on a table
======================

Each row is an item of a basket. Only the worth of whole baskets is known. We train a network on
it and ask what each item added.
"""

# %%
# A table with one row per instance
# ---------------------------------
#
# The data are made up so that we can check the answer: a tea is worth 2, a cup its price. The
# network sees only the worth of a basket, which is repeated in every row of the basket.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import capnets
from capnets.explain.render.instances import Texts

rng = np.random.default_rng(0)
sizes = rng.integers(2, 7, size=400)
items = pd.DataFrame({"basket": np.repeat(np.arange(400), sizes)})
items["kind"] = rng.choice(["tea", "cup"], len(items))
items["price"] = rng.uniform(1, 9, len(items))
items["worth"] = items.price.where(items.kind == "cup", 2).groupby(items.basket).transform("sum")
items.head()

# %%
# Train
# -----
#
# ``Columns`` names the set column and the target. All other columns are features. Categories are
# encoded and numbers standardised; the schema is saved with the network. ``members=1`` trains a
# single network instead of an average of several.

columns = capnets.Columns(set="basket", target="worth", categories="kind")
train = items[items.basket < 320]
test = items[items.basket >= 320]
regressor = capnets.SetRegressor("c-deepset", columns=columns, members=1, random_state=0)
regressor.fit(train)
print("R² on new baskets:", round(regressor.score(test), 3))

# %%
# What did each item add?
# -----------------------
#
# Added values are in the unit of the label. The baseline, which is the prediction for an empty
# basket, and the added values sum to the prediction.

basket = test[test.basket == 320].drop(columns="worth")
added = basket.assign(added=regressor.added_values(basket).round(2))
print(added.to_string(index=False))
total = regressor.baseline_ + regressor.added_values(basket).sum()
print("prediction:", regressor.predict(basket).round(2), "baseline + values:", total.round(2))

# %%
# ``explain`` returns the same values with a figure, a table and a page. ``instances`` names the
# items in the figure.

names = Texts(tuple(f"{item.kind}, price {item.price:.2f}" for item in basket.itertuples()))
_, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
regressor.explain(basket).plot(0, instances=names, ax=axes)
plt.show()

# %%
# *Each bar starts where the one above it ends: the prediction grows by the price of a cup and by 2
# for a tea.*

# %%
# Save and load
# -------------
#
# A run is a folder with weights, configuration and checksums. ``capnets predict`` and
# ``capnets explain`` read it from the command line.

import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp()) / "baskets"
regressor.save(folder)
again = capnets.SetRegressor.load(folder)
assert np.array_equal(again.predict(basket), regressor.predict(basket))
