"""Configuration of the documentation: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx_gallery.sorting import FileNameSortKey

import capnets

HERE = Path(__file__).parent
ROOT = HERE.parent
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
    "sphinx-mathjax-offline",
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
# Links to files outside docs/: see `link_to_files`; a test checks that the files exist.
suppress_warnings = ["config.cache", "myst.xref_missing"]

sys.path.insert(0, str(HERE))
import command_line  # noqa: E402

command_line.write(HERE / "reference" / "command-line.md")


def link_to_files(_: Sphinx, page: str, source: list[str]) -> None:
    """Link examples to their tutorials, and other files outside docs/ to the repository.

    Where the repository is unknown, the latter are plain text.
    """
    folder = (HERE / page).parent
    source[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](/tutorials/\1.rst)", source[0])
    repository = os.environ.get("GITHUB_REPOSITORY")
    if not repository:
        return

    def address(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve()
        if HERE in path.parents or not path.is_file():
            return link[0]
        name = path.relative_to(ROOT).as_posix()
        return f"](https://github.com/{repository}/blob/main/{name}{link[2]})"

    source[0] = re.sub(r"\]\(((?:\.\./)+[\w./-]+)((?:#[\w-]+)?)\)", address, source[0])


def setup(app: Sphinx) -> None:
    """Link to files outside docs/ when a page is read."""
    app.connect("source-read", link_to_files)
