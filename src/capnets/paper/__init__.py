"""Reproduce the paper: its tables and figures as data, the runs behind them, and comparisons.

`published` holds the printed numbers, `jobs` defines a run, `scales` its size, `tables` maps
printed numbers to runs, and `plan` lists the runs of a command. `results` is a folder of records;
`execute` runs a job, `pool` and `cluster` provide workers, and `scheduler` assigns jobs to them.
`compare` compares results with the printed numbers; `claims` and `beyond` count statements.

The paper is Zopf, "Effective and Interpretable Information Aggregation with Capacity Networks",
AAAI 2022. Only `execute` depends on torch, and only workers and the scheduler import it.
"""
