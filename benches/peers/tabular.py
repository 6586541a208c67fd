"""Tables: `TabularClassifier` and `TabularRegressor` compared with tree ensembles and other kernel machines.

All have their defaults. Least squares has standardised columns, or those of `LearnedScaler`, and its
bandwidth and penalty by leave-one-out errors. xrfm has standardised columns and a fifth of the samples for
validation. CatBoost, LightGBM and XGBoost have columns of numbers alone, the last two numbers of classes.
Neo LS-SVM, which has random features, standardises by itself and takes two classes or a target. RealMLP is
pytabkit's with its tuned defaults, on the CPU.
The Gaussian process has one length scale for each standardised column. Training samples are drawn again for
each split, at most 70 % of a set; up to 3,000 others test. Sizes above 1,000 are for sets that have at least
half as many training samples. Errors are percent of wrong labels, or the root of the mean squared error of
the standardised target. Every model is fitted in this process, one after the other.

The number of a split is the seed of its draw, so that a later run continues the file of an earlier one.
"""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import data
import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn import datasets
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from svmarrow import SVC, SVR, RLSClassifier, RLSRegressor, TabularClassifier, TabularRegressor
from svmarrow.preprocessing import LearnedScaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REGRESSION = (
    *("abalone", "airfoil", "bank32nh", "bike", "cal_housing", "concrete", "cpu_act", "energy", "kin8nm"),
    *("parkinsons", "pol", "skillcraft", "sml", "wine"),
)
CLASSIFICATION = (
    *("ratsch_german", "ratsch_image", "ratsch_waveform", "magic", "page_blocks", "segment", "letter"),
    *("satimage", "sonar", "pima_diabetes", "ionosphere", "yeast", "vowel", "digits", "breast_cancer"),
)
#: Sets of sizes above `SMALL` alone.
LARGE = ("shuttle", "cod_rna", "bike", "ijcnn1", "a9a", "w8a")
SETS = tuple(dict.fromkeys((*REGRESSION, *CLASSIFICATION, *LARGE)))
QUICK = ("sonar", "energy")
SIZES, MAX_TEST = (1000, 500), 3000
SMALL, MIN_SHARE = 1000, 0.5
#: Maximum number of steps of the search for the length scales of a Gaussian process.
MAX_STEPS = 100
OURS = "svmarrow.Tabular*"
BOOSTING = "HistGradientBoosting"
PLAIN, LEARNED = "least squares", "learned scales"
XRFM, PROCESS = "xrfm", "Gaussian process"
CATBOOST, LIGHTGBM, XGBOOST = "CatBoost", "LightGBM", "XGBoost"
NEO, REALMLP = "Neo LS-SVM", "RealMLP"
#: Engines of a run that names none.
DEFAULT_ENGINES = (OURS, PLAIN, "SVM", BOOSTING, "random forest", "extra trees")
ENGINES = (*DEFAULT_ENGINES, LEARNED, XRFM, PROCESS, CATBOOST, LIGHTGBM, XGBOOST, NEO, REALMLP)


