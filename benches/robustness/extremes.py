"""Every learner and reducer on numbers at the ends of their range: an answer that is finite, or words.

    python benches/robustness/extremes.py                 # all cases in two processes, a table
    python benches/robustness/extremes.py --only SVC      # cases whose name holds a word
    python benches/robustness/extremes.py --every 7       # one case of seven
    python benches/robustness/extremes.py --json out.json # every case with what came of it

A case is a learner with parameters, rows, targets and weights. What may come of it:

- ``answer``: what the model says of the rows, its coefficients and its certificate are finite;
- ``warned``: the same, and a `ConvergenceWarning` says that the tolerance was not reached;
- ``refused``: a `ValueError` whose text names what is wrong with rows, kernel or parameters;
- anything else is a fault: numbers that are not finite without a word, a certificate of such, an error of
  another kind or without a cause, a warning of NumPy's, a case without an end.

A part of the cases, the same every time, runs in ``tests/robustness/test_extremes.py``.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import multiprocessing
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).resolve().parent))

from extreme_cases import (
    AIMS,
    BASE,
    FORMS,
    FUNCTIONS,
    LABELS,
    MATRICES,
    METHODS,
    PAPER_METHODS,
    QUIET,
    TARGETS,
    WEIGHTS,
    Case,
    N,
    cases,
    raises,
    rows,
)
from reports import keep

import svmarrow
import svmarrow.preprocessing
from svmarrow import KernelExpansion, compress, compression_path, quantize
from svmarrow.papers import reduced_set

#: Seconds of a processor after which a case has no end.
LIMIT = 30.0


class NoEnd(BaseException):
    """A case takes longer than `LIMIT`."""


def _late(*_: object) -> None:
    raise NoEnd


#: What a refusal may name.
NAMED = re.compile(
    r"\b(X|y|row|rows|column|columns|vectors|kernel|gamma|coef0|degree|sample_weight|weights?|alpha|alphas|C|nu|"
    r"epsilon|delta|eta|tol|targets?|coefficients?|class_weight|n_vectors)\b"
)


def outcome(case: Case) -> tuple[str, str]:
    """A word and, for all but answers, what was said."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = _run(case)
        except NoEnd:
            return "no end", f"more than {LIMIT} s"
        except ZeroDivisionError as error:
            mine = case.function is not None and FUNCTIONS[case.function] is raises
            return ("refused" if mine else "wrong error"), repr(error)
        except (ValueError, OverflowError) as error:
            text = str(error)
            # Rounding cannot make these indefinite in exact numbers: the text has to say what did.
            if "not positive definite" in text and not NAMED.search(text.split("not positive definite")[1]):
                return "unnamed", text
            return ("refused" if NAMED.search(text) else "unnamed"), text
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            return "wrong error", repr(error)
    if found is None:
        return "left out", ""
    bad = [
        name for name, values in found.items() if not np.isfinite(np.asarray(values, dtype=np.float64)).all()
    ]
    said = [str(item.message) for item in told]
    known = [item for item in told if issubclass(item.category, (ConvergenceWarning, UserWarning))]
    if bad:
        certified = [name for name in bad if name.startswith("certificate")]
        word = "NaN certificate" if certified else "not finite"
        return word, f"{', '.join(bad)}; stop {found.get('_stop', '-')}; said {said[:1]}"
    if len(known) < len(told):
        return "noise", next(str(item.message) for item in told if item not in known)
    return ("warned", said[0]) if told else ("answer", "")


def _public(name: str) -> Any:
    """Return a class by its bare name, from the module that is its home."""
    homes = (
        *(svmarrow, svmarrow.least_squares, svmarrow.svm, svmarrow.model_selection, svmarrow.online),
        svmarrow.preprocessing,
    )
    return next(getattr(home, name) for home in homes if hasattr(home, name))


def _fitted(case: Case, X: Any) -> Any:
    parameters = dict(case.parameters)
    if case.function is not None:
        parameters["kernel"] = FUNCTIONS[case.function]
    learner = _public(case.learner.split()[0])(**parameters, n_jobs=1)
    numbers = case.learner.endswith(("Regressor", "SVR")) or case.parameters.get("task") == "regression"
    y = (TARGETS if case.targets is None else AIMS[case.targets]) if numbers else LABELS
    if case.matrix is not None:
        X = MATRICES[case.matrix](BASE @ BASE.T)
    arguments = {} if case.weights is None else {"sample_weight": WEIGHTS[case.weights]}
    return learner.fit(X, y, **arguments), X


