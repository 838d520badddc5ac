"""Render explanations: as a page, a table in the terminal, or a figure."""
