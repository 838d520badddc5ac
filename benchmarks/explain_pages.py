"""Write the explanation pages of three runs: images, sentences, features.

    CAPNETS_DATA=… python benchmarks/explain_pages.py   # writes results/explain/pages/*.html, *.png

Images: Unique Sum with Synergy on digits. Sentences: reviews of clothes and their rating.
Features: molecules, sets of atoms, and their affinity to thrombin. The true values of the last two
are unknown.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from explain_networks import FOLDER, trained

from capnets.estimators import SetRegressor
from capnets.files import write_text, writing
from capnets.ingest import Columns
from capnets.pages import explain_run
from capnets.runs import Run
from capnets.tasks.sentences import split_sentences

OUT = Path("results/explain/pages")


def pictures() -> str:
    """Three test sets, averaged over orders."""
    return explain_run(trained("US+S", "c-gru").folder, sets="0,5,7", orders=32).to_html()


def sentences() -> str:
    """Explain the first new reviews of four to six sentences, averaged over orders."""
    data = Path(os.environ["CAPNETS_DATA"]) / "reviews" / "womens_clothing.jsonl.gz"
    folder = FOLDER / "reviews"
    reviews = pd.read_json(data, lines=True)[["text", "rating"]]
    reviews = reviews[reviews["text"].str.contains(r"\w")]
    known, new = folder.with_suffix(".parquet"), folder.with_suffix(".new.parquet")
    reviews[:1500].to_parquet(known)
    reviews[1500:1600].to_parquet(new)
    if not (folder / "metrics.json").exists():
        columns = Columns(text="text", target="rating")
        SetRegressor("c-gru", columns=columns, random_state=0).fit(known).save(folder, force=True)
    print("reviews:", Run(folder).metrics)
    lengths = [len(split_sentences(text)) for text in reviews["text"][1500:1600]]
    some = [str(k) for k, many in enumerate(lengths) if 4 <= many <= 6][:3]
    return explain_run(folder, new, sets=",".join(some), orders=32).to_html()


def features() -> str:
    """Explain the first molecules of 12 to 18 atoms, averaged over orders."""
    folder, file = FOLDER / "thrombin", Path(os.environ["CAPNETS_DATA"]) / "mil" / "thrombin.npz"
    if not (folder / "metrics.json").exists():
        SetRegressor("c-gru", epochs=15, random_state=0).fit(file).save(folder, force=True)
    print("thrombin:", Run(folder).metrics)
    sizes = np.diff(np.load(file, allow_pickle=False)["offsets"])
    some = np.flatnonzero((sizes >= 12) & (sizes <= 18))[:3]
    return explain_run(folder, file, sets=",".join(map(str, some)), orders=32).to_html()


def photograph() -> None:
    """Take screenshots of the pages at phone and desktop width; the README shows one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for width in (390, 1280):
            tab = browser.new_page(viewport={"width": width, "height": 800})
            for make in PAGES:
                tab.goto(f"file://{(OUT / make.__name__).resolve()}.html")
                with writing(OUT / f"{make.__name__}-{width}.png") as path:
                    path.write_bytes(tab.screenshot(full_page=True))
        tab = browser.new_page(viewport={"width": 900, "height": 800}, device_scale_factor=1.5)
        found = explain_run(trained("US", "c-gru").folder, sets="0", orders=32)
        tab.set_content(found.to_html())
        with writing(Path("docs/images/explanation.png")) as path:
            path.write_bytes(tab.locator("section").screenshot())


PAGES = (pictures, sentences, features)

if __name__ == "__main__":
    torch.set_num_threads(1)
    for make in PAGES:
        write_text(OUT / f"{make.__name__}.html", make())
    photograph()
