"""LIBSVM's programs: ``svm-train``, ``svm-predict`` and ``svm-scale``."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from svmarrow._support.files import new_file, write_text
from svmarrow.exceptions import FormatError
from svmarrow.io.svmlight import load_svmlight
from svmarrow.libsvm._grid import GRID_USAGE, GridTask, search
from svmarrow.libsvm._model import svm_load_model, svm_model, svm_save_model
from svmarrow.libsvm._options import check_flag, svm_parameter, take_options, to_float, to_int
from svmarrow.libsvm._problem import dense_columns, read_samples, svm_problem
from svmarrow.libsvm._svmutil import accuracy_line, predict, print_warning, run_training
from svmarrow.libsvm._training import check_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from numpy.typing import NDArray


__all__ = [
    "PROGRAMS",
    "Ranges",
    "read_ranges",
    "run",
    "scaled_lines",
    "svm_predict_main",
    "svm_scale_main",
    "svm_train_main",
    "training_ranges",
    "write_ranges",
]


# --- scaling of data files: the work of ``svm-scale`` ---


class Ranges(NamedTuple):
    """Limits of scaling and the ranges of the features and the target."""

    lower: float
    upper: float
    #: Smallest and largest value of each feature by its index; a feature outside has no range.
    low: dict[int, float]
    high: dict[int, float]
    #: Limits and range of the target: (lower, upper, smallest, largest); None without scaling of it.
    target: tuple[float, float, float, float] | None


def training_ranges(
    X: Any, y: NDArray[np.float64], lower: float, upper: float, target: tuple[float, float] | None
) -> Ranges:
    """The ranges of the features of some rows; a feature that a row does not have is 0 there."""
    # Features that occur, however large their indices are; the others are 0 in all rows.
    order = np.argsort(X.indices, kind="stable")
    present, starts, counts = np.unique(X.indices[order], return_index=True, return_counts=True)
    smallest = np.minimum.reduceat(X.data[order], starts) if present.size else np.empty(0)
    largest = np.maximum.reduceat(X.data[order], starts) if present.size else np.empty(0)
    is_absent = counts < X.shape[0]
    smallest, largest = (
        np.where(is_absent, bound(values, 0.0), values)
        for bound, values in ((np.minimum, smallest), (np.maximum, largest))
    )
    low = dict(zip(present.tolist(), smallest.tolist(), strict=True))
    high = dict(zip(present.tolist(), largest.tolist(), strict=True))
    of_target = None if target is None else (*target, float(y.min()), float(y.max()))
    return Ranges(lower, upper, low, high, of_target)


def write_ranges(path: str | PathLike[str], ranges: Ranges) -> None:
    """Writes the file of ``svm-scale -s``."""
    lines = []
    if ranges.target is not None:
        lower, upper, low, high = ranges.target
        lines += ["y", f"{lower:.17g} {upper:.17g}", f"{low:.17g} {high:.17g}"]
    lines += ["x", f"{ranges.lower:.17g} {ranges.upper:.17g}"]
    lines += [
        f"{index} {low:.17g} {ranges.high[index]:.17g}"
        for index, low in ranges.low.items()
        if low != ranges.high[index]
    ]
    write_text(path, "\n".join(lines) + "\n")


def read_ranges(path: str | PathLike[str]) -> Ranges:
    """Reads the file of ``svm-scale -s``."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise FormatError(f"{os.fspath(path)}: the file is no text") from None
    position = 0

    def numbers(count: int) -> list[float]:
        nonlocal position
        position += 1
        words = lines[position - 1].split() if position <= len(lines) else []
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        if len(values) != count or not np.isfinite(values).all():
            raise FormatError(f"{os.fspath(path)}, line {position}: expected {count} finite numbers")
        return values

    target = None
    if lines[0].strip() == "y":
        position = 1
        target = (*numbers(2), *numbers(2))
    if position >= len(lines) or lines[position].strip() != "x":
        raise FormatError(f"{os.fspath(path)}, line {position + 1}: expected the line 'x'")
    position += 1
    lower, upper = numbers(2)
    low: dict[int, float] = {}
    high: dict[int, float] = {}
    while position < len(lines) and lines[position].strip():
        index, smallest, largest = numbers(3)
        if index != int(index) or index < 0:
            raise FormatError(f"{os.fspath(path)}, line {position}: the index must be an integer")
        low[int(index)], high[int(index)] = smallest, largest
    return Ranges(lower, upper, low, high, target)  # type: ignore[arg-type]


def _interpolate(values: Any, low: Any, high: Any, lower: float, upper: float) -> Any:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        inside = lower + (upper - lower) * (values - low) / (high - low)
    return np.where(values == low, lower, np.where(values == high, upper, inside))


