"""Atomic writing of files: a file gets its name when it is complete."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["new_file", "write_bytes", "write_text"]


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

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as device:  # a pipe or a device cannot be replaced
            yield device
        return
    target = path.resolve()
    try:
        created = NamedTemporaryFile("wb", dir=target.parent, prefix=".svmarrow-", delete=False)  # noqa: SIM115
    except OSError as error:
        # The user knows the file, not the temporary one.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    with created as file:
        temporary = Path(file.name)
        try:
            yield file  # type: ignore[misc]
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            temporary.replace(target)
        except BaseException:
            file.close()
            temporary.unlink()
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
