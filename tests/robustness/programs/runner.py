"""One seed, one program, one verdict; and the shortest program that still fails.

>>> from robustness.programs.runner import Program, run
>>> run(Program.of(3)).failures
[]
"""

from __future__ import annotations

import copy
import pickle
import re
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.utils.validation import has_fit_parameter

import svmarrow
import svmarrow.distillation
import svmarrow.reduced_set
from robustness.programs import adapters, checks, data, estimators, operations, tolerances
from robustness.programs.checks import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustness.programs.data import Data
    from robustness.programs.estimators import Call

#: Exceptions that documented functions raise for what they refuse.
REFUSALS = (ValueError, TypeError, MemoryError, OSError, ImportError)
#: Number of samples above which C and tolerance are moderate.
MAX_HARD_SAMPLES = 150
#: Largest number of samples of tabular estimators, which search scales.
MAX_TABLE = 100
PACKAGE = str(Path(svmarrow.__file__).parent)
SCIKIT_LEARN = str(Path(sklearn.__file__).parent)


ADAPTERS = ("CProgram", "CommandLine", "KernelFunction", "OneRow", "OnnxProgram", "Relabelled", "series_of")
#: Checks that operations call.
CHECKS = ("check_loss_bound", "check_order", "check_programs_of_a_tree", "check_quantization")
#: Names that operations use.
TOOLS = {
    "clone": clone,
    "copy": copy,
    "pickle": pickle,
    "svmarrow": svmarrow,
    "BaggingClassifier": BaggingClassifier,
    **{name: getattr(adapters, name) for name in ADAPTERS},
    **{name: getattr(checks, name) for name in CHECKS},
}
#: Modules and names that scripts import, by the name that they use.
IMPORTS = {
    "copy": "import copy",
    "pickle": "import pickle",
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "svmarrow": "import svmarrow",
    "svmarrow.distillation": "import svmarrow.distillation",
    "svmarrow.export": "import svmarrow.export",
    "svmarrow.least_squares": "import svmarrow.least_squares",
    "svmarrow.online": "import svmarrow.online",
    "svmarrow.patch.ridge": "import svmarrow.patch.ridge",
    "svmarrow.patch.svm": "import svmarrow.patch.svm",
    "svmarrow.reduced_set": "import svmarrow.reduced_set",
    "svmarrow.svm": "import svmarrow.svm",
    "sparse": "from scipy import sparse",
    "clone": "from sklearn.base import clone",
    "kernels": "from sklearn.gaussian_process import kernels",
    **{
        name: f"from sklearn import {name}"
        for name in ("decomposition", "kernel_ridge", "preprocessing", "svm")
    },
    **estimators.IMPORTS,
    **{name: f"from robustness.programs.adapters import {name}" for name in ADAPTERS},
    **{name: f"from robustness.programs.checks import {name}" for name in CHECKS},
}
#: Prints where two models differ.
SHOW = """

def show(model, other, T, S):
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, name) and hasattr(other, name):
            a, b = np.asarray(getattr(model, name)(T)), np.asarray(getattr(other, name)(S))
            print(name, "differs for", np.mean(a != b), "of the numbers:", a[a != b][:3], b[a != b][:3])


"""


def imports_of(text: str) -> str:
    """The import lines that a script needs."""
    return "".join(
        line + "\n"
        for name, line in IMPORTS.items()
        if re.search(rf"(?<![\w.]){re.escape(name)}\b(?!=)", text)
    )


@dataclass(frozen=True)
class Program:
    """An estimator, a data set and the operations on the fitted model."""

    seed: int
    call: Call
    data: Data
    steps: tuple[str, ...]

    @classmethod
    def of(cls, seed: int) -> Program:
        """The program of a seed: the same in every process."""
        rng = np.random.default_rng(seed)
        call, task = estimators.draw(rng)
        machine = call.machine.parameters
        drawn = data.draw(
            rng,
            task,
            positive=machine.get("kernel") == "chi2",
            gram=machine.get("kernel") == "precomputed",
            several=estimators.takes_several_targets(call),
            is_sparse_allowed=estimators.takes_sparse(call),
            table=call.name.startswith("svmarrow.Tabular"),
        )
        drawn = without_unused_weights(call, drawn)
        if "Tabular" in str(call):
            drawn = replace(drawn, n=min(drawn.n, MAX_TABLE))
        if drawn.n > MAX_HARD_SAMPLES:
            call = estimators.easier(call)
            # C counts in units of the targets: tiny ones are noise with a large C.
            tiny = {"y = signal * 1e-6": "y = signal", "y = signal * 1e-3": "y = signal"}
            drawn = replace(
                drawn, lines=tuple((tiny.get(line, line), optional) for line, optional in drawn.lines)
            )
        return cls(seed, call, drawn, operations.draw(rng, call, drawn))

    @property
    def source(self) -> str:
        """The program as a Python script, which needs ``tests`` on the path for exported programs only."""
        lines = [self.data.source, f"model = {self.call}", "model.fit(X, y, **fit_options(w))"]
        for step in self.steps:
            source = operations.BY_NAME[step].source.replace("PEER", str(estimators.peer(self.call)))
            samples = "S" if re.search(r"\bS\b", source) else "T"
            lines += [f"# {step}", source, f"show(model, other, T, {samples})"]
        body = "\n".join(lines)
        if self.data.is_weighted:
            body = body.replace("**fit_options(w)", f"{weight_name(self.call)}=w")
        else:
            body = body.replace(", **fit_options(w)", "").replace("w = None\n", "")
            body = re.sub(r", \*\*fit_options\(None if .*?\)", "", body)
        body += "\n"
        if re.search(r"\bpath\b", body):
            body = 'path = "model"\n' + body
        text = estimators.subclasses_of(body) + (SHOW + body if self.steps else body)
        return imports_of(text) + text

    def simpler(self) -> Iterator[Program]:
        """Programs with one thing less."""
        for place in range(len(self.steps)):
            yield replace(self, steps=self.steps[:place] + self.steps[place + 1 :])
        for call in self.call.simpler():
            yield replace(self, call=call, data=without_unused_weights(call, self.data))
        for smaller in self.data.simpler():
            yield replace(self, data=smaller)


