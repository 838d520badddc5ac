"""Explanations as people see them: a page, a table in the terminal, a figure for a paper."""
