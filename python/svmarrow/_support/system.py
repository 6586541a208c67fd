"""Files that are written atomically, failures of standard output, and versions for reports of faults.

A file gets its name when it is complete.
"""

from __future__ import annotations

import os
import platform
import secrets
import sys
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from svmarrow import _core
from svmarrow._support.rows import threads

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["end_output", "new_file", "reason", "show_versions", "write_bytes", "write_text"]


# --- files ---

#: Beginning of the names of temporary files.
_PREFIX = ".svmarrow-"


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file, see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file at once, see `new_file`."""
    with new_file(path) as file:
        file.write(content)


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file for writing; a complete one replaces the existing file and keeps its permissions.

    A new file has the permissions of any new file: the system takes the umask from them.

    Raises
    ------
    OSError
        If the file cannot be written; it names the path.
    """
    path = Path(path)
    with _naming(path):
        if path.exists() and not path.is_file():
            with path.open("wb") as device:  # a pipe or a device cannot be replaced
                yield device
            return
        target = path.resolve()
        temporary = target.with_name(f"{_PREFIX}{secrets.token_hex(8)}")
        with temporary.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                file.close()
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o777)
                temporary.replace(target)
            except BaseException:
                file.close()
                temporary.unlink()
                raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Names the path in errors of the system that name no file, or the temporary one."""
    try:
        yield
    except OSError as error:
        known = error.filename is None or Path(error.filename).name.startswith(_PREFIX)
        if error.errno is None or not known:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None


# --- standard output ---


def reason(error: OSError) -> str:
    """Returns the message of a system error: the file, if it is known, and the reason without its number."""
    if not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def end_output() -> None:
    """Flushes standard output. Text that cannot be written is discarded: Python would try again at exit."""
    with suppress(AttributeError, ValueError):  # no output, or one without a descriptor
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- versions ---

#: Packages that svmarrow uses, some of them optional.
PACKAGES = (
    *("svmarrow", "scikit-learn", "numpy", "scipy", "joblib", "pandas", "polars", "matplotlib", "rich"),
    *("onnx", "onnxruntime", "skl2onnx", "shap", "dask"),
)


def show_versions() -> None:
    """Print the versions of svmarrow, of Python and of the packages around it, for a report of a fault.

    Examples
    --------
    >>> import svmarrow
    >>> svmarrow.show_versions()  # doctest: +ELLIPSIS
    system            ...
    """
    facts = {
        "system": platform.platform(),
        "python": f"{platform.python_version()} ({sys.executable})",
        "instruction set": _core.simd_level(),
        "cores": f"{os.cpu_count()}, {threads(None)} used",
    }
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    for name, value in facts.items():
        print(f"{name:<17} {value}")
