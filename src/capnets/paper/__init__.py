"""The paper's tables and figures: as data, as runs to make, and compared with what was found.

`published` holds the printed numbers, `jobs` what one run is, `scales` how large it is made,
`tables` which runs stand behind which printed number, `plan` what a command has to run; `results`
is a folder of records, `work` makes one of them, `workers` and `cluster` are where that is done,
`runner` hands it out; `compare` puts ours beside the printed numbers, `claims` and
`beyond` count.

The paper is Zopf, "Effective and Interpretable Information Aggregation with Capacity Networks",
AAAI 2022. Only `work` draws on torch, and only workers and runners import it.
"""
