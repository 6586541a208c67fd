"""The commands ``svm-train``, ``svm-predict`` and ``svm-scale``, which the core runs, and ``grid``.

The grid search is that of LIBSVM's ``grid.py``, in one process.
"""

from __future__ import annotations

import re
import sys
import warnings
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from sklearn.exceptions import FitFailedWarning

from svmarrow import _core
from svmarrow._support.displays import GridScoresDisplay, image_axes
from svmarrow._support.rows import core_rows, rows_of, threads
from svmarrow._support.system import end_output, reason, write_text
from svmarrow.io import load_svmlight
from svmarrow.libsvm._svmutil import KERNELS, print_warning, svm_parameter, svm_problem
from svmarrow.model_selection.estimators import SVCCV

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "PROGRAMS",
    "run",
    "search",
    "svm_predict_main",
    "svm_scale_main",
    "svm_train_main",
]

# --- the grid search ---

GRID_USAGE = """\
Usage: svmarrow grid [grid options] [options of svm-train] dataset
-log2c begin,end,step|null  exponents of C (default -5,15,2); null: C is not searched
-log2g begin,end,step|null  exponents of gamma (default 3,-15,-2); null: gamma is not searched
-v n                        folds of the cross-validation (default 5)
-out file|null              file of the results (default dataset.out)
-png file                   picture of the results; needs the extra 'plot'
-resume [file]              skip the points of a file of results (default dataset.out)
"""

#: Largest magnitude of an exponent of C or gamma.
_MAX_EXPONENT = 300.0
#: Largest number of values of C or gamma.
_MAX_VALUES = 10_000

#: A point of the grid: the exponents of C and gamma, None where one is not searched.
Point = tuple[float | None, float | None]


class GridTask(NamedTuple):
    """The options of a search."""

    log2c: list[float] | None
    log2g: list[float] | None
    out: str | None
    png: str | None
    resume: str | None
    parameter: svm_parameter
    dataset: str

    @classmethod
    def of(cls, arguments: Sequence[str]) -> GridTask:
        """Reads the arguments; raises a ValueError for wrong ones."""
        return _task_of(arguments)


def _exponents(option: str, text: str) -> list[float] | None:
    """The values of ``begin,end,step``."""
    if text == "null":
        return None
    try:
        begin, end, step = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"{option} {text}: the value must be begin,end,step or null") from None
    if not (max(abs(begin), abs(end)) <= _MAX_EXPONENT and 0.0 < abs(step) < np.inf):
        raise ValueError(
            f"{option} {text}: begin and end must lie between -{_MAX_EXPONENT:g} and {_MAX_EXPONENT:g}, and "
            "step must not be 0"
        )
    if (end - begin) * step < 0.0 or abs((end - begin) / step) > _MAX_VALUES:
        raise ValueError(
            f"{option} {text}: the range must have a value and at most {_MAX_VALUES}: change step"
        )
    values = []
    while (begin - end) * np.sign(step) <= 0.0:
        values.append(begin)
        begin += step
        if begin == values[-1]:
            raise ValueError(f"{option} {text}: step is too small")
    return values


def _task_of(arguments: Sequence[str]) -> GridTask:
    *options, dataset = arguments
    title = Path(dataset).name
    ranges: dict[str, list[float] | None] = {
        "-log2c": list(range(-5, 16, 2)),
        "-log2g": list(range(3, -16, -2)),
    }
    files: dict[str, str | None] = {"-out": f"{title}.out", "-png": None, "-resume": None}
    folds, passed = "5", []
    position = 0
    while position < len(options):
        option = options[position]
        position += 1
        if option in ("-c", "-g"):
            raise ValueError(f"{option} is not allowed: use -log2c and -log2g")
        if option == "-svmtrain":
            raise ValueError("-svmtrain is not supported: the search trains in its own process")
        if option not in (*ranges, *files, "-v", "-gnuplot"):
            passed.append(option)
            continue
        if option == "-resume" and (position == len(options) or options[position].startswith("-")):
            files[option] = f"{title}.out"
            continue
        if position == len(options):
            raise ValueError(f"{option} needs a value")
        value = options[position]
        position += 1
        if option in ranges:
            ranges[option] = _exponents(option, value)
        elif option == "-v":
            folds = value
        elif option == "-gnuplot":
            if value != "null":
                raise ValueError(f"-gnuplot {value} is not supported: -png draws without gnuplot")
        else:
            files[option] = None if option == "-out" and value == "null" else value
    parameter = svm_parameter([*passed, "-v", folds])
    if parameter.svm_type > 2:
        raise ValueError(
            f"-s {parameter.svm_type}: the search maximizes accuracy, which regression does not have; "
            "svmarrow.SVRCV searches for regression"
        )
    log2c, log2g = ranges["-log2c"], ranges["-log2g"]
    if log2c is None and log2g is None:
        raise ValueError("-log2c null and -log2g null: at least one of C and gamma must be searched")
    if files["-png"] is not None and (log2c is None or log2g is None):
        raise ValueError("-png needs both -log2c and -log2g")
    return GridTask(log2c, log2g, files["-out"], files["-png"], files["-resume"], parameter, dataset)


