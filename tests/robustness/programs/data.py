"""Random data sets as source text.

A data set is a list of Python lines that run in order and leave these names: the training samples `X`,
targets `y` and weights `w` (None for equal weights), and fresh samples `T` with targets `y_T`. Optional lines
can be dropped when a failure is simplified, and sizes can be reduced, because all other lines still run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names that the lines use.
NAMES = {"np": np, "pd": pd, "sparse": sparse}
#: Minimum number of training samples after simplification.
MIN_SAMPLES = 6

SAMPLES = {
    "A = rng.normal(size=(n + m, d))": 6,
    "A = rng.uniform(size=(n + m, d))": 3,
    "A = rng.normal(size=(n + m, d)) + 2.0 * rng.normal(size=(5, d))[rng.integers(5, size=n + m)]": 3,
    "A = rng.standard_t(2, size=(n + m, d))": 1,
    "A = rng.integers(0, 256, size=(n + m, d)).astype(np.uint8)": 1,
    "A = rng.poisson(1.0, size=(n + m, d))": 1,
    "A = rng.integers(0, 2, size=(n + m, d)).astype(bool)": 1,
}
#: The signal behind the targets, computed from the standardised samples.
STANDARDISE = "Z = (A - A.mean(axis=0)) / (A.std(axis=0) + 1e-9)"
SIGNALS = {
    "signal = Z @ rng.normal(size=d)": 3,
    "signal = np.sin(2.0 * Z[:, 0]) + (Z**2).mean(axis=1)": 3,
    "signal = Z @ rng.normal(size=d) + rng.normal(size=n + m)": 2,
    "signal = rng.normal(size=n + m)": 2,
}
#: Changes of the samples, in this order; each is drawn with its probability.
CHANGES = {
    "A = A.astype(np.float64) * 10.0 ** rng.uniform(-3, 3, size=d)": 0.08,
    "A = A * 1e-6": 0.05,
    "A = A * 1e-3": 0.05,
    "A = A * 1e3": 0.05,
    "A = A * 1e6": 0.04,
    "A = A + 100.0": 0.06,
    "A = A - 1e4": 0.04,
    "A = A + 1e6": 0.02,
    "A[:, 0] = 1": 0.06,
    "A[:, -1] = A[:, 0]": 0.05,
    "A[: n // 3] = A[n // 3 : 2 * (n // 3)]": 0.1,
    "A = np.round(A + 0.0, 1)": 0.06,
    "A = A * (A > np.median(A))": 0.08,
    "A[n // 2] = A[n // 2] * (30 if A.dtype.kind == 'f' else 1)": 0.03,
}
LAYOUTS = {
    "": 8,
    "A = A.astype(np.float32)": 3,
    "A = np.asfortranarray(A)": 1,
    "A = np.repeat(A, 2, axis=1)[:, ::2]": 1,
    "A = sparse.csr_array(A)": 2,
    'A = pd.DataFrame(A, columns=[f"column {j}" for j in range(A.shape[1])])': 2,
}
#: Columns that only tabular estimators take.
TABLE = {
    'A = pd.DataFrame(A, columns=[f"column {j}" for j in range(A.shape[1])])': 1.0,
    'A["colour"] = rng.choice(["red", "green", "blue"], size=n + m)': 0.7,
    'A["size"] = pd.Categorical(rng.choice(["small", "large"], size=n + m))': 0.3,
    "A.iloc[::7, 0] = np.nan": 0.4,
    'A["shop"] = [f"shop {j}" for j in rng.integers(0, 45, n + m)]': 0.25,
    'A["when"] = pd.Timestamp("2024-02-28") + pd.to_timedelta(rng.integers(9999, size=n + m), unit="h")': 0.3,
    'A["text"] = pd.date_range("2024-02-28", periods=n + m, freq="31h").astype(str)': 0.1,
    "A.iloc[::9, -1] = None": 0.2,
}
LABELS = {
    "names = np.arange(k)": 4,
    "names = np.arange(k) - 1": 2,
    "names = 10 * np.arange(k)[::-1]": 1,
    "names = np.array(list('pqrstu'))[:k]": 3,
    "names = np.array(['left', 'right', 'äußere', 'x y', '1', ''], dtype=object)[:k]": 1,
    "names = np.arange(k) + 0.0": 1,
    "names = np.array([False, True])": 1,
}
SHARES = {
    "limits = np.linspace(0, 1, k + 1)[1:-1]": 5,
    "limits = 1 - 0.4 ** np.arange(1, k)": 2,
    "limits = 1 - 0.1 * np.arange(1, k)[::-1] / k": 2,
}
NUMBERS = {
    "y = signal": 5,
    "y = signal * 1e-3": 1,
    "y = signal * 1e-6": 1,
    "y = signal * 1e3": 1,
    "y = signal + 1e4": 1,
    "y = np.round(signal).astype(int)": 1,
    "y = np.zeros(n + m)": 0.3,
}
WEIGHTS = {
    "w = None": 10,
    "w = rng.uniform(0.1, 2.0, size=n)": 2,
    "w = rng.integers(0, 4, size=n)": 2,
    "w = np.where(np.arange(n) % 3 == 0, 0.0, 1.0)": 1,
    "w = np.where(y == y[0], 0.0, 1.0)": 0.5,
    "w = np.full(n, 1e-3)": 0.5,
    "w = np.full(n, 1e3)": 0.5,
}


def choose(rng: np.random.Generator, options: Any) -> Any:
    """One of a list, or a key of a dict of relative frequencies."""
    if isinstance(options, dict):
        shares = np.array(list(options.values()), dtype=float)
        return list(options)[int(rng.choice(len(options), p=shares / shares.sum()))]
    return options[int(rng.integers(len(options)))]


@dataclass(frozen=True)
class Data:
    """A data set.

    Attributes
    ----------
    task : {"classes", "numbers", "samples"}
        The kind of the targets; "samples" has none.
    n, m, d : int
        Numbers of training samples, fresh samples and features.
    k : int
        Number of classes, or of targets.
    lines : tuple of (str, bool)
        Lines after the one that defines the sizes, and whether each is optional.
    """

    task: str
    seed: int
    n: int
    m: int
    d: int
    k: int
    lines: tuple[tuple[str, bool], ...]

    @property
    def source(self) -> str:
        sizes = f"n, m, d, k = {self.n}, {self.m}, {self.d}, {self.k}"
        return "\n".join(
            [f"rng = np.random.default_rng({self.seed})", sizes, *(line for line, _ in self.lines)]
        )

    def has(self, text: str) -> bool:
        """Whether a line contains this text."""
        return any(text in line for line, _ in self.lines)

    @property
    def is_weighted(self) -> bool:
        return sum(line.startswith("w = ") for line, _ in self.lines) > 1

    def build(self) -> dict[str, Any]:
        """Runs the lines and returns the names that they define."""
        names = dict(NAMES)
        exec(self.source, names)
        return names

    def simpler(self) -> Iterator[Data]:
        """Data sets with one thing less."""
        for place, (_, optional) in enumerate(self.lines):
            if optional:
                yield replace(self, lines=self.lines[:place] + self.lines[place + 1 :])
        for n in (self.n // 4, self.n // 2, self.n * 3 // 4):
            if MIN_SAMPLES <= n < self.n:
                yield replace(self, n=n)
        if self.m > 4:
            yield replace(self, m=max(4, self.m // 4))
        if self.d > 1:
            yield replace(self, d=max(1, self.d // 4))
            yield replace(self, d=self.d - 1)
        if self.k > 2:
            yield replace(self, k=self.k - 1)


def draw(
    rng: np.random.Generator,
    task: str,
    *,
    positive: bool = False,
    gram: bool = False,
    several: bool = False,
    is_sparse_allowed: bool = True,
    table: bool = False,
) -> Data:
    """Draws a data set.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all decisions.
    task : {"classes", "numbers", "samples"}
        The kind of the targets.
    positive : bool
        Whether samples must not be negative, which the chi-squared kernel requires.
    gram : bool
        Whether `X` and `T` are kernel values with the training samples.
    several : bool
        Whether there may be several targets.
    is_sparse_allowed : bool
        Whether samples may be sparse.
    table : bool
        Whether there may be columns of text, and gaps.
    """
    n = int(choose(rng, {10: 1, 25: 3, 40: 5, 60: 5, 100: 4, 200: 2, 500: 0.5, 1500: 0.1, 3000: 0.05}))
    n += int(rng.integers(-n // 5, n // 5 + 1))
    d = int(choose(rng, {1: 2, 2: 4, 3: 4, 5: 4, 10: 2, 40: 1, 150: 0.3}))
    k = int(choose(rng, {2: 6, 3: 3, 4: 1, 6: 0.5}))
    if task != "classes":
        k = 2 if several and k > 2 else 1
    lines: list[tuple[str, bool]] = [(choose(rng, SAMPLES), False), (STANDARDISE, False)]
    lines.append((choose(rng, SIGNALS), False))
    lines += _targets(rng, task, k)
    lines += [(line, True) for line, share in CHANGES.items() if rng.random() < share]
    if positive or gram:
        lines.append(
            ("A = np.abs(1.0 * A - 1.0 * A.min())" if positive else "A = np.asarray(A, dtype=float)", False)
        )
    if gram:
        lines.append(("A = np.exp(-((Z[:, None] - Z[None]) ** 2).mean(axis=2))[:, :n]", False))
        if rng.random() < 0.4:
            lines.append(("A[: n // 2, n // 2 :] *= 0.5", True))
    layout = choose(rng, LAYOUTS)
    if table and rng.random() < 0.5:
        lines.append(("A = A.astype(np.float64)", False))
        lines += [(line, share < 1.0) for line, share in TABLE.items() if rng.random() < share]
    elif layout and (is_sparse_allowed or "sparse" not in layout):
        lines.append((layout, True))
    lines.append(("X, T, y, y_T = A[:n], A[n:], y[:n], y[n:]", False))
    weights = choose(rng, WEIGHTS)
    lines.append(("w = None", False))
    if weights != "w = None" and (task == "classes" or "y ==" not in weights):
        lines.append((weights, True))
    return Data(task, int(rng.integers(2**31)), n, max(20, min(n, 200)), d, k, tuple(lines))


def _targets(rng: np.random.Generator, task: str, k: int) -> list[tuple[str, bool]]:
    if task == "samples":
        return [("y = np.ones(n + m)", False)]
    if task == "numbers":
        lines = [(choose(rng, NUMBERS), False)]
        return [*lines, ("y = np.column_stack([y, np.flip(y)])", True)] if k > 1 else lines
    names = choose(rng, LABELS)
    if "False" in names and k > 2:
        names = "names = np.arange(k)"
    return [
        (names, False),
        (choose(rng, SHARES), False),
        ("y = names[np.digitize(signal, np.quantile(signal, limits))]", False),
    ]
