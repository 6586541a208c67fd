"""Files that are written all or nothing: a file takes its name when it is complete."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

__all__ = ["write_bytes", "write_text"]


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file, see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file; an existing one is replaced when the new one is complete, and keeps its permissions.

    Raises
    ------
    OSError
        If the system cannot write the file.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a pipe or a device has no complete state
        return
    target = path.resolve()
    with NamedTemporaryFile("wb", dir=target.parent, prefix=".svmarrow-", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content)
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
