"""Tie the numbers in sentences of the documentation to records.

    python benchmarks/prose.py [--check]

SENTENCES has the sentences of each page, with {} for every number, and the function that computes
these numbers. Numbers that differ from the records are replaced. With --check nothing is written,
and the command fails if a page differs. Sentences on real sets are in mil/headline.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import prose_numbers as n
import prose_speed as speed

from capnets.files import write_text

ROOT = Path(__file__).parents[1]
NUMBER = r"([-+]?[\d.,]*\d)"

#: A sentence with {} for every number, and the function that returns the numbers.
Sentence = tuple[str, Callable[[], Sequence[str]]]
#: Rows of a table of unseen images: name, form of the second error, and task, way, judging, limit.
UNSEEN = (
    ("US, patches", "{} (orders only)", ("US", "patches", "orders", "patches")),
    (
        "US, patches and distilled convolutions, averaged",
        "{}",
        ("US", "averaged", "both", "patches and convolutions, warped, 8 readings"),
    ),
    ("US, end to end, warped", "**{}**", ("US", "warped", "both", n.BEST_READER)),
    ("WTri, patches", "{} (orders only)", ("WTri", "patches", "orders", "patches")),
    ("WTri, end to end, warped", "**{}**", ("WTri", "warped", "both", n.BEST_READER)),
    ("US+S, end to end, warped", "{}", ("US+S", "warped", "both", n.BEST_READER)),
)
#: Rows of the table of classifiers.
READERS = {
    "patches": "{}, {} | {}, {} | {}, {}",
    "convolutions": "{}, {} | {}, {} | {}, {}",
    "convolutions, warped": "{}, {} | {}, {} | {}, {}",
    n.BEST_READER: "{}, **{}** | {}, **{}** | {}, **{}**",
}
#: Sentences by page; line breaks do not matter.
SENTENCES: dict[str, list[Sentence]] = {
    "README.md": [
        (
            "Mean error of the values on sets of ten MNIST digits (new sets of training images): "
            "C-DeepSet {}, GRU {}, C-GRU {}.",
            n.values_on_us,
        ),
        (
            "A C-GRU trains in {} to {} % of the time of a GRU in PyTorch Geometric, on another "
            "processor in {} to {} %",
            speed.against_pyg,
        ),
        (
            "they are off by {} to {} on [training images](docs/findings/beyond-the-paper.md) of "
            "the digits 0 to 9 (C-DeepSet), by {} to {} on [new images]",
            lambda: [*n.value_range(), *n.values_on_new_images()],
        ),
        (
            "lower errors than the RNN, LSTM or GRU they are built on in {} of 15 pairs.",
            lambda: n.pairs()[:1],
        ),
    ],
    "docs/findings/paper.md": [
        (
            "capacity networks have lower errors than their recurrent counterparts in {} of {} "
            "pairs. Their added values are closer to the exact ones than prefix differences in {} "
            "of {} pairs,",
            lambda: [n.pairs()[0], "15", *n.closer_values()],
        ),
    ],
    "docs/findings/index.md": [
        ("needs no recurrent cell and recovers values within {}.", lambda: n.value_range()[1:]),
    ],
    "docs/findings/beyond-the-paper.md": [
        ("The mean error of its added values is {} to {} on all tasks;", n.value_range),
        ("that of recurrent capacity networks is up to {}.", n.recurrent_values),
        (
            "at most {} % of the paper's lowest on every task of its main table: {} % on US "
            "(C-GRU), {} % on WTri (C-LSTM).",
            n.shares_of_the_paper,
        ),
        ("at 40 instances its error is {} % of the paper's lowest.", n.forty),
        (
            "in {} of 15 pairs: all {} on MNIST, {} of 6 on Fashion-MNIST ({} of 15 with AdamW). "
            "On 100,000 other test sets it is {} of 15:",
            n.pairs,
        ),
        ("gated networks range from {} % better to {} % worse.", n.unseen_by_muon),
    ],
    "docs/findings/future.md": [
        ("Labels as classes lower the accuracy in {} of {} pairs.", n.classes_lower),
        (
            "the added values of capacity networks are off by {} to {}, those of other networks by "
            "{} to {}.",
            n.values_on_graphs,
        ),
        ("Training takes {} times the processor time of C-GRU.", n.time_of_learned_order),
    ],
    "docs/findings/held-out.md": [
        (
            "on US ({} against {}) and comes within {} % on WTri. On US+S its error is {} % above "
            "the limit",
            n.end_to_end,
        ),
        *(
            (f"| {name} | {{}} | {form} | {{}} | {{}} | {{}} |", lambda row=row: n.unseen_row(*row))
            for name, form, row in UNSEEN
        ),
        *(
            (f"| {name} | {{}} % | {form} |", lambda reader=name: n.reader_row(reader))
            for name, form in READERS.items()
        ),
        ("costs {} on US, {} on WTri and {} on US+S.", n.cost_of_one_percent),
        (
            "C-DeepSet in eight orders is {} % above the limit of these features on US and {} % on "
            "WTri.",
            n.patches_above_limit,
        ),
        (
            "training takes {} (US) and {} (WTri) times as long as on patches, and added values "
            "are off by {} and {} times as much.",
            n.end_to_end_cost,
        ),
    ],
    "docs/findings/orders.md": [
        ("The spread of a prediction over orders is {} to {} units of the label", n.spreads),
        ("training takes {} to {} times as long.", n.slower_by_penalty),
        ("a smaller error (by {} % and {} %) and better", n.gain_by_penalty),
        (
            "does not remove it: {} % (US) and {} % (WTri) of the spread remain.",
            lambda: n.percent(*n.against("c-deepset, consistent 10", "spread")),
        ),
        (
            "the error of its added values is {} times that of C-DeepSet.",
            lambda: n.one(
                n.order("c-potential", "US", "values") / n.order("c-deepset", "US", "values")
            ),
        ),
        (
            "raises the error of C-DeepSet by {} % (by a feature) or {} % (by worth), and that of "
            "its added values to {} or {} times.",
            n.sorted_on_us,
        ),
    ],
    "docs/findings/speed.md": [
        (
            "A C-GRU trains in {} to {} % of the time of a GRU aggregation of PyTorch Geometric, "
            "depending on the batch size ({} to {} % on another processor).",
            speed.against_pyg,
        ),
        (
            "takes {} to {} µs per instance; a stream takes {} to {} µs for a single instance and "
            "{} to {} µs in chunks.",
            speed.inference,
        ),
        ("Of the goals, {} of {} are not met, {} of them for C-DeepSet.", speed.goals_missed),
        ("trains {} times as fast as through `nn.GRU`", speed.one_large_set),
    ],
    "docs/how-to/large-data.md": [
        (
            "On {} slides of 20,000 x 1,024 numbers ({} GB in float16), two epochs and a "
            "prediction needed at most {} GB of memory, and a step {} s per slide of processor "
            "time (ABMIL of torchmil: {} s).",
            speed.slides,
        ),
        ("Sets of 100,000 x 1,024 numbers train in {} GB.", speed.large_slides),
    ],
    "docs/how-to/serve.md": [
        (
            "the service answers {} times as many requests per second as plain FastAPI with torch "
            "in threads (`def`), and {} times as many as on the event loop",
            speed.requests,
        ),
    ],
}


def with_numbers(page: str, sentence: str, numbers: Sequence[str]) -> str:
    """Return a page with these numbers in one of its sentences, wherever its lines break."""
    words = [re.escape(word).replace(r"\{\}", NUMBER) for word in sentence.split()]
    found = list(re.finditer(r"\s+".join(words), page))
    if len(found) != 1:
        raise SystemExit(
            f"this sentence should be on the page once, not {len(found)} x: {sentence}"
        )
    [match] = found
    if len(numbers) != match.re.groups:
        raise SystemExit(f"{len(numbers)} numbers for {match.re.groups} places: {sentence}")
    for place in reversed(range(len(numbers))):
        begin, end = match.span(place + 1)
        page = page[:begin] + numbers[place] + page[end:]
    return page


def tie(pages: Mapping[str, Sequence[Sentence]], *, check: bool) -> None:
    """Write the numbers of all sentences into their pages; or fail if one differs."""
    for name, sentences in pages.items():
        before = text = (ROOT / name).read_text()
        for sentence, numbers in sentences:
            after = with_numbers(text, sentence, numbers())
            if check and after != text:
                said = sentence.replace("{}", "%s") % tuple(numbers())
                raise SystemExit(f"{name}: the records say: {said}")
            text = after
        if text != before:
            write_text(ROOT / name, text)


def main() -> None:
    """Write the numbers, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    tie(SENTENCES, check=parser.parse_args().check)


if __name__ == "__main__":
    main()
