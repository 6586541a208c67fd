"""Section 4.5 of Rifkin (2002): what kernel products that several machines share save, in training and after.

A part of ``rifkin_multiclass.py``. The naive way trains each machine by itself, with its own cache of the
same size, and asks each for its outputs; the shared way has one cache for all, and one pool of vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from common import Report, load, processor_times

from svmarrow import SVC, CodedClassifier, RLSClassifier
from svmarrow.multiclass import make_code

if TYPE_CHECKING:
    import argparse

#: Rows are divided by the first number; C and gamma.
SETS = {"usps": (1.0, 10.0, 1 / 128), "satimage": (100.0, 2.0, 8.0), "letter": (15.0, 10.0, 4.0)}
CODES = ("ovr", "ovo", "dense")


def shared(report: Report, options: argparse.Namespace) -> None:
    """Both ways, by codes and sizes of the cache."""
    training, answering = [], []
    for name, (scale, C, gamma) in SETS.items():
        data = load(name, np.float32)
        step = 20 if options.quick else 4 if name == "letter" else 1
        X, y, T = data.X[::step] / scale, data.y[::step], data.X_test / scale
        classes = np.unique(y)
        for code_name in CODES:
            code = make_code(code_name, len(classes), random_state=0, n_draws=500)
            parts = columns(code.matrix, np.searchsorted(classes, y))
            for cache in (10.0, 200.0):
                svc = SVC(C=C, gamma=gamma, cache_size=cache, n_jobs=1)
                works = [
                    lambda s=svc, c=code, X=X, y=y: CodedClassifier(s, c, n_jobs=1).fit(X, y),
                    lambda X=X, parts=parts, of=(C, gamma, cache): apart(X, parts, *of),
                ]
                (together, alone), _, (model, machines) = processor_times(works, 1)
                values = [
                    model.certificate_.kernel_values / 1e6,
                    sum(one.certificate_.kernel_values for one in machines) / 1e6,
                ]
                training.append([name, code_name, len(parts), f"{cache:g}", *values, values[1] / values[0]])
                training[-1] += [together, alone, alone / together]
            pooled = model.expansion_.n_vectors
            each = sum(one.expansion_.n_vectors for one in machines)
            asked = [
                lambda m=model, T=T: m.outputs(T),
                lambda of=machines, T=T: [one.decision_function(T) for one in of],
            ]
            (one, several), _, _ = processor_times(asked, 1 if options.quick else 3)
            answering.append(
                [name, X.shape[1], code_name, pooled, each, each / pooled, one, several, several / one]
            )
    report.table(
        "Training",
        [
            "set",
            "code",
            "machines",
            "cache, MB",
            "kernel values",
            "apart",
            "times",
            "seconds",
            "apart",
            "times",
        ],
        training,
    )
    report.table(
        "Kernel products of an answer, and seconds for the test rows",
        [
            "set",
            "columns",
            "code",
            "vectors of the pool",
            "of the machines",
            "times",
            "seconds",
            "apart",
            "times",
        ],
        answering,
    )
    small, large = ([row[9] for row in training if row[3] == size] for size in ("10", "200"))
    later = [row[8] for row in answering]
    report.say(
        f"Separate machines take {min(large):.1f} to {max(large):.1f} times the time to train with 200 MB, "
        f"{min(small):.1f} to {max(small):.1f} times with 10 MB, and {min(later):.1f} to {max(later):.1f} "
        f"times the time to predict. RLS machines share the whole system: {factored(options)}"
    )
    report.numbers["shared"] = {"training": training, "answering": answering}


def columns(matrix: np.ndarray, labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and signs of each machine."""
    signs = matrix[labels]
    return [(np.flatnonzero(column), column[column != 0]) for column in signs.T]


def apart(
    X: Any, parts: list[tuple[np.ndarray, np.ndarray]], C: float, gamma: float, cache: float
) -> list[SVC]:
    """A machine for each column, which knows nothing of the others."""
    return [SVC(C=C, gamma=gamma, cache_size=cache, n_jobs=1).fit(X[rows], signs) for rows, signs in parts]


def factored(options: argparse.Namespace) -> str:
    """A sentence: one factor for all columns of satimage, and a factor for each."""
    data = load("satimage", np.float64)
    step = 10 if options.quick else 2
    X, y = data.X[::step] / 100, data.y[::step]
    model = RLSClassifier(1.0, gamma=8.0, n_jobs=1, leave_one_out=False)
    works = [
        lambda: model.fit(X, y),
        lambda: model.fit(X, np.where(y == 1, 1, -1)),
    ]
    (six, one), _, _ = processor_times(works, 1 if options.quick else 3)
    return f"six machines of {len(y):,} rows of satimage take {six / one:.2f} times the time of one."
