"""Runs `worker.py` in a process of its own and brings back what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from worker import UNAVAILABLE

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Settings:
    """What all suites share.

    Attributes
    ----------
    repeat : int
        Runs of each engine.
    threads : int or None
        Processors that an engine may use; None is all.
    timeout : float or None
        Seconds after which a run is given up.
    check : bool
        Whether dual objectives are compared before times.
    limit : int or None
        Training rows to keep; None is all.
    """

    repeat: int = 3
    threads: int | None = None
    timeout: float | None = None
    check: bool = True
    limit: int | None = None


class NoResultError(Exception):
    """A run gave nothing: the text is the note for the table."""


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def run_worker(engine: str, workload: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """One engine on one workload.

    Returns
    -------
    dict
        Arrays ``support``, ``dual_coef``, ``intercept``, ``predicted`` and the dict ``measured``.

    Raises
    ------
    NoResultError
        The engine is not here, failed or took longer than the time-out.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "result.npz"
        spec = {
            "engine": engine,
            "workload": workload,
            "limit": settings.limit,
            "threads": settings.threads,
            "output": str(output),
        }
        command = [sys.executable, str(HERE / "worker.py"), json.dumps(spec)]
        try:
            done = subprocess.run(
                command, stderr=subprocess.PIPE, text=True, timeout=settings.timeout, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise NoResultError(f"over {settings.timeout:g} s") from error
        if done.returncode == UNAVAILABLE:
            say(f"  {engine}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
            raise NoResultError("not here")
        if done.returncode != 0:
            say(done.stderr)
            raise NoResultError("failed")
        with np.load(output, allow_pickle=False) as z:
            result: dict[str, Any] = {key: z[key] for key in z.files}
    result["measured"] = json.loads(str(result["measured"]))
    return result
