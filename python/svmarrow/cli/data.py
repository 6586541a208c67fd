"""Data files, whole or in pieces: svmlight, CSV, parquet, npz, and compressed ones of them.

The format follows from the file's name and can be forced. Errors are `ValueError`s that name the file and,
where there are lines, the line. Files larger than memory are read in pieces, of every format.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import re
import shutil
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from svmarrow.cli.formats import (
    Data,
    DataOptions,
    csv_pieces,
    joined,
    labels_of,
    npz_archive,
    npz_array,
    npz_header,
    npz_names,
    npz_rows,
    parquet_pieces,
    read_npz,
    whole,
)
from svmarrow.exceptions import FormatError
from svmarrow.io import load_svmlight

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager
    from typing import IO

    from numpy.typing import NDArray

    from svmarrow._support.progress import ProgressCallback

__all__ = [
    "COMPRESSED",
    "Data",
    "DataOptions",
    "Survey",
    "check_writable",
    "format_of",
    "has_index_zero",
    "read_data",
    "read_pieces",
    "sample",
    "seekable",
    "survey",
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


# --- files larger than memory ---

#: Number of bytes per block in the search for an index 0.
BLOCK_BYTES = 1 << 24
INDEX_ZERO = re.compile(rb"[ \t]\+?0+:")


@dataclass(frozen=True, eq=False)
class Survey:
    """Summary of a labeled file.

    Attributes
    ----------
    rows : int
        Number of rows.
    options : DataOptions
        How to read the file again: with its number of columns, its labels all numbers or all text.
    classes : ndarray or None
        The labels that occur; None where they are numbers to learn.
    names : list of str or None
        Column names.
    is_sparse : bool
        Whether its rows are sparse.
    """

    rows: int
    options: DataOptions
    classes: NDArray[Any] | None
    names: list[str] | None
    is_sparse: bool


def read_pieces(path: Path, options: DataOptions, most: int) -> Generator[Data]:
    """Read a file, at most `most` rows at a time; numbers are those of `read_data`.

    Text files may be compressed; a compressed npz file is read whole.

    Raises
    ------
    OSError
        If the system cannot read the file.
    ValueError
        As `read_data`; and when a piece is reached that does not follow the format.
    """
    rows = 0
    for piece in _pieces(path, options, most):
        rows += piece.X.shape[0]
        if options.n_features is not None and piece.X.shape[1] != options.n_features:
            raise ValueError(f"{path}: {piece.X.shape[1]} columns, the model has {options.n_features}")
        if piece.X.shape[0]:
            yield piece
    if rows == 0:
        raise ValueError(f"{path}: there are no rows")


def has_index_zero(path: Path) -> bool:
    """Returns whether the index 0 occurs in a svmlight file, so that its columns count from 0."""
    with _opened(path) as file:
        tail = b""
        while block := file.read(BLOCK_BYTES):
            if INDEX_ZERO.search(tail + block):
                return True
            tail = block[-64:]
    return False


def survey(path: Path, options: DataOptions, most: int, *, classes: bool = True) -> Survey:
    """Reads a labeled file once to determine its columns, classes and sparsity."""
    rows, columns, names, found, is_sparse = 0, 0, None, None, False
    # One label that is no number makes all of them text, so they are judged together.
    for piece in read_pieces(path, replace(options, text_labels=classes), most):
        rows, columns, names = rows + piece.X.shape[0], max(columns, piece.X.shape[1]), piece.names
        is_sparse = sparse.issparse(piece.X)
        if classes:
            here = np.unique(piece.labels)
            found = here if found is None else np.unique(np.concatenate([found, here]))
    text = False
    if found is not None and format_of(path, options) == "csv":
        found = np.unique(labels_of(path, found.tolist()))
        text = found.dtype.kind == "U"
    return Survey(rows, replace(options, n_features=columns, text_labels=text), found, names, is_sparse)


def sample(
    path: Path, options: DataOptions, most: int, n: int, random: np.random.Generator, scaler: Any
) -> Any:
    """`n` rows of a file, drawn evenly, or all; `scaler`, if any, learns from all rows and is applied."""
    keys, sampled_rows = np.empty(0), None
    for piece in read_pieces(path, options, most):
        if scaler is not None:
            scaler.partial_fit(piece.X)
        # The rows with the least keys of all.
        keys = np.concatenate([keys, random.random(piece.X.shape[0])])
        stack = sparse.vstack if sparse.issparse(piece.X) else np.vstack
        least = np.sort(np.argpartition(keys, n - 1)[:n]) if keys.size > n else np.arange(keys.size)
        there = 0 if sampled_rows is None else sampled_rows.shape[0]
        new = piece.X[least[least >= there] - there]
        sampled_rows = new if sampled_rows is None else stack([sampled_rows[least[least < there]], new])
        keys = keys[least]
    sampled_rows = sparse.csr_array(sampled_rows) if sparse.issparse(sampled_rows) else sampled_rows
    return sampled_rows if scaler is None else scaler.transform(sampled_rows)


def _pieces(path: Path, options: DataOptions, most: int) -> Iterator[Data]:
    kind, packed = format_of(path, options), path.suffix.lower() in COMPRESSED
    if kind == "parquet":
        return parquet_pieces(path, options, most)
    if kind == "npz":
        return iter([read_data(path, options)]) if packed else _npz_pieces(path, options, most)
    return (_csv_pieces if kind == "csv" else _svmlight_pieces)(path, options, most)


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    return unpacked(path) if path.suffix.lower() in COMPRESSED else path.open("rb")


def _csv_pieces(path: Path, options: DataOptions, most: int) -> Iterator[Data]:
    with _opened(path) as file:
        yield from csv_pieces(path, file, options, most)


def _svmlight_pieces(path: Path, options: DataOptions, most: int) -> Iterator[Data]:
    """Reads svmlight lines via a temporary file; columns count from 0 if any line has an index 0."""
    zero_based = has_index_zero(path) if options.zero_based is None else options.zero_based
    with _opened(path) as file, TemporaryDirectory(prefix="svmarrow-") as folder:
        part, first = Path(folder) / "piece", 0
        while lines := _lines(file, most):
            part.write_bytes(b"".join(lines))
            try:
                X, y = load_svmlight(part, options.n_features, zero_based=zero_based, dtype=options.dtype)
            except FormatError as error:
                raise FormatError(_renumbered(str(error), part, path, first)) from None
            yield Data(X, whole(y))
            first += len(lines)


def _lines(file: Any, most: int) -> list[bytes]:
    lines: list[bytes] = []
    for line in file:
        lines.append(line)
        if len(lines) == most:
            break
    return lines


def _renumbered(text: str, part: Path, path: Path, first: int) -> str:
    """Converts the line numbers of an error from the piece to the file."""
    text = re.sub(rf"{re.escape(str(part))}:(\d+)", lambda at: f"{path}:{int(at[1]) + first}", text)
    return text.replace(str(part), str(path))


def _npz_pieces(path: Path, options: DataOptions, most: int) -> Iterator[Data]:
    """Dense rows in the order of the file, or the entries of CSR rows; offsets and labels are read whole."""
    size = path.stat().st_size
    with npz_archive(path) as archive:
        names = npz_names(path, set(archive.files), options.test)
        role = {name.removeprefix("test_").removesuffix("_test"): name for name in names}
        small: dict[str, Any] = {
            key: npz_array(path, archive, role[key], size) for key in ("y", "indptr", "shape") if key in role
        }
        pieces = (
            _dense(path, archive, role["X"], most) if "X" in role else _csr(path, archive, role, small, most)
        )
        first = 0
        for parts in pieces:
            n = len(parts["X"]) if "X" in parts else len(parts["indptr"]) - 1
            labels = {"y": small["y"][first : first + n]} if "y" in small else {}
            yield npz_rows(path, parts | labels, options)
            first += n
        if "y" in small and len(small["y"]) != first:
            raise FormatError(f"{path}: y has shape {small['y'].shape}, there are {first} rows")


def _dense(path: Path, archive: Any, name: str, most: int) -> Iterator[dict[str, Any]]:
    with archive.zip.open(f"{name}.npy") as member:
        shape, by_columns, dtype = npz_header(path, archive, name, member)
        if by_columns or len(shape) != 2 or dtype.hasobject:
            yield {"X": npz_array(path, archive, name, path.stat().st_size)}
            return
        for start in range(0, shape[0], most):
            n = min(most, shape[0] - start)
            yield {"X": _numbers(path, member, name, dtype, n * shape[1]).reshape(n, shape[1])}


def _csr(
    path: Path, archive: Any, role: dict[str, str], small: dict[str, Any], most: int
) -> Iterator[dict[str, Any]]:
    indptr, shape = small["indptr"], small["shape"]
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or (np.diff(indptr.astype(np.int64)) < 0).any():
        raise FormatError(f"{path}: indptr of shape {indptr.shape} is not the offsets of CSR rows")
    with (
        archive.zip.open(f"{role['data']}.npy") as data,
        archive.zip.open(f"{role['indices']}.npy") as indices,
    ):
        kinds = [
            npz_header(path, archive, role[key], file)[2]
            for key, file in (("data", data), ("indices", indices))
        ]
        for start in range(0, len(indptr) - 1, most):
            ends = indptr[start : start + most + 1].astype(np.int64)
            count = int(ends[-1] - ends[0])
            yield {
                "data": _numbers(path, data, role["data"], kinds[0], count),
                "indices": _numbers(path, indices, role["indices"], kinds[1], count),
                "indptr": ends - ends[0],
                "shape": np.array([len(ends) - 1, int(shape[1])]),
            }


def _numbers(path: Path, member: Any, name: str, dtype: Any, count: int) -> NDArray[Any]:
    content = member.read(count * dtype.itemsize)
    if len(content) < count * dtype.itemsize:
        raise FormatError(f"{path}: {name} is cut off")
    return np.frombuffer(content, dtype=dtype)
