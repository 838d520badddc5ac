"""List of all trials, best first: `trials.jsonl` for programs, `trials.html` for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from capnets.files import write_text
from capnets.learn.folds import FOLDS

if TYPE_CHECKING:
    import optuna

__all__ = ["write_page"]


def write_page(study: optuna.Study, folder: Path) -> None:
    """Write the settings and losses of all trials, as lines and as a page."""
    from jinja2 import Environment

    complete = [t for t in study.get_trials(deepcopy=False) if t.value is not None]
    rows = [
        {"trial": t.number, "loss": t.value, **t.params}
        for t in sorted(complete, key=lambda t: (t.value, t.number))
    ]
    write_text(folder / "trials.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    page = Environment(autoescape=True).from_string(PAGE)
    worst = max(r["loss"] for r in rows)
    write_text(folder / "trials.html", page.render(rows=rows, worst=worst or 1.0, folds=FOLDS))


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Trials</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; }
table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right }
tr:first-child td { font-weight: bold } th { border-bottom: 1px solid }
.bar { display: inline-block; height: .7em; background: #4477aa }
</style>
<h1>{{ rows|length }} trials, the best first</h1>
<p>The loss is the mean over {{ folds }} folds of whole sets.</p>
<table><thead><tr>{% for name in rows[0] %}<th>{{ name }}</th>{% endfor %}<th></th></tr></thead>
<tbody>
{% for row in rows %}<tr>{% for value in row.values() %}
<td>{{ "%.4g"|format(value) if value is number else value }}</td>{% endfor %}
<td style="text-align:left"><span class="bar" style="width:{{ 120 * row.loss / worst }}px"></span>
</td></tr>{% endfor %}
</tbody></table></html>
"""