@dataclass
class Failure:
    """What does not hold, at which step."""

    kind: str
    message: str
    step: str


@dataclass
class Result:
    """The verdict on a program."""

    failures: list[Failure] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    #: Seconds of the processor.
    seconds: float = 0.0
    fitted: bool = False


@dataclass
class Run:
    """A program while it runs: what checks see."""

    program: Program
    names: dict[str, Any]
    model: Any = None
    step: str = "fit"
    log: list[Any] = field(default_factory=list)


def weight_name(call: Call) -> str:
    """The parameter of `fit` for sample weights."""
    if call.name == "make_pipeline":
        return call.inner.name.rpartition(".")[2].lower() + "__sample_weight"
    return "sample_weight"


def without_unused_weights(call: Call, drawn: Data) -> Data:
    """The data set without weights if the estimator takes none."""
    if call.name == "make_pipeline":
        call = call.inner
    # A frozen estimator is fitted where it is made, which needs the data.
    target = None if ".fit(" in str(call) else call.build({"X": np.zeros((2, 2)), "y": np.zeros(2)})
    if target is not None and has_fit_parameter(target, "sample_weight"):
        return drawn
    lines = tuple(line for line in drawn.lines if not line[0].startswith("w = ") or line[0] == "w = None")
    return replace(drawn, lines=lines)


def run(program: Program) -> Result:
    """Runs a program with all checks."""
    result, start = Result(), time.process_time()
    with (
        warnings.catch_warnings(record=True) as log,
        np.errstate(all="ignore"),
        tempfile.TemporaryDirectory() as folder,
        estimators.limited_fallbacks(),
    ):
        warnings.simplefilter("always")
        names = program.data.build() | TOOLS
        names["path"] = str(Path(folder) / "model")
        names["fit_options"] = lambda w: {} if w is None else {weight_name(program.call): w}
        state = Run(program, names, log=log)
        if _attempt(state, result, _fit):
            result.fitted = True
            for check in checks.INVARIANTS:
                state.step = "fit"
                _attempt(state, result, check)
            for step in program.steps:
                state.step = step
                _attempt(state, result, _step)
    result.seconds = time.process_time() - start
    return result


def _fit(state: Run) -> None:
    names, call = state.names, state.program.call
    try:
        state.model = call.build(names)
        state.model.fit(names["X"], names["y"], **names["fit_options"](names["w"]))
    except Exception as error:
        other = estimators.peer(call, is_equal=False)
        # scikit-learn solves a singular system by least squares with a warning; svmarrow refuses it.
        # It fits kernel matrices that are not symmetric, and kernel values without digits, too. It has no
        # squared hinge loss, whose problem has no solution for a kernel that is not positive definite.
        rules = ["LinAlgError", "must be symmetric", "must be scaled"]
        if call.machine.parameters.get("loss") == "squared_hinge":
            rules.append("stays within double precision")
        # scikit-learn counts samples, not weights, to see whether a machine has enough of both classes.
        is_bagged = any("Bagging" in name for name in call.chain)
        if names["w"] is not None or is_bagged or "class_weight" in call.machine.parameters:
            rules.append("twice the share of the smaller class")
        # The bags of nested ensembles differ: scikit-learn's class has a `random_state`, which takes one of
        # the seeds. LIBSVM refuses a bag of one class as well.
        if sum("Bagging" in name for name in call.chain) > 1:
            rules.append("sample_weight leaves the classes")
        # Where a bag lacks a class, a machine has fewer pairs. scikit-learn keeps one column for them, which
        # its sum over the bags spreads over all pairs: numbers without a meaning.
        if is_bagged and call.machine.parameters.get("decision_function_shape") == "ovo":
            rules.append("could not be broadcast")
        is_stricter = isinstance(error, np.linalg.LinAlgError) or any(rule in str(error) for rule in rules)
        if other is not None and isinstance(error, REFUSALS) and not is_stricter:
            try:
                fitted = other.build(names).fit(names["X"], names["y"], **names["fit_options"](names["w"]))
                tolerances.answers(fitted, names["T"])
            except Exception:  # noqa: BLE001 - scikit-learn refuses it too
                raise error from None
            raise CheckError(
                "refused, but scikit-learn's class fits", f"{type(error).__name__}: {error}"
            ) from error
        raise