class LeastSquares:
    """Scaled columns, one bandwidth and penalty by leave-one-out errors."""

    def __init__(self, kind: Any, scaler: Any) -> None:
        self.kind, self.scaler = kind, scaler

    def fit(self, X: np.ndarray, y: np.ndarray) -> LeastSquares:
        """Searches the bandwidth by factors of 4."""
        rows = self.scaler.fit(X, y).transform(X)
        alphas = 10.0 ** np.arange(-5, 2, 0.5)
        widths = 2.0 ** np.arange(-5, 4, 2) / rows.shape[1]
        models = [self.kind(alphas=alphas, gamma=g, fit_intercept=True).fit(rows, y) for g in widths]
        self.model = min(models, key=lambda model: model.loo_error_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicts."""
        return self.model.predict(self.scaler.transform(X))


class RecursiveFeatureMachine:
    """xrfm on the CPU, with standardised columns and a fifth of the samples for validation."""

    def __init__(self, classify: bool) -> None:
        self.classify = classify

    def fit(self, X: np.ndarray, y: np.ndarray) -> RecursiveFeatureMachine:
        """Draws the validation samples and fits; labels are numbered from 0."""
        import xrfm

        targets = np.asarray(y, dtype=np.float32).reshape(len(y), 1)
        stratify = None
        if self.classify:
            self.classes, targets = np.unique(y, return_inverse=True)
            stratify = targets if np.bincount(targets).min() > 1 else None
        parts = train_test_split(X, targets, test_size=0.2, random_state=0, stratify=stratify)
        train, validation, y_train, y_validation = parts
        self.scaler = StandardScaler().fit(train)
        self.model = xrfm.xRFM(device="cpu", random_state=0, verbose=False)
        rows = [self.scaler.transform(part).astype(np.float32) for part in (train, validation)]
        self.model.fit(rows[0], y_train, rows[1], y_validation)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicts."""
        answers = np.asarray(self.model.predict(self.scaler.transform(X).astype(np.float32))).ravel()
        return self.classes[answers.astype(np.intp)] if self.classify else answers


def _search(objective: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimises as scikit-learn does, in at most `MAX_STEPS` steps."""
    found = minimize(
        objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": MAX_STEPS}
    )
    return found.x, found.fun


def _gaussian_process(n_features: int) -> Any:
    kernel = ConstantKernel() * RBF(np.ones(n_features)) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, optimizer=_search, normalize_y=True)
    return make_pipeline(StandardScaler(), process)


def _catboost(classify: bool) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if classify else CatBoostRegressor
    return kind(random_seed=0, verbose=0, allow_writing_files=False)


class NumberedClasses:
    """A classifier that is given the numbers of the classes, as XGBoost demands."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: np.ndarray, y: np.ndarray) -> NumberedClasses:
        """Fits."""
        self.classes, numbers = np.unique(y, return_inverse=True)
        self.classifier.fit(X, numbers)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predicts."""
        return self.classes[np.asarray(self.classifier.predict(X)).astype(np.intp)]


def _lightgbm(classify: bool) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return NumberedClasses(LGBMClassifier(verbose=-1)) if classify else LGBMRegressor(verbose=-1)


def _xgboost(classify: bool) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    return NumberedClasses(XGBClassifier()) if classify else XGBRegressor()


def _neo(classify: bool) -> Any:
    from neo_ls_svm import NeoLSSVM

    model = NeoLSSVM(estimator_type="classifier" if classify else "regressor", random_state=0)
    return NumberedClasses(model) if classify else model


def _realmlp(classify: bool) -> Any:
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    kind = RealMLP_TD_Classifier if classify else RealMLP_TD_Regressor
    return kind(device="cpu", random_state=0, verbosity=0)


def engines(classify: bool, n_features: int, chosen: Iterable[str] = DEFAULT_ENGINES) -> dict[str, Any]:
    """The chosen models by name; those that are not installed or do not classify are left out."""
    squares = RLSClassifier if classify else RLSRegressor
    learned = LearnedScaler(task="classification" if classify else "regression")
    found = {
        OURS: (TabularClassifier if classify else TabularRegressor)(),
        PLAIN: LeastSquares(squares, StandardScaler()),
        "SVM": make_pipeline(StandardScaler(), (SVC if classify else SVR)()),
        BOOSTING: (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(
            random_state=0
        ),
        "random forest": (RandomForestClassifier if classify else RandomForestRegressor)(random_state=0),
        "extra trees": (ExtraTreesClassifier if classify else ExtraTreesRegressor)(random_state=0),
        LEARNED: LeastSquares(squares, learned),
    }
    if importlib.util.find_spec("xrfm") is not None:
        found[XRFM] = RecursiveFeatureMachine(classify)
    for package, engine, make in (
        ("catboost", CATBOOST, _catboost),
        ("lightgbm", LIGHTGBM, _lightgbm),
        ("xgboost", XGBOOST, _xgboost),
        ("pytabkit", REALMLP, _realmlp),
        ("neo_ls_svm", NEO, _neo),
    ):
        if engine in chosen and importlib.util.find_spec(package) is not None:
            found[engine] = make(classify)
    if not classify:
        found[PROCESS] = _gaussian_process(n_features)
    return {name: model for name, model in found.items() if name in chosen}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None] | None:
    """Samples, targets, and test samples if their distribution is another one; None without the file."""
    if name in ("digits", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y, None
    try:
        X, y, *test = data.read_file(name)
    except data.DataMissingError:
        return None
    if name == "abalone":  # the sex as three columns
        X = np.load(data.folder() / "abalone.npz")["X_onehot"]
    X, *test = (part.toarray() if sp.issparse(part) else part for part in (X, *test))
    X = X.astype(float)
    if not test:
        return X, y, None
    X_test, y_test = test[0].astype(float), test[1]
    if name == "vowel":  # other speakers
        return X, y, (X_test, y_test)
    return np.vstack([X, X_test]), np.concatenate([y, y_test]), None


def split_of(name: str, n: int, split: int) -> tuple[np.ndarray, ...] | None:
    """Training and test samples of a split; None without the file or enough samples."""
    found = rows_of(name)
    if found is None:
        return None
    X, y, test = found
    order = np.random.RandomState(split).permutation(len(X))
    size = min(n, len(X) if test is not None else int(0.7 * len(X)))
    if (n > SMALL and size < MIN_SHARE * n) or (n <= SMALL and name in LARGE):
        return None
    if test is not None:
        return X[order[:size]], y[order[:size]], *test
    train, rest = order[:size], order[size : size + MAX_TEST]
    if name in REGRESSION:
        y = (y - y[train].mean()) / y[train].std()
    else:
        rest = rest[np.isin(y[rest], y[train])]
    return X[train], y[train], X[rest], y[rest]


def start(name: str, n: int) -> dict[str, Any]:
    """Returns the result of a set before the first fit."""
    return {"set": name, "samples": n, "classify": name not in REGRESSION, "engines": {}}


def extend(
    result: dict[str, Any],
    split: int,
    chosen: Iterable[str] = DEFAULT_ENGINES,
    *,
    run: int = 0,
    timed: bool = True,
) -> bool:
    """Measures the engines that have not had a split; returns whether any was measured.

    Each split of an engine has an error, the number of its run, and its seconds, None if not `timed`. An
    engine without the split before is left out: the number of a split is its place in the lists.
    """
    name, classify, cells = result["set"], result["classify"], result["engines"]
    due = [engine for engine in chosen if len(cells.get(engine, {"error": []})["error"]) == split]
    parts = split_of(name, result["samples"], split) if due else None
    if parts is None:
        return False
    X, y, X_test, y_test = parts
    result["training samples"] = len(X)
    if classify and len(np.unique(y)) > 2:
        due = [engine for engine in due if engine != NEO]
    models = engines(classify, X.shape[1], due)
    for engine, model in models.items():
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = np.asarray(model.fit(X, y).predict(X_test)).reshape(y_test.shape)
        passed = time.perf_counter() - begun
        wrong = 100.0 * np.mean(answers != y_test) if classify else np.sqrt(np.mean((answers - y_test) ** 2))
        cell = cells.setdefault(engine, {"error": [], "seconds": [], "run": []})
        cell["error"].append(float(wrong))
        cell["seconds"].append(passed if timed else None)
        cell["run"].append(run)
    return bool(models)


def earlier(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the runs and the results of a file; one that names no runs is of a single run."""
    names = ("commit", "command", "date", "machine")
    results = record.get("tabular", [])
    if "runs" in record:
        return record["runs"], results
    for result in results:
        for cell in result["engines"].values():
            n = len(cell["error"])
            cell["seconds"] = cell.get("seconds", [None] * n)
            cell["run"] = [0] * n
    return [{name: record[name] for name in names}], results


def headings(results: list[dict[str, Any]]) -> list[str]:
    """The first row of the table."""
    return ["set", "samples", *_engines_of(results)]


def lines(results: list[dict[str, Any]]) -> Iterator[list[str]]:
    """The rows of the table: mean errors, seconds in brackets."""
    for result in results:
        cells = []
        for engine in _engines_of(results):
            cell = result["engines"].get(engine)
            digits = 1 if result["classify"] else 3
            times = [value for value in cell["seconds"] if value is not None] if cell else []
            seconds = f" ({np.mean(times):.1f})" if times else ""
            cells.append(f"{np.mean(cell['error']):.{digits}f}{seconds}" if cell else "")
        yield [result["set"], str(result["training samples"]), *cells]


def _engines_of(results: list[dict[str, Any]]) -> list[str]:
    return [engine for engine in ENGINES if any(engine in result["engines"] for result in results)]


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """Yields a comparison of our engines with each other one, for each number of training samples."""
    for n in sorted({result["samples"] for result in results}):
        for ours in (OURS, LEARNED):
            for other in ENGINES:
                pairs = [
                    (one["set"], *_common(one["engines"][ours], one["engines"][other]))
                    for one in results
                    if one["samples"] == n and {ours, other} <= set(one["engines"]) and ours != other
                ]
                if pairs:
                    yield f"{n} samples, {ours} and {other}, {len(pairs)} sets: {_compared(pairs)}"


def _common(*cells: dict[str, Any]) -> Iterator[np.ndarray]:
    """Yields the errors of the splits that all have."""
    n = min(len(cell["error"]) for cell in cells)
    return (np.array(cell["error"][:n]) for cell in cells)


def _compared(pairs: list[tuple[str, np.ndarray, np.ndarray]]) -> str:
    ratios = [_ratio(float(ours.mean()), float(other.mean())) for _, ours, other in pairs]
    level = [ours.mean() - other.mean() <= _standard_error(ours - other) for _, ours, other in pairs]
    worst = int(np.argmax(ratios))
    return (
        f"ahead on {100 * np.mean(np.less(ratios, 1.0)):.0f} %, "
        f"ahead or level within a standard error on {100 * np.mean(level):.0f} %; "
        f"ratio of errors: median {np.median(ratios):.3f}, worst {ratios[worst]:.3f} ({pairs[worst][0]})"
    )


def _ratio(error: float, other: float) -> float:
    """Returns the ratio of two errors: 1 where both are 0, infinite where only the other one is."""
    return error / other if other > 0.0 else 1.0 if error == 0.0 else math.inf


def _standard_error(differences: np.ndarray) -> float:
    """Returns the standard error of the mean of paired differences; 0 for a single split."""
    n = differences.size
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
