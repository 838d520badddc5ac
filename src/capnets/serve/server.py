"""Run the service in a process that stops gracefully."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capnets.errors import InputError
from capnets.serve.limits import Limits

__all__ = ["is_loopback", "serve"]

#: Shortest token that is accepted.
TOKEN_LENGTH = 16


def serve(
    folders: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    page: str | None = None,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve networks until the process is asked to stop.

    On SIGTERM and SIGINT no new connections are accepted, and every request that has begun is
    answered.

    Parameters
    ----------
    folders
        Runs, or what `export` wrote.
    host, port
        Where to listen. Port 0 takes a free one.
    token
        What clients must send as `Authorization: Bearer …`. Required if other machines can reach
        the host.
    limits
        Limits on requests.
    page
        HTML for the address `/`.
    announce
        Called with the address as soon as connections are accepted.
    """
    if token is None and not is_loopback(host):
        raise InputError(
            f"{host} can be reached from other machines, so a token is needed; put one into a file "
            "and pass --token-file, or set CAPNETS_TOKEN"
        )
    if token is not None and (len(token) < TOKEN_LENGTH or not token.isascii()):
        raise InputError(f"a token has at least {TOKEN_LENGTH} ASCII characters")
    try:
        import uvicorn

        from capnets.serve.app import create_app
    except ModuleNotFoundError as error:
        raise InputError(
            f"{error.name} is not installed: `pip install 'capnets[serve]'` brings it"
        ) from error
    limits = limits or Limits()
    app = create_app(folders, limits=limits, token=token, page=page)
    with _listen(host, port) as listener:
        config = uvicorn.Config(
            app,
            log_level="error",  # each malformed request is a warning
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=30,
        )
        # uvicorn repeats the signal after its graceful stop; this ends the process without error.
        signal.signal(signal.SIGTERM, _exit)
        signal.signal(signal.SIGINT, _exit)
        if announce is not None:
            name = f"[{host}]" if ":" in host else host
            announce(f"http://{name}:{listener.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY only on sockets that name the protocol; without it an answer of
        # two packets waits 40 ms for the client's delayed acknowledgement.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error}") from error
    return listener


def _exit(*_: Any) -> None:
    raise SystemExit(0)
