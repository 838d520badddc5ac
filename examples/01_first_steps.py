"""
First steps on a table
======================

Each row is an item of a basket. We know the worth of whole baskets and ask what each item
contributed to it.
"""

# %%
# A table with one row per instance
# ---------------------------------
#
# A tea is worth 2, a cup its price. The network is not told; it only sees the worth of whole
# baskets, which is repeated in every row of a basket.

import numpy as np
import pandas as pd

import capnets

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
# ``Columns`` names the set column and the target. Everything else is a feature. Categories are
# encoded and numbers standardised; the schema is saved with the network.

columns = capnets.Columns(set="basket", target="worth", categories="kind")
train = items[items.basket < 320]
test = items[items.basket >= 320]
regressor = capnets.SetRegressor("c-gru", columns=columns, members=1, random_state=0).fit(train)
print("R² on new baskets:", round(regressor.score(test), 3))

# %%
# What did each item add?
# -----------------------
#
# Added values are in the unit of the label. They sum to the prediction.

basket = test[test.basket == 320].drop(columns="worth")
added = basket.assign(added=regressor.added_values(basket).round(2))
print(added.to_string(index=False))
print("prediction:", regressor.predict(basket).round(2), "= sum of values")

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
