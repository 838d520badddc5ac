"""The paper's tables and figures: as data, as runs to make, and compared with what was found.

`published` holds the printed numbers, `cells` what one run is, `scales` how large it is made,
`tables` which runs stand behind which printed number, `plan` what a command has to run.

The paper is Zopf, "Effective and Interpretable Information Aggregation with Capacity Networks",
AAAI 2022. No file below draws on torch before something is trained.
"""
