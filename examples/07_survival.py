"""
Survival
========

Patients are followed until an event or until they leave the study. Each patient has a set of
measurements. Which measurement raises the hazard?
"""

# %%
# Times and events
# ----------------
#
# In this made-up study a patient has two to six lesions. Every lesion adds its size to the
# log-hazard. Some patients leave before the event: their times are censored.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import capnets
from capnets.estimators import SetSurvival

rng = np.random.default_rng(0)
patients = 500
lesions = pd.DataFrame({"patient": np.repeat(np.arange(patients), rng.integers(2, 7, patients))})
lesions["size"] = rng.gamma(2.0, 0.4, len(lesions))
lesions["age"] = rng.normal(60, 8, len(lesions))  # of no effect here
hazard = np.exp(lesions.groupby("patient")["size"].sum() - 3)
time = rng.exponential(1 / hazard)
leaves = rng.exponential(2 * time.mean(), patients)
outcome = np.column_stack([np.minimum(time, leaves), time <= leaves])
print(f"{outcome[:, 1].mean():.0%} of the patients had the event")

# %%
# Fit
# ---
#
# The label of a set is a time and whether the event happened. The loss is Cox's partial
# likelihood. ``score`` is the concordance index: the share of pairs of patients in which the one
# with the higher predicted hazard has the event first. A guess scores 0.5.

train = lesions.patient < 400
columns = capnets.Columns(set="patient")
model = SetSurvival("c-gru", columns=columns, members=1, random_state=0)
model.fit(lesions[train], outcome[:400])
print("concordance on new patients:", round(model.score(lesions[~train], outcome[400:]), 3))

# %%
# Added log-hazards
# -----------------
#
# The value of a lesion is what it adds to the log-hazard. It should rise by 1 per unit of size.

added = model.added_values(lesions[~train])
slope, _ = np.polyfit(lesions["size"][~train], added, 1)
print("added log-hazard per unit of size:", round(slope, 2))
plt.scatter(lesions["size"][~train], added, s=8)
plt.xlabel("size of a lesion")
plt.ylabel("added log-hazard")
plt.show()

# %%
# *One point per lesion of the test patients: larger lesions add more to the log-hazard.*