def _run(case: Case) -> dict[str, Any] | None:
    """Numbers by name; None where the rows cannot be had."""
    X = rows(case.rows, case.form)
    if X is None:
        return None
    if case.parameters.get("kernel") == "chi2":
        X = abs(X)
    if case.work == "expansion":
        described = {key: value for key, value in case.parameters.items() if key not in QUIET}
        model = KernelExpansion(X, np.eye(N)[:, :2] - 0.5 * np.eye(N)[:, 1:3], [1.0, 2.0], **described)
        return {"outputs": model.decision_function(X)}
    if case.work == "predict":
        ordinary = FORMS[case.form](abs(BASE) if case.parameters.get("kernel") == "chi2" else BASE)
        model, _ = _fitted(case, ordinary[:, : X.shape[1]])
        return _numbers(model, X)
    if case.work in ("ExactCascade", "CalibratedCascade", "CodedClassifier"):
        inside = svmarrow.SVC(**case.parameters, n_jobs=1)
        made = {
            "ExactCascade": lambda: svmarrow.cascade.ExactCascade(inside, n_jobs=1),
            "CalibratedCascade": lambda: svmarrow.cascade.CalibratedCascade(
                inside, [2, 5], epsilon=0.4, validation_fraction=0.4, random_state=0, n_jobs=1
            ),
            "CodedClassifier": lambda: svmarrow.CodedClassifier(inside, "ovr", random_state=0, n_jobs=1),
        }[case.work]()
        return _numbers(made.fit(X, LABELS), X)
    model, X = _fitted(case, X)
    if case.work == "compact":
        return _numbers(quantize(model), X)
    if case.work in METHODS:
        options = METHODS[case.work] | {"method": case.work, "n_jobs": 1}
        if case.work == "gradient":
            return _numbers(compress(model, X, n_vectors=6, **options), X)
        every_size = reduced_set.path if case.work in PAPER_METHODS else compression_path
        small = every_size(model, n_vectors=6, **options)
        found = _numbers(small[small.sizes[-1]], X)
        norms = getattr(every_size(model, **options), "residual_norms", None)
        return found | ({} if norms is None else {"residual norms": norms})
    return _numbers(model, X)


def _numbers(model: Any, X: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("decision_function", "score_samples"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    if hasattr(model, "transform"):
        moved = model.transform(X)
        found["transform"] = moved.data if sp.issparse(moved) else moved
        found["scales_"] = model.scales_
    answers = np.asarray(model.predict(X)) if hasattr(model, "predict") else np.zeros(0)
    if answers.dtype.kind == "f":
        found["predict"] = answers
    expansion = getattr(model, "expansion_", None)
    if expansion is not None:
        found |= {"coefficients": expansion.coefficients, "intercepts": expansion.intercepts}
    for name in ("coef_", "intercept_", "loo_error_", "loo_prediction_", "loo_decision_", "alpha_", "gamma_"):
        value = getattr(model, name, None)
        if value is not None and not sp.issparse(value):
            found[name] = value
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        found |= {
            f"certificate.{name}": getattr(certificate, name)
            for name in ("dual", "primal", "gap", "violation")
        }
        found["_stop"] = 0.0
    return found


def guarded(case: Case) -> tuple[str, str]:
    """`outcome` under the limit of processor time; POSIX only."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return outcome(case)
    except NoEnd:
        return "no end", f"more than {LIMIT} s"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


FINE = ("answer", "warned", "refused", "left out")


def _part(numbers: list[Case]) -> list[tuple[str, str]]:
    return [guarded(case) for case in numbers]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="one case of so many")
    parser.add_argument("--json", type=Path, help="every case with what came of it")
    parser.add_argument("--output", type=Path, help="JSON file of the table")
    chosen = parser.parse_args()
    todo = [case for case in cases() if chosen.only in str(case)][:: chosen.every]
    parts = [todo[start : start + 50] for start in range(0, len(todo), 50)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(chosen.jobs, context) as pool:
        done = [result for part in pool.map(_part, parts) for result in part]
    table: collections.Counter[tuple[str, str]] = collections.Counter()
    said: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for case, (word, text) in zip(todo, done, strict=True):
        table[case.learner if case.work == "fit" else case.work, word] += 1
        if word not in ("answer", "left out"):
            said[word, re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", text)[:160]].append(f"{case}: {text}")
    words = sorted({word for _, word in table})
    print(f"{'':28}" + "".join(f"{word:>16}" for word in words))
    for name in dict.fromkeys(name for name, _ in table):
        print(f"{name:28}" + "".join(f"{table[name, word]:>16}" for word in words))
    faults = 0
    for (word, text), found in sorted(said.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"\n{word}, {len(found)} times: {text}\n    {found[0][:300]}\n    {found[-1][:300]}")
        faults += len(found) if word not in FINE else 0
    if chosen.json:
        lines = [
            dataclasses.asdict(case) | {"outcome": word, "said": text}
            for case, (word, text) in zip(todo, done, strict=True)
        ]
        chosen.json.write_text(json.dumps(lines, default=str))
    rows = {name: {word: table[name, word] for word in words} for name in dict.fromkeys(n for n, _ in table)}
    keep(chosen.output, {"cases": len(todo), "faults": faults, "outcomes": rows})
    print(f"\n{len(todo)} cases, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
