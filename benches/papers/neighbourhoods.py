"""How many neighbourhoods the kernels of many machines tell apart, and where `compress` says a word of it.

``python benches/papers/neighbourhoods.py``

The machines of ``promises.py``: every set at 600 training rows, at 3,000 where there are as many, and at
1,500 with four times the gamma, and its hard cases. For those with a word, what compressing to a fifth, to a
half and to all of the effective rank loses on rows that nothing has seen. Some five minutes on one core.
"""

from __future__ import annotations

import argparse
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from common import folder, run
from promises import HARD, MACHINES, NUMBERS, all_rows
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, compress
from svmarrow.exceptions import SizeWarning
from svmarrow.reduced_set.construction import effective_clusters, warn_too_few_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A machine's name, the machine not yet fitted, its rows, and rows to test it on.
Case = tuple[str, Any, tuple[Any, np.ndarray], tuple[Any, np.ndarray]]


def sets(most: int, factor: float | None) -> Iterator[Case]:
    """A machine on so many rows of each set; ``factor``: gamma is so many times 1 over the columns."""
    for name in sorted(path.stem for path in folder().glob("*.npz")):
        X, y = all_rows(name)
        if (most == 3000 and y.size < 5000) or (factor and (sp.issparse(X) or name in NUMBERS)):
            continue
        order = np.random.default_rng(0).permutation(y.size)
        train, test = np.split(order[: min(most, int(0.4 * y.size)) + 5000], [min(most, int(0.4 * y.size))])
        if not sp.issparse(X):
            X = StandardScaler().fit(X[train]).transform(X)
        settings = {"C": 10.0, **MACHINES.get(name, {}), "n_jobs": 1}
        if factor:
            settings["gamma"] = factor / X.shape[1]
        machine = SVR(**settings) if name in NUMBERS else SVC(multi_class="ovr", **settings)
        yield (
            f"{name}, {most} rows" + f", {factor} / d" * bool(factor),
            machine,
            (X[train], y[train]),
            (X[test], y[test]),
        )


def hard() -> Iterator[Case]:
    """The hard cases."""
    for name, (draw, C, gamma) in HARD.items():
        rng = np.random.default_rng(0)
        yield name, SVC(C=C, gamma=gamma, n_jobs=1), draw(rng, 1500), draw(rng, 10_000)


def has_word(expansion: Any, n_vectors: int) -> bool:
    """Whether `compress` says that so many vectors are few."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_too_few_vectors(expansion, n_vectors, 1)
    return any(issubclass(word.category, SizeWarning) for word in told)


def losses(
    machine: Any, rows: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], rank: float
) -> list[str]:
    """Points of accuracy lost with a share of the rank."""
    found = []
    for share in (0.2, 0.5, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SizeWarning)
            small = compress(
                machine, *rows, n_vectors=max(2, int(share * rank)), method="gradient", random_state=0
            )
        found.append(f"{100 * (machine.score(*test) - small.score(*test)):.1f}")
    return found


def main() -> int:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    print("| machine | vectors | effective rank | near | word at a fifth | lost at .2, .5, 1 of the rank |")
    print("|---|---|---|---|---|---|")
    for cases in (sets(600, None), sets(3000, None), sets(1500, 4.0), hard()):
        for name, machine, rows, test in cases:
            expansion = machine.fit(*rows).expansion_
            rank, near = effective_clusters(expansion)
            word = has_word(expansion, int(0.2 * rank))
            lost = ", ".join(losses(machine, rows, test, rank)) if word else ""
            print(
                f"| {name} | {expansion.n_vectors} | {rank:.1f} | {near:.2f} | {'yes' * word} | {lost} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    run(main)
