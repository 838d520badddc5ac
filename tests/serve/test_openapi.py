"""Requests drawn from the OpenAPI description never cause a server error."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

BODIES = [
    "/v2/models/{name}/infer",
    "/v2/models/{name}/explain",
    "/v2/models/{name}/select",
    "/v2/models/{name}/embed",
    "/v2/models/{name}/streams/{stream_id}",
]
OTHERS = [
    ("GET", "/v2"),
    ("GET", "/v2/health/live"),
    ("GET", "/v2/health/ready"),
    ("GET", "/metrics"),
    ("GET", "/v2/models/{name}"),
    ("GET", "/v2/models/{name}/ready"),
    ("POST", "/v2/models/{name}/streams"),
    ("DELETE", "/v2/models/{name}/streams/{stream_id}"),
]


@pytest.fixture(scope="module")
def description(service):
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{service.port}/openapi.json")


@pytest.fixture(scope="module")
def stream(service):
    path = "/v2/models/c-gru/streams"
    name = service.call("POST", path)[1]["id"]
    yield name
    service.call("DELETE", f"{path}/{name}")


def check(operation, mode, known):
    """Call an operation with drawn requests; `known` replaces parts of the path that exist."""

    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def call(case):
        case.path_parameters = {**case.path_parameters, **known}
        answer = case.call()
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]

    call()


def test_every_operation_is_described(description):
    found = {(o.ok().method.upper(), o.ok().path) for o in description.get_all_operations()}
    assert found == {*OTHERS, *(("POST", path) for path in BODIES)}


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("path", BODIES)
def test_bodies(description, stream, path, mode):
    known = {"name": "c-gru", "stream_id": stream}
    check(description[path]["POST"], mode, {k: v for k, v in known.items() if f"{{{k}}}" in path})


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_paths(description, method, path):
    check(description[path][method], "positive", {})
