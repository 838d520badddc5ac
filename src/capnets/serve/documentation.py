"""Render the OpenAPI description as a page without scripts."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from capnets.serve.gate import CLOSED

__all__ = ["documentation_page"]

STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font-family: ui-monospace, monospace } pre { overflow: auto; padding: .5rem 1rem }
pre, summary { background: #8882; border-radius: .3rem } summary { padding: .2rem 1rem }
:root { color-scheme: light dark }
"""
TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ info.title }} {{ info.version }}</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>{{ style }}</style></head><body>
<h1>{{ info.title }} {{ info.version }}</h1>
<p>{{ info.description }} The same as JSON: <a href="/openapi.json">openapi.json</a>.</p>
{% for path, methods in paths.items() %}{% for method, call in methods.items() %}
<section><h2><code>{{ method | upper }} {{ path }}</code></h2>
<p>{{ call.description }}</p>
{% if "requestBody" in call %}{% set body = call.requestBody.content["application/json"].schema %}
<details><summary>Body</summary><pre>{{ shown(body) }}</pre></details>{% endif %}
</section>
{% endfor %}{% endfor %}
</body></html>
"""


def documentation_page(description: dict[str, Any]) -> tuple[str, str]:
    """Return an HTML page about an OpenAPI description, and its content-security policy."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    schemas = description.get("components", {}).get("schemas", {})

    def shown(body: dict[str, Any]) -> str:
        name = body.get("$ref", "").rpartition("/")[2]
        return json.dumps(schemas.get(name, body), indent=2)

    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(TEMPLATE)
    text = template.render(
        info=description["info"], paths=description["paths"], style=Markup(STYLE), shown=shown
    )
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return text, f"{CLOSED}; style-src 'sha256-{digest}'; img-src data:"
