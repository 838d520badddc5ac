"""A real service in a process of its own, and a client that speaks to it."""

import http.client
import json
import os
import subprocess
import sys


class Service:
    """A process of `capnets serve` on a free port."""

    def __init__(self, *arguments, env=None):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "capnets", "serve", "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        line = self.process.stdout.readline()
        self.port = int(line.split(" (")[0].rpartition(":")[2])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def raw(self, method, path, body=None, headers=None):
        """Return status, headers and body of one answer."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def call(self, method, path, body=None, headers=None):
        """Return status and JSON of one answer."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body)
        status, _, text = self.raw(method, path, data, headers)
        return status, json.loads(text)

    def metric(self, name):
        """Return one measurement without labels."""
        lines = self.raw("GET", "/metrics")[2].decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Ask the process to stop; return its exit code."""
        self.process.terminate()
        return self.process.wait(120)


def tensors(x, mask=None):
    """Return arrays as inputs of the KServe v2 protocol."""
    found = [("instances", "FP32", x)]
    if mask is not None:
        found.append(("mask", "BOOL", mask))
    return {
        "inputs": [
            {"name": n, "datatype": d, "shape": list(a.shape), "data": a.ravel().tolist()}
            for n, d, a in found
        ]
    }
