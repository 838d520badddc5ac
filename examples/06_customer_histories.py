"""
Customer histories
==================

Each row is a purchase of a customer. The label is what the customer spends in the following
year. Purchases have an order, and their effect depends on what came before.
"""

# %%
# Events in time
# --------------
#
# The data are made up: every purchase adds its amount to next year's spending, and a *return* takes
# back half of the purchase before it. Only the sum per customer is known.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import capnets
from capnets.explain.render.instances import Texts

rng = np.random.default_rng(1)
rows = []
for customer in range(1500):
    last = 0.0
    worth = 0.0
    for day in np.sort(rng.integers(0, 365, size=rng.integers(1, 9))):
        returned = bool(rng.random() < 0.3)
        amount = rng.uniform(5, 50)
        worth += -0.5 * last if returned else amount
        last = 0.0 if returned else amount
        kind = "return" if returned else "purchase"
        rows.append({"customer": customer, "day": day, "kind": kind, "amount": amount})
    for row in rows[::-1]:
        if row["customer"] != customer:
            break
        row["next_year"] = worth
events = pd.DataFrame(rows)
events.head()

# %%
# Name the order column
# ---------------------
#
# With ``order``, the network reads events by day, in training and in prediction. A value is then
# what an event added to all events before it.

roles = {"set": "customer", "target": "next_year", "categories": "kind", "order": "day"}
columns = capnets.Columns(**roles)
train, test = events[events.customer < 1200], events[events.customer >= 1200]
model = capnets.SetRegressor("c-gru", columns=columns, members=1, random_state=0)
model.fit(train)
print("R² on new customers:", round(model.score(test), 3))

# %%
# A return takes back half of the purchase before it
# --------------------------------------------------
#
# We look at the test customer with the most returns that follow a purchase.

follows = (test.kind.shift() == "purchase") & (test.customer.shift() == test.customer)
chosen = test[follows & (test.kind == "return")].customer.mode()[0]
shown = test[test.customer == chosen].drop(columns="next_year")
print(shown.assign(added=model.added_values(shown).round(1)).to_string(index=False))

# %%
# The same as a figure, with a name for each event:

names = Texts(tuple(f"{e.kind}, day {e.day}" for e in shown.itertuples()))
_, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
model.explain(shown).plot(0, instances=names, ax=axes)
plt.show()

# %%
# *From top to bottom in the order of the days: blue bars raise the prediction, orange bars lower
# it. A return takes back half of the bar above it.*