def _from_the_middle(values: list[float]) -> list[float]:
    """The order of grid.py: the middle, then the halves in turn."""
    if len(values) <= 1:
        return values
    middle = len(values) // 2
    left, right = _from_the_middle(values[:middle]), _from_the_middle(values[middle + 1 :])
    order = [values[middle]]
    for i in range(max(len(left), len(right))):
        order += left[i : i + 1] + right[i : i + 1]
    return order


def _points(task: GridTask) -> list[Point]:
    """All points in the order in which grid.py refines the grid."""
    cs: list[float | None] = [None] if task.log2c is None else list(_from_the_middle(task.log2c))
    gs: list[float | None] = [None] if task.log2g is None else list(_from_the_middle(task.log2g))
    points: list[Point] = []
    i = j = 0
    while i < len(cs) or j < len(gs):
        if i / len(cs) < j / len(gs):
            points += [(cs[i], g) for g in gs[:j]]
            i += 1
        else:
            points += [(c, gs[j]) for c in cs[:i]]
            j += 1
    return points


def _resumed(path: str | None) -> dict[Point, float]:
    """The results of an earlier search."""
    rates: dict[Point, float] = {}
    for line in [] if path is None else Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        found = dict(re.findall(r"(log2c|log2g|rate)=(-?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)", line))
        if "rate" in found:
            c, g = (float(found[key]) if key in found else None for key in ("log2c", "log2g"))
            rates[c, g] = float(found["rate"])
    return rates


def _rates(problem: svm_problem, task: GridTask, points: list[Point]) -> dict[Point, float]:
    """The accuracy in percent of each point, with the six digits that ``svm-train`` prints."""
    parameter = task.parameter
    is_plain = parameter.svm_type == 0 and not parameter.probability and parameter.nr_fold < problem.l
    rates = _rates_at_once(problem, parameter, points) if is_plain else {}
    for c, g in points:
        if (c, g) not in rates or np.isnan(rates[c, g]):
            point = copy(parameter)
            point.C = point.C if c is None else 2.0**c
            point.gamma = point.gamma if g is None else 2.0**g
            predictions, _, early = _core.libsvm_cross_validate(
                core_rows(problem.samples), problem.y, point._words(), threads(None)
            )
            for text in early:
                print_warning(text)
            rates[c, g] = _core.libsvm_evaluate(problem.y, predictions, point.svm_type)[0]
    return {point: float(f"{rates[point]:g}") for point in points}


def _rates_at_once(problem: svm_problem, parameter: svm_parameter, points: list[Point]) -> dict[Point, float]:
    """The accuracies by one search; NaN where a fold has a single class."""
    labels, classes, folds, kernel_values = _core.libsvm_folds(
        core_rows(problem.samples), problem.y, parameter._words()
    )
    if len(labels) < 2:
        return {}
    test_parts = [np.sort(fold) for fold in folds if fold.size]
    splits = [(np.setdiff1d(np.arange(problem.l), part), part) for part in test_parts]
    costs = sorted({1.0 if c is None else 2.0**c for c, _ in points})
    default = parameter.gamma or 1.0 / max(1, problem.n)
    has_gamma = KERNELS[parameter.kernel_type] in ("poly", "rbf", "sigmoid")
    gammas = sorted({default if g is None else 2.0**g for _, g in points})
    by_label = dict(zip(parameter.weight_label, parameter.weight, strict=True))
    weights = {c: by_label[label] for c, label in enumerate(labels) if label in by_label}
    grid = SVCCV(
        Cs=costs,
        gammas=gammas,
        cv=splits,
        scoring="accuracy",
        refit=False,
        kernel=KERNELS[parameter.kernel_type],
        degree=parameter.degree,
        coef0=parameter.coef0,
        tol=parameter.eps,
        cache_size=parameter.cache_size,
        class_weight=weights or None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)  # such points are fitted one by one
        grid.fit(problem.samples if kernel_values is None else rows_of(kernel_values), classes)
    sizes = np.array([part.size for part in test_parts])
    scores: NDArray[np.float64] = np.asarray(grid._scores)  # (gammas, Cs, folds)
    accuracies = 100.0 * np.rint(scores * sizes).sum(axis=2) / problem.l
    rates = {}
    for c, g in points:
        row = gammas.index(default if g is None else 2.0**g) if has_gamma else 0
        rates[c, g] = float(accuracies[row, costs.index(1.0 if c is None else 2.0**c)])
    return rates


