"""
Slides
======

A slide is a set of patches with one diagnosis. Which patches explain it, and where are they?
"""

# %%
# One file per slide
# ------------------
#
# A feature extractor writes one file per slide, with a vector and a position for every patch.
# These slides are made up: half of them have a tumour, a round region whose patches differ in two
# of eight features. Training uses only the diagnosis of the slide.

import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import capnets
from capnets.explain import value_maps
from capnets.ingest import FeatureFolder, read_folder

GRID, SIDE = 10, 256
rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
(folder / "features").mkdir()
axis = np.arange(GRID)
places = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
rows, tumours = [], {}
for number in range(130):
    size = 50 + 7 * number % 41
    tissue = places[np.sort(rng.choice(len(places), size, replace=False))]
    features = rng.normal(size=(len(tissue), 8))
    ill = number % 2
    distance = np.linalg.norm(tissue - rng.uniform(2, 8, 2), axis=1)
    inside = distance < 2.2 * ill
    features[inside, :2] += 2
    name = f"slide-{number:03d}"
    with h5py.File(folder / "features" / f"{name}.h5", "w") as file:
        file["features"] = features.astype(np.float16)
        file["coords"] = tissue * SIDE
        file["coords"].attrs["patch_size_level0"] = SIDE
    rows.append({"slide": name, "diagnosis": "tumour" if ill else "benign"})
    tumours[name] = inside
table = pd.DataFrame(rows)
table.head(3)

# %%
# Train
# -----
#
# ``FeatureFolder`` joins the files with the table of diagnoses. The vectors are converted once and
# then memory-mapped, so slides need not fit into memory.

columns = capnets.Columns(set="slide", target="diagnosis")
files = folder / "features"
train = FeatureFolder(files, table[:100], pool=folder / "train", partial=True)
test = FeatureFolder(files, table[100:], pool=folder / "test", partial=True)
options = {"aggregation": "sum", "members": 1, "random_state": 0}
model = capnets.SetClassifier("c-deepset", columns=columns, **options).fit(train)
print("accuracy on new slides:", round(model.score(test), 3))

# %%
# A map of the added values
# -------------------------
#
# Values are logits, averaged over orders. The sums of regions that divide a slide add up to the
# prediction minus the baseline.

data = read_folder(test, columns, classify=True)
explained = model.explain(test, orders=4)
found = value_maps(explained, data.sets, data.parts)
maps = {one.name: one for one in found}
shown = next(one for name, one in maps.items() if tumours[name].any())

_, axes = plt.subplots(figsize=(6.5, 5.5), layout="compressed")
shown.plot(ax=axes)
for corner in shown.coords[tumours[shown.name]]:
    axes.add_patch(plt.Rectangle(corner, SIDE, SIDE, fill=False))
plt.show()

# %%
# *Blue patches raise the log-odds of a tumour, orange ones lower them. Numbers are the sums of nine
# regions. Black outlines mark the patches of the tumour, which were not known in training.*

# %%
# Are the values right?
# ---------------------
#
# A patch of the tumour should have a higher value than the other patches of its slide.

ranked = []
for name, one in maps.items():
    inside = tumours[name]
    if inside.any():
        ranked.append((one.values[inside][:, None] > one.values[~inside]).mean())
print("share of pairs ranked right:", np.mean(ranked).round(3))

# %%
# The command line does the same. The maps are pictures, and GeoJSON for QuPath::
#
#     capnets train slides.csv --features features --set-column slide --target diagnosis -o run
#     capnets explain run slides.csv --features features --map maps
