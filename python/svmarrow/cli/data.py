"""Data files: svmlight, CSV, parquet, npz, and compressed ones of them.

The format follows from the file's name and can be forced. Errors are `ValueError`s that name the file and,
where there are lines, the line.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import shutil
import zlib
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from svmarrow.cli.archives import read_npz
from svmarrow.cli.rows import Data, DataOptions, joined, whole
from svmarrow.cli.tables import csv_pieces, parquet_pieces
from svmarrow.exceptions import FormatError
from svmarrow.io import load_svmlight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from svmarrow._support.progress import ProgressCallback

__all__ = [
    "COMPRESSED",
    "Data",
    "DataOptions",
    "check_writable",
    "format_of",
    "read_data",
    "seekable",
    "unpacked",
]

COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
"""Functions that open compressed files, by suffix; the suffix before it determines the format."""

EXTENSIONS = {".csv": "csv", ".tsv": "csv", ".npz": "npz", ".parquet": "parquet"}
"""Formats other than svmlight by suffix."""


def read_data(path: Path, options: DataOptions, progress: ProgressCallback | None = None) -> Data:
    """Read a file.

    Parameters
    ----------
    path : Path
        The file.
    options : DataOptions
        How to read it.
    progress : callable, default=None
        ``progress(phase, done, total, gap, steps)`` for svmlight files.

    Returns
    -------
    Data
        At least one row.

    Raises
    ------
    OSError
        If the system cannot read the file.
    ValueError
        If it does not follow its format, or options ask for what its format does not have.
    """
    if path.suffix.lower() in COMPRESSED:
        return _read_compressed(path, options, progress)
    kind = format_of(path, options)
    if kind == "svmlight":
        zero_based: Any = "auto" if options.zero_based is None else options.zero_based
        X, targets = load_svmlight(
            path, options.n_features, zero_based=zero_based, dtype=options.dtype, progress=progress
        )
        data = Data(X, whole(targets))
    elif kind == "csv":
        with path.open("rb") as file:
            data = joined(list(csv_pieces(path, file, options)))
    elif kind == "parquet":
        data = joined(list(parquet_pieces(path, options, 1 << 16)))
    else:
        data = read_npz(path, options)
    if data.X.shape[0] == 0:
        raise ValueError(f"{path}: there are no rows")
    if options.n_features is not None and data.X.shape[1] != options.n_features:
        raise ValueError(f"{path}: {data.X.shape[1]} columns, the model has {options.n_features}")
    return data


def format_of(path: Path, options: DataOptions) -> str:
    """Returns the format of a file; raises ValueError for options that it does not have."""
    name = Path(path.stem) if path.suffix.lower() in COMPRESSED else path
    kind = EXTENSIONS.get(name.suffix.lower(), "svmlight") if options.format == "auto" else options.format
    if kind not in ("csv", "parquet") and options.target is not None:
        raise ValueError(f"{path}: --target is for CSV and parquet files, this one is read as {kind}")
    if kind != "csv" and options.header is not None:
        raise ValueError(f"{path}: --header is for CSV files, this one is read as {kind}")
    if kind != "npz" and options.test:
        raise ValueError(f"{path}: --test is for npz files, this one is read as {kind}")
    return kind


@contextmanager
def seekable(path: Path) -> Iterator[Path]:
    """Yields a path that can be read repeatedly: the file, or a temporary copy of a pipe."""
    if path.is_file() or not path.exists():
        yield path
        return
    with TemporaryDirectory(prefix="svmarrow-") as folder:
        plain = Path(folder) / path.name
        with path.open("rb") as pipe, plain.open("wb") as file:
            shutil.copyfileobj(pipe, file, 1 << 20)
        try:
            yield plain
        except ValueError as error:
            raise type(error)(str(error).replace(str(plain), str(path))) from None


@contextmanager
def unpacked(path: Path) -> Iterator[Any]:
    """Opens a compressed file; errors name it."""
    with COMPRESSED[path.suffix.lower()](path) as compressed:
        try:
            yield compressed
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise FormatError(f"{path}: not a readable {path.suffix} file: {error}") from None


def _read_compressed(path: Path, options: DataOptions, progress: ProgressCallback | None) -> Data:
    """Reads a compressed file via a temporary file, whose name is replaced in errors."""
    with TemporaryDirectory(prefix="svmarrow-") as folder:
        plain = Path(folder) / path.stem
        with unpacked(path) as compressed, plain.open("wb") as file:
            shutil.copyfileobj(compressed, file, 1 << 20)
        try:
            return read_data(plain, options, progress)
        except ValueError as error:
            raise FormatError(str(error).replace(str(plain), str(path))) from None


#: Suffixes of text files with one prediction per line.
TEXT = ("", ".txt", ".csv", ".labels", ".scores", ".pred", ".predict", ".predictions", ".out", ".dat")
#: Suffixes of images.
IMAGES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps")


def check_writable(path: Path, option: str = "", suffixes: tuple[str, ...] = ()) -> None:
    """Checks before the work begins that an output can be written and its suffix is allowed."""
    # Pipes and devices may have any name.
    if suffixes and path.suffix.lower() not in suffixes and (path.is_file() or not path.exists()):
        known = ", ".join(suffix or "no suffix" for suffix in suffixes)
        raise ValueError(f"{option}={path} is not allowed: its name must end in one of {known}")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", str(path))
