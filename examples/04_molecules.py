"""
Molecules
=========

A molecule is a set of atoms with one measured property. Which atoms carry it?
"""

# %%
# Molecules with a property
# -------------------------
#
# The property is Crippen's estimate of log P, which is high for molecules that dissolve in fat
# rather than in water (without hydrogens). It is a sum over atoms, so the true share of every
# atom is known. The network sees only the sums.

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import _CalcCrippenContribs

import capnets

starts = ["C", "CC", "CCC", "CC(C)", "c1ccccc1", "C1CCCCC1", "FC", "ClCC"]
middles = ["C", "O", "N", "C(=O)", "C(=O)N", "CC", "S"]
ends = ["C", "CO", "CN", "CC(=O)O", "Cc1ccccc1", "CCCl", "CC#N"]
smiles = ["".join(parts) for parts in product(starts, middles, ends)]


def shares(text):
    return np.array([part for part, _ in _CalcCrippenContribs(Chem.MolFromSmiles(text))])


molecules = pd.DataFrame({"smiles": smiles, "logp": [shares(text).sum() for text in smiles]})
molecules = molecules.sample(frac=1, random_state=0, ignore_index=True)
train, test = molecules[:300], molecules[300:]
molecules.head(3)

# %%
# Atoms as instances
# ------------------
#
# ``encoder="atoms"`` describes every heavy atom of a SMILES by its element, bonds, ring, charge
# and neighbours. ``fragments`` and ``conformers`` are other instances. The label is a sum, and an
# empty molecule has the label 0: the aggregation is ``sum``, without a baseline.

columns = capnets.Columns(text="smiles", target="logp", encoder="atoms")
total = {"aggregation": "sum", "baseline": "none"}
model = capnets.SetRegressor("c-deepset", columns=columns, **total, members=1, random_state=0)
model.fit(train)
print("R² on new molecules:", round(model.score(test), 3))

# %%
# Are the values right?
# ---------------------
#
# Mostly. Labels of whole molecules cannot separate atoms that always occur together, such as the
# two oxygen atoms of an acid: labels determine only the sum of their values.

added = model.explain(test[["smiles"]], orders=8).values
known = np.concatenate([shares(text) for text in test.smiles])
print("correlation with the known shares:", np.corrcoef(added, known)[0, 1].round(2))
plt.scatter(known, added, s=8)
plt.axline((0, 0), slope=1, color="gray", lw=1)
plt.xlabel("known share of an atom")
plt.ylabel("added value")
plt.show()

# %%
# *One point per atom of the test molecules. On the gray line, values are exact.*

# %%
# From a file, with every atom coloured by its value on the page::
#
#     capnets train molecules.csv --smiles smiles --target logp -o runs/logp
#     capnets explain runs/logp molecules.csv --html atoms.html
