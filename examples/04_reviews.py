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
# Each row is a document. The reviews here are made up from twelve remarks with a rating of their
# own, so that we can check the answer; a review is rated by the mean of its remarks.

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
chosen = [rng.choice(list(REMARKS), size=rng.integers(2, 6), replace=False) for _ in range(400)]
reviews = pd.DataFrame(
    {
        "review": [" ".join(remarks) for remarks in chosen],
        "stars": [np.mean([REMARKS[remark] for remark in remarks]) for remarks in chosen],
    }
)
reviews.head(3)

# %%
# Learn from ratings of whole reviews
# -----------------------------------
#
# Name the text column. Every document is split into sentences, and a sentence encoder turns each
# of them into a vector. A rating behaves like a mean: a longer review is not a better one. So the
# prediction is a mean over sentences that starts from a baseline, the rating of an average review.

columns = capnets.Columns(text="review", target="stars")
model = capnets.SetRegressor(
    "c-gru", columns=columns, aggregation="mean", baseline="learned", members=1, random_state=0
).fit(reviews[:320])
print("R² on new reviews:", round(model.score(reviews[320:]), 3))

# %%
# Which sentence moved the rating?
# --------------------------------
#
# Values are stars. The baseline and the values sum to the prediction.

new = pd.DataFrame(
    {"review": ["The colour is lovely. I bought it for my sister. It shrank in the first wash."]}
)
explained = model.explain(new, orders=32)
_, axes = plt.subplots(figsize=(7, 2), layout="constrained")
explained.plot(0, ax=axes)
plt.show()
print("baseline", model.baseline_.round(2), "prediction", model.predict(new).round(2))

# %%
# The command line does the same with a file, and writes a page with coloured sentences::
#
#     capnets train reviews.csv --text-column review --target stars -o runs/reviews
#     capnets explain runs/reviews reviews.csv --html reviews.html
