"""
Reviews
=======

A review has one rating and several sentences. Which sentence raised the rating, and which one
lowered it?
"""

# %%
# Documents and ratings
# ---------------------
#
# Each row is a document. These reviews are made up, so that we can check the answer: a review
# consists of some of twelve remarks, and its rating is the mean of their ratings.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import capnets

REMARKS = {
    "The fabric feels wonderful.": 5,
    "I wear it every day and love it.": 5,
    "It fits perfectly.": 5,
    "The colour is lovely.": 4,
    "Shipping was quick.": 4,
    "I bought it for my sister.": 3,
    "It came in a brown box.": 3,
    "The sleeves are a little long.": 2,
    "It shrank in the first wash.": 1,
    "The zip broke after two days.": 1,
    "A terrible waste of money.": 1,
    "I sent it back at once.": 1,
}
rng = np.random.default_rng(0)
sizes = rng.integers(2, 6, size=400)
chosen = [rng.choice(list(REMARKS), size=size, replace=False) for size in sizes]
stars = [np.mean([REMARKS[remark] for remark in remarks]) for remarks in chosen]
reviews = pd.DataFrame({"review": [" ".join(remarks) for remarks in chosen], "stars": stars})
reviews.head(3)

# %%
# Learn from ratings of whole reviews
# -----------------------------------
#
# Name the text column. Every document is split into sentences, and a sentence encoder turns each
# sentence into a vector. A rating behaves like a mean: a longer review is not a better one. The
# prediction is therefore a weighted mean over sentences and a learned baseline.

columns = capnets.Columns(text="review", target="stars")
mean = {"aggregation": "mean", "baseline": "learned"}
model = capnets.SetRegressor("c-gru", columns=columns, **mean, members=1, random_state=0)
model.fit(reviews[:320])
print("R² on new reviews:", round(model.score(reviews[320:]), 3))

# %%
# Which sentence moved the rating?
# --------------------------------
#
# Values are in stars. The baseline and the values sum to the prediction.

text = "The colour is lovely. I bought it for my sister. It shrank in the first wash."
new = pd.DataFrame({"review": [text]})
print("baseline", model.baseline_.round(2), "prediction", model.predict(new).round(2))
explained = model.explain(new, orders=32)
_, axes = plt.subplots(figsize=(7, 2), layout="constrained")
explained.plot(0, ax=axes)
plt.show()

# %%
# *Bars to the right raise the rating, the orange bar to the left lowers it. The thin lines show the
# standard deviation over 32 orders of the sentences.*

# %%
# The command line does the same with a file, and writes a page with coloured sentences::
#
#     capnets train reviews.csv --text-column review --target stars -o runs/reviews
#     capnets explain runs/reviews reviews.csv --html reviews.html
