"""Configuration of the documentation: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

import capnets

HERE = Path(__file__).parent
# One thread: the examples train small networks, and the build runs beside other work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "capnets"
author = "capnets contributors"
copyright = f"2026, {author}"
release = version = capnets.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "tutorials/GALLERY_HEADER.rst"]
myst_enable_extensions = ["deflist", "dollarmath", "colon_fence"]
myst_heading_anchors = 3
smartquotes_action = "qe"  # quotes and ellipses: "--resume" keeps its two dashes

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1,
    "plot_gallery": True,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "capnets"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_show_sourcelink = False
html_extra_path = ["llms.txt"]
# Links to files outside docs/ lead to the repository; a test follows them.
suppress_warnings = ["config.cache", "myst.xref_missing"]

sys.path.insert(0, str(HERE))
import command_line  # noqa: E402

command_line.write(HERE / "reference" / "command-line.md")
