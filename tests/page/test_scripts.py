"""The scripts of the page: their logic is that of the library."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from capnets.errors import InputError
from capnets.ingest import Columns, read_table
from capnets.learn.target import Target
from capnets.pages.interactive import MODULES, script
from nodes import STATIC, node


def encoded(rows, schema):
    """Encode rows as the page does; None for a row that it refuses."""
    return node(f"""
        import {{ encode }} from "{STATIC / "schema.js"}";
        const schema = {json.dumps(schema.to_dict())};
        const attempt = (row) => {{
          try {{ return encode(row, schema); }} catch {{ return null; }}
        }};
        console.log(JSON.stringify({json.dumps(rows)}.map(attempt)));
    """)


def drawn(rng, count, *, unseen, gaps):
    """Draw rows as they are written in a file."""
    kinds = ["cup", "plate", 'a,"b"', *(["never seen"] if unseen else [])]
    sizes = ["1", "2", "30", *(["2.0", "7"] if unseen else [])]
    rows = {
        "kind": rng.choice(kinds, count),
        "size": rng.choice(sizes, count),
        "new": rng.choice(["True", "False"], count),
        "price": [f"{x:.6g}" for x in rng.normal(0, 100, count)],
        # Large numbers lose digits in float32, so the schema subtracts an offset.
        "stamp": [str(1_700_000_000_000 + int(x)) for x in rng.integers(0, 5000, count)],
    }
    for name in rows:
        rows[name] = [str(x) if rng.random() > gaps else "" for x in rows[name]]
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def as_file(rows, path):
    frame = pd.DataFrame(rows).assign(basket=np.arange(len(rows)) // 3, worth=1.0)
    frame.loc[frame["basket"] % 2 == 0, "worth"] = 2.0
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("missing", ["mean", "zero", "refuse"])
def test_rows_are_encoded_as_the_library_does(missing, tmp_path):
    rng = np.random.default_rng(0)
    columns = Columns(
        set="basket", target="worth", categories=("kind", "size", "new"), missing=missing
    )
    gaps = 0.0 if missing == "refuse" else 0.2
    known = as_file(drawn(rng, 90, unseen=False, gaps=gaps), tmp_path / "known.csv")
    schema = read_table(known, columns).schema
    assert any(feature.offset for feature in schema.features)
    rows = drawn(rng, 60, unseen=missing != "refuse", gaps=gaps)
    table = read_table(as_file(rows, tmp_path / "new.csv"), schema, labels=False).sets
    found = np.array(encoded(rows, schema), dtype=np.float32)
    np.testing.assert_allclose(found, table.instances[table.index], rtol=1e-6)


@pytest.mark.parametrize("change", [{"kind": "never seen"}, {"kind": ""}, {"price": ""}])
def test_rows_that_the_library_refuses_are_refused(change, tmp_path):
    rng = np.random.default_rng(1)
    columns = Columns(set="basket", target="worth", categories=("kind", "size", "new"))
    good = drawn(rng, 30, unseen=False, gaps=0.0)
    schema = read_table(as_file(good, tmp_path / "known.csv"), columns).schema
    bad = [{**good[0], **change}, *good[1:3]]
    with pytest.raises(InputError):
        read_table(as_file(bad, tmp_path / "bad.csv"), schema, labels=False)
    found = encoded(bad, schema)
    assert found[0] is None
    assert None not in found[1:]


def test_csv_round_trip():
    found = node(f"""
        import {{ parseCsv, toCsv }} from "{STATIC / "csv.js"}";
        const text = toCsv(["a", "b"], [['say "x"', "1,5"], ["line\\nbreak", ""]]);
        console.log(JSON.stringify([parseCsv(text), parseCsv("a\\tb\\r\\n1\\t2\\r\\n")]));
    """)
    assert found[0] == [{"a": 'say "x"', "b": "1,5"}, {"a": "line\nbreak", "b": ""}]
    assert found[1] == [{"a": "1", "b": "2"}]


def uniform(seed):
    """Yield the numbers of mulberry32, from its definition."""
    word = 2**32
    while True:
        seed = (seed + 0x6D2B79F5) % word
        t = ((seed ^ seed >> 15) * (seed | 1)) % word
        t ^= (t + (t ^ t >> 7) * (t | 61)) % word
        yield (t ^ t >> 14) / word


def shuffles(size, pinned, seed):
    """Yield orders by Fisher and Yates, and the reverse of each; pinned positions stay."""
    numbers = uniform(seed)
    free = [k for k in range(size) if not pinned[k]]
    while True:
        chosen = list(free)
        for i in range(len(chosen) - 1, 0, -1):
            j = int(next(numbers) * (i + 1))
            chosen[i], chosen[j] = chosen[j], chosen[i]
        for half in (chosen, chosen[::-1]):
            order = list(range(size))
            for place, k in zip(free, half, strict=True):
                order[place] = k
            yield order


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_orders_are_those_of_the_definition(seed):
    pinned = [False, True, False, False, True, False, False]
    found = node(f"""
        import {{ draw }} from "{STATIC / "orders.js"}";
        console.log(JSON.stringify(draw(7, 33, {json.dumps(pinned)}, {seed})));
    """)
    given = list(range(7))
    backwards = [k for k in reversed(given) if not pinned[k]]
    assert found[0] == given
    assert [k for k in found[1] if not pinned[k]] == backwards
    expected = shuffles(7, pinned, seed)
    assert found[2:] == [next(expected) for _ in range(31)]


def test_orders_are_permutations_that_respect_pins():
    found = node(f"""
        import {{ draw }} from "{STATIC / "orders.js"}";
        const pinned = [false, true, false, false, true, false];
        console.log(JSON.stringify(draw(6, 9, pinned, 3)));
    """)
    assert len(found) == 9
    assert found[0] == [0, 1, 2, 3, 4, 5]
    for order in found:
        assert sorted(order) == list(range(6))
        assert (order[1], order[4]) == (1, 4)
    free = [[order[k] for k in (0, 2, 3, 5)] for order in found]
    assert all(free[k + 1] == free[k][::-1] for k in range(0, 8, 2))


@pytest.mark.parametrize("name", MODULES)
def test_scripts_parse(name, tmp_path):
    if shutil.which("node") is None:
        pytest.skip("no node: install it to have the scripts of the page tested")
    copy = tmp_path / name.replace(".js", ".mjs")
    copy.write_text((STATIC / name).read_text())
    done = subprocess.run(["node", "--check", copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_probabilities_are_those_of_the_library():
    raw = [[0.5, -1.0, 2.0], [30.0, -30.0, 0.0]]
    targets = [Target.of_classes(["a", "b", "c"]), Target("labels", 3), Target.of_classes([0, 1])]
    for target in targets:
        network = {"kind": target.kind, "outputs": target.output_names,
                   "classes": [str(c) for c in target.classes]}  # fmt: skip
        given = [row[: target.outputs] for row in raw]
        found = node(f"""
            import {{ probabilities }} from "{STATIC / "session.js"}";
            const network = {json.dumps(network)};
            const raw = {json.dumps(given)};
            const shares = (row) => probabilities(network, row).map((one) => one.share);
            console.log(JSON.stringify(raw.map(shares)));
        """)
        np.testing.assert_allclose(found, target.probabilities(np.array(given)), atol=1e-12)


def test_scripts_are_one_script_without_imports():
    code = script()
    assert not re.search(r"^(import|export) ", code, re.M)
    names = re.findall(r"^(?:async )?(?:function|class|const) (\w+)", code, re.M)
    assert len(names) == len(set(names)), "two modules declare the same name"
