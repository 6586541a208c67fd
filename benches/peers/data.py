"""Workloads and their rows: real sets from a folder of ``.npz`` files, generators, scikit-learn's digits."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
SEED = 20070


class DataMissingError(Exception):
    """The rows of a workload are not on this machine."""


@dataclass(frozen=True)
class Problem:
    """Rows and class indices ``0 .. k-1``; ``X`` is float64, dense and C-contiguous or CSR."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1


def read_table() -> dict[str, Any]:
    """``workloads.toml``: ``workload`` and ``compress`` with the defaults filled in, the tables of suites."""
    with (HERE / "workloads.toml").open("rb") as file:
        table = tomllib.load(file)
    for kind in ("workload", "compress"):
        table[kind] = [table["defaults"] | entry for entry in table[kind]]
    return table


def folder() -> Path:
    """Where the ``.npz`` files are: ``SVMARROW_DATA``, else ``../shared/data`` beside the repository."""
    named = os.environ.get("SVMARROW_DATA")
    return Path(named) if named else HERE.parents[2] / "shared" / "data"


def available(workload: dict[str, Any]) -> bool:
    """Whether the rows of a workload can be had here."""
    return "file" not in workload or (folder() / f"{workload['file']}.npz").is_file()


def load(workload: dict[str, Any], limit: int | None = None) -> Problem:
    """Load, scale and split a workload; ``limit`` keeps so many training rows (and half as many test rows).

    Raises
    ------
    DataMissingError
        The file is not in the data folder.
    """
    make = _GENERATORS.get(workload.get("generator", ""))
    parts = read_file(workload["file"]) if make is None else make(workload)
    rng = np.random.default_rng(SEED)
    if len(parts) == 4:
        X, y, X_test, y_test = parts
    else:
        X, y = parts
        order = rng.permutation(X.shape[0])
        test, train = np.sort(order[: workload["test"]]), np.sort(order[workload["test"] :])
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    if limit is not None:
        X, y = _thin(X, y, limit, rng)
        X_test, y_test = _thin(X_test, y_test, limit // 2, rng)
    X, X_test = _scale(workload["scale"], X, X_test)
    classes, y = np.unique(y, return_inverse=True)
    # A test class that training never saw counts as an error for every engine: give it an index of its own.
    place = np.searchsorted(classes, y_test).clip(0, len(classes) - 1)
    y_test = np.where(classes[place] == y_test, place, len(classes))
    return Problem(X, y.astype(np.int64), X_test, y_test.astype(np.int64))


def read_file(name: str) -> tuple[Any, ...]:
    """``X, y`` and, where the file has them, ``X_test, y_test``."""
    path = folder() / f"{name}.npz"
    if not path.is_file():
        raise DataMissingError(f"{path} is not there: set SVMARROW_DATA to the folder that holds it")
    with np.load(path, allow_pickle=False) as z:
        if "indptr" not in z:
            return tuple(z[name] for name in ("X", "y", "X_test", "y_test") if name in z)

        def csr(prefix: str) -> sp.csr_matrix:
            data, indices, indptr = (z[prefix + part] for part in ("data", "indices", "indptr"))
            matrix = sp.csr_matrix(
                (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32)),
                shape=tuple(z[prefix + "shape"]),
            )
            matrix.sort_indices()
            return matrix

        train = csr(""), z["y"]
        return (*train, csr("test_"), z["y_test"]) if "test_indptr" in z else train


def _moons(workload: dict[str, Any]) -> tuple[Any, ...]:
    from sklearn.datasets import make_moons

    n = workload["rows"] + workload["test"]
    X, y = make_moons(n, noise=workload["noise"], random_state=SEED)
    return X, y


def _blobs(workload: dict[str, Any]) -> tuple[Any, ...]:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        workload["rows"] + workload["test"],
        workload["features"],
        n_informative=workload["informative"],
        n_clusters_per_class=workload["clusters_per_class"],
        random_state=SEED,
    )
    return X, y


def _digits(_: dict[str, Any]) -> tuple[Any, ...]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, y


_GENERATORS = {"moons": _moons, "blobs": _blobs, "digits": _digits}


def _thin(X: Any, y: np.ndarray, limit: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    if len(y) <= limit:
        return X, y
    keep = np.sort(rng.permutation(len(y))[:limit])
    return X[keep], y[keep]


def _scale(how: str, X: Any, X_test: Any) -> tuple[Any, Any]:
    if sp.issparse(X):
        if how != "raw":
            raise ValueError(f"scale={how!r} is not allowed for a sparse workload: it must be 'raw'")
        return X, X_test
    X, X_test = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, X_test))
    if how == "pixels":
        return X / 255.0, X_test / 255.0
    if how == "standardise":
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        return (X - mean) / deviation, (X_test - mean) / deviation
    if how != "raw":
        raise ValueError(f"scale={how!r} is not allowed: it must be 'raw', 'pixels' or 'standardise'")
    return X, X_test
