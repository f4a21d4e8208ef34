"""``sagl serve``."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import typer

from sagl.cli.options import DEVICE, RUN, option, refuse_idle, say

TOKEN = "SAGL_TOKEN"
_LIMITS = "Limits"
_MOST_BYTES = 4096  # of a token


def serve(
    run: Path = RUN,
    host: str = option("127.0.0.1", "The address; by default for this machine alone."),
    port: int = option(8000, "0 takes one that is free."),
    token_file: Path | None = option(
        None,
        f"A file with a token that requests must bring; or the variable {TOKEN}.",
        metavar="FILE",
    ),
    backbone: list[str] | None = option(
        None,
        "VIEW=MODEL, where the run does not know the model of a view, or it is a "
        "function of Python. Repeat for each.",
        metavar="VIEW=MODEL",
    ),
    vectors: bool = option(
        False, "Answer for feature vectors alone; no model is loaded.", "--vectors"
    ),
    trust_remote_code: bool = option(
        False, "Run code that comes with a model from the hub.", "--trust-remote-code"
    ),
    device: str = DEVICE,
    max_mb: float = option(32, "MiB of a request.", panel=_LIMITS),
    max_rows: int = option(10_000, "Samples of a request.", panel=_LIMITS),
    max_seconds: float = option(30, "Seconds for a request.", panel=_LIMITS),
    max_requests: int = option(
        32, "Requests at work at the same time; others get 429.", panel=_LIMITS
    ),
    threads: int = option(1, "That ask the model at the same time.", panel=_LIMITS),
) -> None:
    """Answer over HTTP: clusters, confidence and neighbours, as sagl predict has them.

    /openapi.json describes requests and answers. SIGTERM and Ctrl-C let what is under
    way be finished.

    Example: sagl serve run --port 8000
    """
    from sagl.environment import optional_module

    for module in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        optional_module(module, "serve")
    from sagl.estimator import SAGL
    from sagl.serve import server
    from sagl.serve.app import create_app
    from sagl.serve.backbones import load_backbones
    from sagl.serve.limits import Limits

    limits = Limits(max_mb, max_rows, max_seconds, max_requests, threads)
    token = _token(token_file)
    if vectors:
        refuse_idle("--vectors loads no model", "backbone", "trust_remote_code")
    model = SAGL.load(run, device)
    backbones = None
    if not vectors:
        widths = dict(zip(model.view_names_, model.view_widths_, strict=True))
        backbones = load_backbones(
            run,
            widths,
            backbone or (),
            device=device,
            trust_remote_code=trust_remote_code,
        )
    app = create_app(model, limits=limits, token=token, backbones=backbones)
    with server.listen(host, port) as at:
        if token is None and not server.is_local(host):
            text = f"whoever reaches {host} may ask this model: give a --token-file"
            warnings.warn(text, stacklevel=1)
        kinds = "vectors" if backbones is None else f"vectors and {backbones.kind}s"
        shown = f"[{host}]" if ":" in host else host
        say(f"{run}: {kinds} at http://{shown}:{at.getsockname()[1]}, Ctrl-C ends")
        stopped = server.run(app, at)
    typer.echo("sagl: stopped", err=True)
    if stopped == signal.SIGINT:
        raise typer.Exit(130)


def _token(file: Path | None) -> str | None:
    """The token, from a file or the environment: a process list shows neither."""
    given, place = os.environ.get(TOKEN), f"the variable {TOKEN}"
    if file is not None:
        if given is not None:
            raise ValueError(f"there is a --token-file and {place}; give one of them")
        try:
            with file.open("rb") as opened:  # no more of what has no end
                content = opened.read(_MOST_BYTES)
            given, place = content.decode("ascii").strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not plain text"
            raise ValueError(f"{file}: the token cannot be read: {reason}") from None
    if given is None:
        return None
    if not given or not given.isascii() or not given.isprintable() or " " in given:
        raise ValueError(
            f"{place} holds no token: one word of plain letters, digits and signs"
        )
    return given