def _step(state: Run) -> None:
    operation = operations.BY_NAME[state.step]
    names = dict(state.names, model=copy.deepcopy(state.model), S=None)
    source = operation.source
    if "PEER" in source:
        other = estimators.peer(state.program.call)
        source = source.replace("PEER", f"({other})")
        names |= {name: value for name, value in estimators.NAMES.items() if name not in names}
    exec(source, names)
    if operation.accuracy == "none":
        return
    S = names["T"] if names["S"] is None else names["S"]
    checks.compare(state, names["other"], names["T"], S, operation.accuracy)


def _attempt(state: Run, result: Result, action: Any) -> bool:
    try:
        action(state)
    except CheckError as failure:
        result.failures.append(Failure(failure.kind, failure.message, state.step))
    except AssertionError as error:
        result.failures.append(Failure(f"assertion: {error}"[:120], str(error), state.step))
    except Exception as error:  # noqa: BLE001 - its kind decides
        _judge(state, result, error, action)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        result.failures.append(Failure(f"panic: {state.step}", str(error), state.step))
    else:
        return True
    return False


def _judge(state: Run, result: Result, error: Exception, action: Any) -> None:
    """An exception is a refusal that names something of the program, a fall, or none of svmarrow's."""
    name, where = type(error).__name__, state.step if action in (_fit, _step) else action.__name__
    text = f"{name}: {error}"
    if not (_through(error, PACKAGE) or _through(error, SCIKIT_LEARN)):
        result.failures.append(Failure(f"fault of the check: {where}", text + _last_lines(error), where))
    elif not _through(error, PACKAGE) or _is_scikit_learns(state, error):
        result.refusals.append(f"{where} (outside svmarrow): {text}")
    elif not isinstance(error, REFUSALS) or name == "InternalError":
        result.failures.append(Failure(f"fall, {name}: {where}", text + _last_lines(error), where))
    elif _is_raised_in(error, PACKAGE) and not names_something(str(error), state.program):
        result.failures.append(Failure(f"a message that names nothing: {where}", text, where))
    elif action not in (_fit, _step):
        result.failures.append(
            Failure(f"prediction raises {name}: {where}", text + _last_lines(error), where)
        )
    else:
        result.refusals.append(f"{where}: {text}")


def _is_scikit_learns(state: Run, error: Exception) -> bool:
    """Whether scikit-learn's class raises the same: it is converted, or a replacement falls back to it."""
    if state.model is not None and not tolerances.is_arrow(state.model):
        try:
            tolerances.answers(state.model, state.names["T"])
        except Exception as own_error:  # noqa: BLE001 - it is compared
            if type(own_error) is type(error):
                return True
    other = estimators.peer(state.program.call)
    if other is None or "svmarrow.patch." not in str(state.program.call):
        return False
    names = state.names
    try:
        fitted = other.build(names).fit(names["X"], names["y"], **names["fit_options"](names["w"]))
        tolerances.answers(fitted, names["T"])
    except Exception as other_error:  # noqa: BLE001 - it is compared
        return type(other_error) is type(error)
    return False


def names_something(message: str, program: Program) -> bool:
    """Whether a message contains a word of the program: a parameter, a class, `X`, `y`, a function."""
    words = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]+|\bX\b|\by\b", program.source)) | {
        "X",
        "y",
        "kernel",
        "sample_weight",
    }
    return bool(words & set(re.findall(r"[A-Za-z_][A-Za-z_0-9]+|\bX\b|\by\b", message)))


def _through(error: BaseException, folder: str) -> bool:
    """Whether the exception passed through a file of this folder."""
    return any(frame.filename.startswith(folder) for frame in traceback.extract_tb(error.__traceback__))


def _is_raised_in(error: BaseException, folder: str) -> bool:
    return traceback.extract_tb(error.__traceback__)[-1].filename.startswith(folder)


def _last_lines(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return "".join(f"\n    {Path(frame.filename).name}:{frame.lineno} {frame.line}" for frame in frames)


def shrink(program: Program, kind: str, seconds: float = 60.0) -> Program:
    """The simplest program found that fails in the same way."""
    end = time.perf_counter() + seconds
    improved = True
    while improved and time.perf_counter() < end:
        improved = False
        for candidate in program.simpler():
            if time.perf_counter() > end:
                break
            try:
                kinds = {failure.kind for failure in run(candidate).failures}
            except Exception:  # noqa: BLE001 - a simplification that makes no program
                continue
            if kind in kinds:
                program, improved = candidate, True
                break
    return program
