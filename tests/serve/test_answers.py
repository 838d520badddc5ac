"""Answers of a real service equal those of the library."""

import numpy as np
import pytest

from capnets.explain import explain, select
from capnets.sets import Sets
from services import tensors

SIZES = [3, 1, 5, 2]


@pytest.fixture(scope="module")
def arrays():
    generator = np.random.default_rng(0)
    return [generator.normal(size=(n, 3)).astype(np.float32) for n in SIZES]


@pytest.fixture(scope="module")
def sets(arrays):
    return Sets.from_arrays(arrays)


def padded(arrays):
    x = np.zeros((len(arrays), max(SIZES), 3), dtype=np.float32)
    mask = np.zeros(x.shape[:2], dtype=bool)
    for k, own in enumerate(arrays):
        x[k, : len(own)], mask[k, : len(own)] = own, True
    return x, mask


def outputs(answer):
    return {o["name"]: np.reshape(o["data"], o["shape"]) for o in answer["outputs"]}


@pytest.mark.parametrize("name", ["c-gru", "gru", "c-deepset"])
def test_infer(service, runs, arrays, sets, name):
    x, mask = padded(arrays)
    status, answer = service.call("POST", f"/v2/models/{name}/infer", tensors(x, mask))
    assert status == 200
    found = outputs(answer)
    for k in range(found["prediction"].shape[1]):
        expected = explain(runs[name], sets, output=k)
        assert found["prediction"][:, k] == pytest.approx(expected.predictions, abs=1e-5)
        assert found["added_values"][mask][:, k] == pytest.approx(expected.values, abs=1e-5)
    assert not found["added_values"][~mask].any()


def test_sets_of_other_sizes_are_warned_of(service, arrays):
    body = {"sets": [own.tolist() for own in arrays]}
    said = "2 of 4 sets are smaller or larger than all training sets (2 to 4 instances)"
    _, found = service.call("POST", "/v2/models/c-deepset/infer", body)
    assert said in found["parameters"]["warning"]
    for route, more in (("explain", {"method": "added"}), ("select", {"k": 1})):
        status, found = service.call(
            "POST", f"/v2/models/c-deepset/{route}", body | more | {"output": 0}
        )
        assert status == 200
        assert said in found["warning"]
    seen = {"sets": body["sets"][:1]}
    assert "parameters" not in service.call("POST", "/v2/models/c-deepset/infer", seen)[1]
    assert (
        service.call("POST", "/v2/models/c-gru/explain", {**body, "method": "added"})[1]["warning"]
        is None
    )


def test_forms_agree(service, arrays):
    x, mask = padded(arrays)
    path = "/v2/models/c-gru/infer"
    _, by_mask = service.call("POST", path, tensors(x, mask))
    rows = np.concatenate(arrays)
    ragged = tensors(rows)
    ragged["inputs"].append(
        {"name": "sizes", "datatype": "INT64", "shape": [len(SIZES)], "data": SIZES}
    )
    _, by_sizes = service.call("POST", path, ragged)
    lists = {"sets": [own.tolist() for own in arrays], "id": "seven"}
    _, by_lists = service.call("POST", path, lists)
    expected = outputs(by_mask)
    for answer in (by_sizes, by_lists):
        found = outputs(answer)
        assert found["prediction"] == pytest.approx(expected["prediction"], abs=1e-6)
        assert found["added_values"] == pytest.approx(expected["added_values"][mask], abs=1e-6)
    assert by_lists["id"] == "seven"


def test_empty_set_is_worth_the_baseline(service):
    _, about = service.call("GET", "/v2/models/c-gru")
    _, answer = service.call("POST", "/v2/models/c-gru/infer", {"sets": [[]]})
    assert outputs(answer)["prediction"][0] == pytest.approx(about["parameters"]["baseline"])


def test_explain_nothing_but_an_empty_set(service):
    status, answer = service.call("POST", "/v2/models/c-gru/explain", {"sets": [[]]})
    assert (status, answer["values"]) == (200, [[]])
    assert answer["predictions"] == pytest.approx([answer["baseline"]])


@pytest.mark.parametrize(
    "asked",
    [{"orders": 8, "seed": 3}, {"method": "shapley"}, {"method": "shapley", "orders": 4}],
)
@pytest.mark.parametrize("name", ["c-gru", "gru"])
def test_explain(service, runs, arrays, sets, name, asked):
    body = {"sets": [own.tolist() for own in arrays], **asked}
    status, answer = service.call("POST", f"/v2/models/{name}/explain", body)
    assert status == 200
    expected = explain(runs[name], sets, **asked)
    assert np.concatenate(answer["values"]) == pytest.approx(expected.values, abs=1e-5)
    assert answer["predictions"] == pytest.approx(expected.predictions, abs=1e-5)


def test_select(service, runs, arrays, sets):
    body = {"sets": [own.tolist() for own in arrays], "k": 2, "output": 1}
    _, answer = service.call("POST", "/v2/models/c-deepset/select", body)
    expected = select(runs["c-deepset"], sets, k=2, output=1)
    assert answer["positions"] == [list(own) for own in expected.positions]
    assert answer["values"] == pytest.approx(expected.values, abs=1e-5)


def test_stream(service, runs, arrays):
    path = "/v2/models/c-gru/streams"
    status, opened = service.call("POST", path)
    assert status == 201
    own = f"{path}/{opened['id']}"
    rows = arrays[2]
    values = []
    for piece in (rows[:1], rows[1:4], rows[4:]):
        _, answer = service.call("POST", own, {"instances": piece.tolist()})
        values += answer["values"]
    expected = explain(runs["c-gru"], Sets.from_arrays([rows]))
    assert values == pytest.approx(expected.values, abs=1e-5)
    _, closed = service.call("DELETE", own)
    assert closed["instances"] == 5
    assert closed["prediction"] == pytest.approx(expected.predictions, abs=1e-5)
    assert service.call("POST", own, {"instances": rows.tolist()})[0] == 404


def test_server_metadata_health_and_pages(service):
    assert service.call("GET", "/v2")[1]["models"] == ["c-gru", "gru", "c-deepset"]
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/gru/ready"):
        assert service.call("GET", path)[0] == 200
    assert service.call("GET", "/v2/models/c-deepset")[1]["inputs"][0]["shape"] == [-1, -1, 3]
    status, headers, page = service.raw("GET", "/docs")
    assert status == 200
    assert b"/v2/models/{name}/infer" in page
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "/v2/models/{name}/explain" in service.call("GET", "/openapi.json")[1]["paths"]
    assert service.raw("GET", "/")[0] == 307