def scaled_lines(X: Any, y: NDArray[np.float64], ranges: Ranges) -> tuple[list[str], int]:
    """The lines of the scaled file, and the number of values in them.

    Features without a range, or whose range is a point, are left out. A feature that a row does not have is
    scaled as 0.
    """
    indices = np.array([i for i in sorted(ranges.low) if ranges.low[i] != ranges.high[i]], dtype=np.int64)
    low = np.array([ranges.low[i] for i in indices.tolist()])
    high = np.array([ranges.high[i] for i in indices.tolist()])
    if ranges.target is not None:
        lower, upper, smallest, largest = ranges.target
        y = _interpolate(y, smallest, largest, lower, upper)
    lines, count = [], 0
    names = [f"{index}:" for index in indices.tolist()]
    block = max(1, 2_000_000 // max(1, indices.size))
    for start in range(0, X.shape[0], block):
        dense = dense_columns(X[start : start + block], indices)
        scaled = _interpolate(dense, low, high, ranges.lower, ranges.upper)
        for target, row in zip(y[start : start + block].tolist(), scaled, strict=True):
            used = np.flatnonzero(row)
            count += used.size
            words = [f"{names[j]}{v:g} " for j, v in zip(used.tolist(), row[used].tolist(), strict=True)]
            lines.append(f"{target:.17g} {''.join(words)}")
    return lines, count


def read_rows(path: str | PathLike[str]) -> tuple[Any, NDArray[np.float64]]:
    """Rows of a data file, columns by their indices."""
    return load_svmlight(path, zero_based=True)


#: What shells report for a program that Ctrl-C ended: 128 + SIGINT.
_INTERRUPTED = 130

_TRAIN_USAGE = """\
Usage: svm-train [options] training_set_file [model_file]
-s type       0 C-SVC, 1 nu-SVC, 2 one-class SVM, 3 epsilon-SVR, 4 nu-SVR (default 0)
-t kernel     0 linear, 1 polynomial, 2 RBF, 3 sigmoid, 4 precomputed (default 2)
-d degree     degree of the polynomial kernel (default 3)
-g gamma      gamma of the kernel (default 1 / number of features)
-r coef0      independent term of the polynomial and the sigmoid kernel (default 0)
-c C          C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu         nu of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon    width of the tube of epsilon-SVR (default 0.1)
-m megabytes  memory for kernel rows (default 100)
-e tolerance  tolerance of the optimality conditions (default 0.001)
-h 0|1        shrinking (default 1)
-b 0|1        parameters for probability estimates, SVC and SVR (default 0)
-wi weight    factor of C for the class i, C-SVC (default 1); -w-1 3 for the class -1
-v n          n-fold cross-validation instead of a model
-q            no output
"""

_PREDICT_USAGE = """\
Usage: svm-predict [options] test_file model_file output_file
-b 0|1        probability estimates, of a model trained with -b 1 (default 0)
-q            no output
"""

_SCALE_USAGE = """\
Usage: svm-scale [options] data_filename
-l lower      lower limit of the features (default -1)
-u upper      upper limit of the features (default 1)
-y low high   limits of the target (default: not scaled)
-s file       save the ranges of the features
-r file       restore saved ranges
"""


class UsageError(ValueError):
    """Wrong arguments: the usage text is printed too."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _leading(arguments: Sequence[str], handle: Callable[[str, list[str]], int]) -> list[str]:
    """Processes the leading options and returns the other arguments."""
    try:
        used = take_options(arguments, handle)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return list(arguments[used:])


def _train(arguments: Sequence[str]) -> None:
    try:
        parameter, paths = svm_parameter._leading(arguments)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not 1 <= len(paths) <= 2:
        raise UsageError("give training_set_file and, if you like, model_file")
    target = paths[1] if len(paths) == 2 else f"{Path(paths[0]).name}.model"
    problem = svm_problem._of(*read_samples(paths[0], is_kernel=parameter.kernel_type == 4))
    check_problem(problem, parameter)
    model = run_training(problem, parameter, _say)
    if isinstance(model, svm_model):
        svm_save_model(target, model)


def _predict(arguments: Sequence[str]) -> None:
    chosen = {"-b": 0, "-q": 0}

    def handle(option: str, following: list[str]) -> int:
        if option not in chosen:
            raise ValueError(f"unknown option: {option}")
        if option == "-q":
            chosen[option] = 1
            return 0
        if not following:
            raise ValueError(f"{option} needs a value")
        chosen[option] = check_flag(option, to_int(option, following[0]))
        return 1

    paths = _leading(arguments, handle)
    if len(paths) != 3:
        raise UsageError("give test_file, model_file and output_file")
    model = svm_load_model(paths[1])
    y, samples = read_samples(paths[0], is_kernel=model._is_precomputed)
    if not len(samples):
        raise ValueError(f"{paths[0]}: the file has no rows")
    say: Callable[[str], None] = (lambda _: None) if chosen["-q"] else _say
    predictions, values = predict(samples, model, bool(chosen["-b"]), say)
    labels = model.get_labels()
    if chosen["-b"] and labels:
        lines = ["labels " + " ".join(map(str, labels))]
        lines += [
            f"{label:g} " + " ".join(f"{value:g}" for value in row)
            for label, row in zip(predictions.tolist(), values.tolist(), strict=True)
        ]
    else:
        lines = [f"{value:.17g}" for value in predictions.tolist()]
    with new_file(paths[2]) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
    say(accuracy_line(model, y, predictions))


def _scale(arguments: Sequence[str]) -> None:
    limits = {"-l": -1.0, "-u": 1.0}
    files: dict[str, str] = {}
    target: list[tuple[float, float]] = []

    def handle(option: str, following: list[str]) -> int:
        count = 2 if option == "-y" else 1
        if option not in (*limits, "-s", "-r", "-y"):
            raise ValueError(f"unknown option: {option}")
        if len(following) < count:
            raise ValueError(f"{option} needs {'two values' if count == 2 else 'a value'}")
        if option == "-y":
            target.append((to_float(option, following[0]), to_float(option, following[1])))
        elif option in limits:
            limits[option] = to_float(option, following[0])
        else:
            files[option] = following[0]
        return count

    paths = _leading(arguments, handle)
    if len(paths) != 1:
        raise UsageError("give one data_filename, after the options")
    if not limits["-u"] > limits["-l"] or (target and not target[-1][1] > target[-1][0]):
        raise UsageError("inconsistent lower/upper specification: the upper limit must be above the lower")
    if len(files) == 2:
        raise UsageError("cannot use -r and -s simultaneously")
    X, y = read_rows(paths[0])
    if not X.shape[0]:
        raise ValueError(f"{paths[0]}: the file has no rows")
    if "-r" in files:
        ranges = read_ranges(files["-r"])
        found = training_ranges(X, y, ranges.lower, ranges.upper, None)
        for index, low in found.low.items():
            if index not in ranges.low and low != found.high[index]:
                print_warning(
                    f"feature index {index} appeared in file {paths[0]} was not seen in the scaling factor "
                    f"file {files['-r']}. The feature is scaled to 0."
                )
    else:
        ranges = training_ranges(X, y, limits["-l"], limits["-u"], target[-1] if target else None)
    if "-s" in files:
        write_ranges(files["-s"], ranges)
    lines, count = scaled_lines(X, y, ranges)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if count > X.nnz:
        print_warning(
            f"original #nonzeros {X.nnz}\n         new      #nonzeros {count}\n"
            "Use -l 0 if many original feature values are zeros"
        )


def _grid(arguments: Sequence[str]) -> None:
    try:
        task = GridTask.of(arguments)
    except ValueError as error:
        raise UsageError(str(error)) from None
    search(task, _say)


#: The programs: what they run and their usage text.
PROGRAMS: dict[str, tuple[Callable[[Sequence[str]], None], str]] = {
    "svm-train": (_train, _TRAIN_USAGE),
    "svm-predict": (_predict, _PREDICT_USAGE),
    "svm-scale": (_scale, _SCALE_USAGE),
    "grid": (_grid, GRID_USAGE),
}


def run(name: str, arguments: Sequence[str]) -> int:
    """Runs a program and returns its exit code: 0 done, 1 bad input or wrong usage, 130 interrupted."""
    program, usage = PROGRAMS[name]
    if not arguments or arguments[0] == "--help":
        sys.stdout.write(usage)
        return 0 if arguments else 1
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print_warning(" ".join(str(message).split()))
            program(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: interrupted; nothing was written\n")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has ended; Python must not flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        sys.stderr.write(f"{name}: {text}\n")
        return 1
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        text = " ".join((str(error) or type(error).__name__).split())
        sys.stderr.write(f"{name}: {text}\n")
        if isinstance(error, UsageError):
            sys.stderr.write(usage)
        return 1
    return 0


def svm_train_main() -> NoReturn:
    """Runs ``svm-train`` on ``sys.argv``."""
    raise SystemExit(run("svm-train", sys.argv[1:]))


def svm_predict_main() -> NoReturn:
    """Runs ``svm-predict`` on ``sys.argv``."""
    raise SystemExit(run("svm-predict", sys.argv[1:]))


def svm_scale_main() -> NoReturn:
    """Runs ``svm-scale`` on ``sys.argv``."""
    raise SystemExit(run("svm-scale", sys.argv[1:]))
