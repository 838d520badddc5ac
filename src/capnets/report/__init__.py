"""Records become pages, tables and plots."""