def search(task: GridTask, say: Callable[[str], None]) -> None:
    """Searches the grid, and prints and writes what grid.py does."""
    axes = None if task.png is None else image_axes()  # fails early without matplotlib
    known = _resumed(task.resume)
    is_kernel = task.parameter.kernel_type == 4
    samples, y = load_svmlight(task.dataset, zero_based=is_kernel)
    problem = svm_problem._of(y, samples, is_kernel)
    points = _points(task)
    new = [point for point in points if point not in known]
    rates = known | (_rates(problem, task, new) if new else {})
    best: Point = (None, None)
    best_rate, lines = -1.0, []
    for is_resumed, (c, g) in [*((True, p) for p in known), *((False, p) for p in new)]:
        rate = rates[c, g]
        is_smaller = rate == best_rate and g == best[1] and c is not None and c < (best[0] or 0.0)
        if rate > best_rate or is_smaller:
            best_rate, best = rate, (c, g)
        named = [entry for entry in zip("cg", (c, g), best, strict=True) if entry[1] is not None]
        worker = "resumed" if is_resumed else "local"
        tops = "".join(f"{name}={2.0 ** (top or 0.0)}, " for name, _, top in named)
        exponents = " ".join(str(value) for _, value, _ in named)
        say(f"[{worker}] {exponents} {rate} (best {tops}rate={best_rate})")
        if not is_resumed:
            lines.append("".join(f"log2{name}={value} " for name, value, _ in named) + f"rate={rate}\n")
    if task.out is not None:
        before = Path(task.out)
        earlier_text = (
            before.read_text(encoding="utf-8") if task.resume is not None and before.exists() else ""
        )
        write_text(task.out, earlier_text + "".join(lines))
    if task.png is not None and task.log2c is not None and task.log2g is not None:
        scores = np.array([[rates[c, g] for c in sorted(task.log2c)] for g in sorted(task.log2g)])
        assert best[0] is not None
        assert best[1] is not None
        display: Any = GridScoresDisplay(
            scores,
            np.exp2(sorted(task.log2c)),
            np.exp2(sorted(task.log2g)),
            (2.0 ** best[0], 2.0 ** best[1]),
        )
        display.plot(axes).figure_.savefig(task.png, dpi=160)
    values = " ".join(str(2.0**value) for value in best if value is not None)
    say(f"{values} {best_rate}")


# --- the programs ---

#: Names of the programs.
PROGRAMS = ("svm-train", "svm-predict", "svm-scale", "grid")

#: What shells report for a program that Ctrl-C ended: 128 + SIGINT.
_INTERRUPTED = 130


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _grid(arguments: Sequence[str]) -> int:
    """Runs ``grid``, whose search and picture are the package's."""
    if not arguments or arguments[0] == "--help":
        sys.stdout.write(GRID_USAGE)
        sys.stdout.flush()
        return 0 if arguments else 1
    try:
        task = GridTask.of(arguments)
    except ValueError as error:
        sys.stderr.write(f"grid: {error}\n{GRID_USAGE}")
        return 1
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print_warning(" ".join(str(message).split()))
        search(task, _say)
        sys.stdout.flush()
    return 0


def run(name: str, arguments: Sequence[str]) -> int:
    """Runs a program and returns its exit code: 0 done, 1 bad input or wrong usage, 130 interrupted."""
    try:
        if name == "grid":
            return _grid(arguments)
        return _core.libsvm_program(name, list(arguments), sys.stdout, sys.stderr, threads(None))
    except KeyboardInterrupt:
        if name == "grid":
            sys.stderr.write("grid: interrupted; nothing was written\n")
        return _INTERRUPTED
    except OSError as error:
        # Programs of the core raise what they could not write after they have reported it.
        if name == "grid" and not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"grid: {reason(error)}\n")
        end_output()
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        sys.stderr.write(f"{name}: {' '.join((str(error) or type(error).__name__).split())}\n")
    return 1


def svm_train_main() -> NoReturn:
    """Runs ``svm-train`` on ``sys.argv``."""
    raise SystemExit(run("svm-train", sys.argv[1:]))


def svm_predict_main() -> NoReturn:
    """Runs ``svm-predict`` on ``sys.argv``."""
    raise SystemExit(run("svm-predict", sys.argv[1:]))


def svm_scale_main() -> NoReturn:
    """Runs ``svm-scale`` on ``sys.argv``."""
    raise SystemExit(run("svm-scale", sys.argv[1:]))
