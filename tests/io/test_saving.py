"""Whatever can be fitted can be saved: every public class comes back to the last bit."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil
import struct
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import svm as peer
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import svmarrow
from svmarrow import (
    SVC,
    SVR,
    BaggedKernelClassifier,
    BaggedKernelRegressor,
    BudgetPerceptron,
    CalibratedCascade,
    CodedClassifier,
    ExactCascade,
    ExpansionDetector,
    ExpansionRegressor,
    Forgetron,
    GradientSettings,
    KernelExpansion,
    KernelPerceptron,
    KMPClassifier,
    KMPRegressor,
    LinearRLSClassifier,
    LinearRLSRegressor,
    LowRankRLSClassifier,
    LowRankRLSRegressor,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    PerceptronTreeClassifier,
    Projectron,
    ProjectronPlusPlus,
    ReducedSet,
    RLSClassifier,
    RLSRegressor,
    SelectionSettings,
    Stoptron,
    compact,
    compress,
    compression_path,
)
from svmarrow._support.saving import KINDS, Savable
from svmarrow.exceptions import ConvergenceWarning, FormatError
from svmarrow.multiclass import Code

# --- rows of many kinds ---

IRIS, KIND = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[KIND]
TWO, SIDE = make_moons(90, noise=0.2, random_state=0)
SIDES = np.array(["left", "ri\u00dfht"], dtype=object)[SIDE]
NUMBERS = np.sin(IRIS[:, 0])
PAIRS = np.column_stack([NUMBERS, IRIS[:, 1]])
SPARSE = sparse.csr_array(IRIS * (IRIS > 1.0))
SINGLE = IRIS.astype(np.float32)
FRAME = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])
WEIGHTS = np.linspace(0.0, 2.0, len(KIND))
GRAM = IRIS @ IRIS.T
CODE = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]


def _short():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVC(max_iter=1).fit(IRIS, KIND)


def _pieces(model, X, y, classes):
    model.partial_fit(X[:60], y[:60], classes=classes)
    return model.partial_fit(X[60:], y[60:])


def _svc():
    return SVC(C=10.0, gamma=0.5).fit(IRIS, KIND)


def _tuned():
    return compress(_svc(), 8, X=IRIS, y=KIND)


STEPS = GradientSettings(steps=20, sizes=(2, 4))

#: A fitted example of every public class, several where it has several forms, with rows to predict.
EXAMPLES = {
    "SVC": (lambda: _svc(), IRIS),
    "SVC words, weights": (lambda: SVC(class_weight={"setosa": 2, "virginica": 0.5}).fit(IRIS, WORDS), IRIS),
    "SVC rest, sparse": (lambda: SVC(multi_class="ovr", class_weight="balanced").fit(SPARSE, KIND), SPARSE),
    "SVC single": (lambda: SVC(loss="squared_hinge").fit(SINGLE, KIND.astype(np.int8)), SINGLE),
    "SVC frame": (lambda: SVC(kernel="poly", degree=2, coef0=1).fit(FRAME, KIND), FRAME),
    "SVC bools": (lambda: SVC(kernel="linear").fit(TWO, SIDE.astype(bool), np.arange(90.0)), TWO),
    "SVC gram": (lambda: SVC(kernel="precomputed").fit(GRAM, KIND), GRAM),
    "SVC ended early": (_short, IRIS),
    "NuSVC": (lambda: NuSVC(nu=0.2).fit(TWO, SIDES), TWO),
    "SVR": (lambda: SVR().fit(FRAME, NUMBERS, WEIGHTS), FRAME),
    "NuSVR": (lambda: NuSVR(nu=np.float64(0.3), C=2).fit(SPARSE, NUMBERS), SPARSE),
    "OneClassSVM": (lambda: OneClassSVM(nu=0.2).fit(IRIS), IRIS),
    "LowRankSVC": (lambda: LowRankSVC(20, random_state=np.random.RandomState(3)).fit(IRIS, WORDS), IRIS),
    "LowRankSVC points": (lambda: LowRankSVC(selection=IRIS[::9].copy()).fit(FRAME, KIND), FRAME),
    "RLSClassifier": (lambda: RLSClassifier(0.1).fit(FRAME, WORDS, WEIGHTS), FRAME),
    "RLSClassifier chosen": (lambda: RLSClassifier(alphas=np.array([0.1, 1, 10])).fit(IRIS, KIND), IRIS),
    "RLSClassifier cg": (
        lambda: RLSClassifier(solver="cg", leave_one_out=False, fit_intercept=False).fit(SPARSE, KIND),
        SPARSE,
    ),
    "RLSRegressor": (lambda: RLSRegressor(fit_intercept=True).fit(IRIS, PAIRS), IRIS),
    "RLSRegressor chosen": (lambda: RLSRegressor(alphas=[0.1, 1.0]).fit(SINGLE, NUMBERS), SINGLE),
    "LinearRLSClassifier": (lambda: LinearRLSClassifier(leave_one_out=True).fit(IRIS, WORDS), IRIS),
    "LinearRLSRegressor": (lambda: LinearRLSRegressor(solver="cg").fit(SPARSE, PAIRS), SPARSE),
    "LowRankRLSClassifier": (lambda: LowRankRLSClassifier(20, random_state=0).fit(FRAME, WORDS), FRAME),
    "LowRankRLSClassifier pieces": (
        lambda: _pieces(LowRankRLSClassifier(9, random_state=0), SPARSE, KIND, [0, 1, 2]),
        SPARSE,
    ),
    "LowRankRLSRegressor": (
        lambda: LowRankRLSRegressor(15, method="nystrom", selection="ic").fit(IRIS, NUMBERS),
        IRIS,
    ),
    "BaggedKernelClassifier": (
        lambda: BaggedKernelClassifier(SVC(C=3), 3, random_state=0).fit(IRIS, WORDS),
        IRIS,
    ),
    "BaggedKernelRegressor": (
        lambda: BaggedKernelRegressor(None, 3, random_state=0).fit(SPARSE, NUMBERS),
        SPARSE,
    ),
    "KMPClassifier": (lambda: KMPClassifier(n_vectors=6).fit(FRAME, WORDS), FRAME),
    "KMPClassifier kernels": (
        lambda: KMPClassifier(
            n_vectors=6, kernel=["rbf", "linear"], gamma=(0.1, 1.0), loss="logistic", random_state=0
        ).fit(SPARSE, KIND),
        SPARSE,
    ),
    "KMPClassifier stopped": (
        lambda: KMPClassifier(
            n_vectors=9, early_stopping=True, random_state=0, fit_intercept="candidate"
        ).fit(TWO, SIDES),
        TWO,
    ),
    "KMPRegressor": (
        lambda: KMPRegressor(n_vectors=6, early_stopping=True, cv=3, random_state=0).fit(IRIS, PAIRS),
        IRIS,
    ),
    "KMPRegressor again": (
        lambda: KMPRegressor(n_vectors=4, loss="huber").fit(IRIS, NUMBERS).fit(IRIS[:99], NUMBERS[:99]),
        IRIS,
    ),
    "MatchingPath": (lambda: KMPClassifier(n_vectors=6).fit(IRIS, WORDS).path_, IRIS),
    "CodedClassifier": (lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(IRIS, WORDS), IRIS),
    "CodedClassifier matrix": (
        lambda: CodedClassifier(RLSClassifier(), code=np.array(CODE)).fit(FRAME, KIND),
        FRAME,
    ),
    "CodedClassifier complete": (
        lambda: CodedClassifier(RLSClassifier(), Code(np.sign(np.subtract(CODE, 0.5)))).fit(IRIS, KIND),
        IRIS,
    ),
    "CodedClassifier each": (
        lambda: CodedClassifier(
            LowRankSVC(9, random_state=0), code="ovo", decoder="hamming", shared=False
        ).fit(IRIS, WORDS),
        IRIS,
    ),
    "KernelPerceptron": (lambda: KernelPerceptron(gamma=0.5).fit(FRAME, WORDS), FRAME),
    "KernelPerceptron averaged": (
        lambda: KernelPerceptron(gamma=0.5, prediction="averaged").fit(SPARSE, KIND),
        SPARSE,
    ),
    "KernelPerceptron voted": (lambda: KernelPerceptron(gamma=0.5, prediction="voted").fit(TWO, SIDES), TWO),
    "BudgetPerceptron": (
        lambda: BudgetPerceptron(budget=9, gamma=0.5, removal="random", random_state=3).fit(TWO, SIDE),
        TWO,
    ),
    "Forgetron": (lambda: Forgetron(budget=9).fit(SINGLE, KIND), SINGLE),
    "Stoptron": (lambda: Stoptron(budget=9).fit(IRIS, KIND), IRIS),
    "Projectron": (lambda: Projectron(gamma=0.5, eta=0.1).fit(IRIS, KIND), IRIS),
    "ProjectronPlusPlus": (lambda: ProjectronPlusPlus(gamma=0.5, eta=0.1).fit(SPARSE, WORDS), SPARSE),
    "PerceptronTreeClassifier": (
        lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, random_state=0).fit(FRAME, WORDS),
        FRAME,
    ),
    "PerceptronTreeClassifier sparse": (
        lambda: PerceptronTreeClassifier(budget=6, gamma=2.0, split="zpq", random_state=0).fit(SPARSE, KIND),
        SPARSE,
    ),
    "PerceptronTreeClassifier of pairs": (
        lambda: PerceptronTreeClassifier.from_expansion(_svc(), IRIS, budget=9, random_state=0),
        IRIS,
    ),
    "ReducedSet": (lambda: ReducedSet(SVC(), 9).fit(FRAME, WORDS), FRAME),
    "ReducedSet gradient": (
        lambda: ReducedSet(SVC(), 4, method="gradient", settings=STEPS, random_state=0).fit(IRIS, KIND),
        IRIS,
    ),
    "ReducedSet sampled": (
        lambda: ReducedSet(SVC(), 4, settings=SelectionSettings(sample=5), random_state=0).fit(SPARSE, KIND),
        SPARSE,
    ),
    "CompressionPath": (lambda: compression_path(_svc()), IRIS),
    "CompressionPath tuned": (lambda: compression_path(_svc(), X=IRIS, y=KIND), IRIS),
    "CompressionPath basic": (lambda: compression_path(SVR().fit(SPARSE, NUMBERS), method="basic"), SPARSE),
    "CompressionPath l1": (lambda: compression_path(OneClassSVM().fit(IRIS), method="l1"), IRIS),
    "ConstructionPath": (
        lambda: compression_path(_svc(), n_vectors=4, method="gradient", X=IRIS, settings=STEPS),
        IRIS,
    ),
    "ExactCascade": (
        lambda: ExactCascade(SVC(gamma=0.01), stages=[4, (9, 5)], tol=0.0).fit(FRAME, WORDS),
        FRAME,
    ),
    "ExactCascade auto": (lambda: ExactCascade(SVC(gamma=0.1)).fit(SPARSE, KIND), SPARSE),
    "ExactCascade of a path": (
        lambda: ExactCascade.from_path(compression_path(_svc(), tol=0.0), stages=range(2, 9, 3)),
        IRIS,
    ),
    "CalibratedCascade": (
        lambda: CalibratedCascade(SVC(gamma=2.0), [2, 9], epsilon=0.4, calibration=0.4, random_state=0).fit(
            IRIS, WORDS
        ),
        IRIS,
    ),
    "CalibratedCascade no promise": (lambda: CalibratedCascade(SVC(), 4).fit(TWO, SIDES), TWO),
    "CalibratedCascade of models": (
        lambda: CalibratedCascade.from_fitted(_svc(), [_tuned(), compress(_svc(), 4)], IRIS, epsilon=0.4),
        IRIS,
    ),
    "KernelExpansion": (lambda: _svc().expansion_, IRIS),
    "KernelExpansion constant": (lambda: KernelExpansion(np.empty((0, 4)), np.empty((0, 2)), [1, 2.5]), IRIS),
    "KernelExpansion bytes": (
        lambda: compact(_svc().expansion_, coefficients="uint8").model,
        IRIS,
    ),
    "ExpansionClassifier": (_tuned, IRIS),
    "ExpansionClassifier of a code": (
        lambda: CodedClassifier(SVC(), code="dense", random_state=0).fit(FRAME, WORDS).as_expansion(),
        FRAME,
    ),
    "ExpansionClassifier compact": (lambda: compact(_tuned(), coefficients="uint8").model, IRIS),
    "ExpansionRegressor": (lambda: ExpansionRegressor(SVR().fit(IRIS, NUMBERS).expansion_, flat=False), IRIS),
    "ExpansionDetector": (
        lambda: ExpansionDetector(OneClassSVM().fit(IRIS).expansion_, feature_names=list("abcd"), n_jobs=1),
        FRAME,
    ),
}


@pytest.fixture(scope="module")
def examples():
    """Fitted examples, each made when it is first asked for."""
    made = {}

    def example(name):
        if name not in made:
            made[name] = EXAMPLES[name][0]()
        return made[name]

    return example


# --- what is compared ---


def parts(value):
    """Everything that an object has, but what is made anew."""
    if isinstance(value, KernelExpansion):
        return value.__getstate__()
    if isinstance(value, Code):
        return {"matrix": value.matrix}
    return {key: item for key, item in vars(value).items() if key not in getattr(value, "_made_anew", ())}


def assert_same(a, b, where=""):
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), where
    elif sparse.issparse(a):
        assert a.shape == b.shape, where
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, (float, np.generic)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), where
    elif isinstance(a, dict):
        assert list(map(str, sorted(a, key=str))) == list(map(str, sorted(b, key=str))), where
        for key, item in a.items():
            assert_same(item, b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{where}[{place}]")
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), where)
    elif a is None or isinstance(a, (bool, int, str, range)):
        assert a == b, where
    else:
        assert_same(parts(a), parts(b), f"{where}.{type(a).__name__}")


def public(model):
    """Fitted attributes that are properties, by name; those that a model does not have are left out."""
    found = {}
    for name in dir(type(model)):
        if name.endswith("_") and not name.startswith("_"):
            try:
                found[name] = getattr(model, name)
            except AttributeError:
                continue
    return found


def answers(model, X):
    """What a model says of rows."""
    if hasattr(model, "sizes"):
        return {size: answers(model[size], X) for size in list(model.sizes)[::3]}
    methods = ("decision_function", "predict", "score_samples", "route", "apply")
    return {name: getattr(model, name)(X) for name in methods if hasattr(model, name)}


def assert_same_model(a, b, X):
    assert_same(a, b)
    if isinstance(a, BaseEstimator):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
    assert_same(public(a), public(b))
    assert_same(answers(a, X), answers(b, X))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fitted_object_comes_back(name, examples, tmp_path):
    model, X = examples(name), EXAMPLES[name][1]
    assert type(model).__name__ == name.split()[0]
    before = public(model)
    svmarrow.save(model, tmp_path / "model")
    assert_same(before, public(model))
    again = svmarrow.load(tmp_path / "model")
    assert_same_model(again, model, X)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_path_is_saved_without_its_training_rows(tmp_path):
    """Thresholds of all sizes are chosen when it is saved, to rounding as each would be alone."""
    X, y = np.tile(IRIS, (9, 1)), np.tile(KIND, 9)
    compression_path(_svc(), X=X, y=y).save(tmp_path / "tuned")
    compression_path(_svc()).save(tmp_path / "plain")
    again, fresh = svmarrow.load(tmp_path / "tuned"), compression_path(_svc(), X=X, y=y)
    assert repr(again) == repr(fresh)
    for size in reversed(fresh.sizes):
        ours, theirs = again[size].expansion, fresh[size].expansion
        np.testing.assert_allclose(ours.intercepts, theirs.intercepts, rtol=0, atol=1e-12)
        assert_same(ours.coefficients, theirs.coefficients)
    assert (tmp_path / "tuned").stat().st_size < (tmp_path / "plain").stat().st_size + X.nbytes / 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_pickles_and_clones_too(name, examples, tmp_path):
    model, X = examples(name), EXAMPLES[name][1]
    assert_same_model(pickle.loads(pickle.dumps(model)), model, X)
    model.save(tmp_path / "model")
    assert_same_model(pickle.loads(pickle.dumps(svmarrow.load(tmp_path / "model"))), model, X)
    if isinstance(model, BaseEstimator):
        assert_same(clone(svmarrow.load(tmp_path / "model")).get_params(), clone(model).get_params())


#: Its functions are chosen among all rows; one output a pair has no mistakes of its own.
CANNOT_LEARN_ON = {"LowRankRLSRegressor", "PerceptronTreeClassifier of pairs"}


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in EXAMPLES
        if hasattr(getattr(svmarrow, name.split()[0]), "partial_fit") and name not in CANNOT_LEARN_ON
    ],
)
def test_a_stream_goes_on_bit_for_bit(name, examples, tmp_path):
    stream, X = examples(name), EXAMPLES[name][1]
    stream.save(tmp_path / "model")
    on, off = pickle.loads(pickle.dumps(stream)), svmarrow.load(tmp_path / "model")
    rows = X if not isinstance(X, pd.DataFrame) else X.iloc
    for part in (slice(0, 40), slice(40, 80)):
        y = (
            stream.predict(X)[::-1]
            if not hasattr(stream, "classes_")
            else stream.classes_[KIND % stream.classes_.size]
        )
        on.partial_fit(rows[part], y[part])
        off.partial_fit(rows[part], y[part])
    assert_same_model(off, on, X)


# --- every public class ---


def public_classes():
    """The classes that the package and its parts name in ``__all__``."""
    names = ["svmarrow"] + [
        f"svmarrow.{part.name}"
        for part in pkgutil.iter_modules(svmarrow.__path__)
        if part.ispkg and not part.name.startswith("_") and part.name != "cli"
    ]
    modules = [importlib.import_module(name) for name in names]
    return {
        getattr(module, name)
        for module in modules
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    }


def not_savable(classes):
    """Classes of what is fitted, or made of it, that cannot be saved."""
    methods = ("fit", "predict", "decision_function", "select")
    fitted = {kind for kind in classes if any(hasattr(kind, method) for method in methods)}
    return {kind for kind in fitted if not issubclass(kind, Savable) or KINDS.get(kind.__name__) is not kind}


def test_every_public_class_can_be_saved_and_has_an_example():
    classes = public_classes()
    assert len(classes) > 40
    assert not_savable(classes) == set()
    fitted = {kind.__name__ for kind in classes if issubclass(kind, Savable)}
    assert fitted == {name.split()[0] for name in EXAMPLES}


def test_a_class_that_registers_nothing_is_noticed():
    class Forgotten(SVC):
        pass

    class Alone:
        def select(self):
            pass

    assert not_savable({SVC, Forgotten, Alone, Code}) == {Forgotten, Alone}


# --- what is refused ---


def _mine(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SVC(kernel=_mine).fit(TWO, SIDE), "kernel=.*Python function.*pickle"),
        (lambda: KMPRegressor(n_vectors=2, kernel=[_mine, "rbf"]).fit(TWO, SIDE), "kernel.*Python function"),
        (lambda: KMPRegressor(n_vectors=2, functions=np.sin).fit(TWO, SIDE), "functions=.*Python function"),
        (lambda: KMPRegressor(n_vectors=2, cv=KFold(3)).fit(TWO, SIDE), "cv=KFold.*pickle"),
        (lambda: ReducedSet(peer.SVC(), 4).fit(TWO, SIDE), r"estimator=SVC.*as_expansion\(model\)"),
        (
            lambda: CodedClassifier(LogisticRegression(), decoder="logistic").fit(IRIS, KIND),
            "estimator=Logistic",
        ),
        (lambda: type("Mine", (SVC,), {})().fit(TWO, SIDE), "type Mine.*as_expansion"),
        (lambda: SVC(C=1.0, gamma=1.0).fit(TWO, SIDE).set_params(n_jobs=0), "n_jobs=0"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(make, message, tmp_path):
    model = make()
    with pytest.raises((TypeError, ValueError), match=message):
        svmarrow.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_machine_inside_can_be_saved_as_an_expansion(tmp_path):
    model = ReducedSet(peer.SVC(), 4).fit(TWO, SIDE)
    svmarrow.save(svmarrow.as_expansion(model), tmp_path / "model")
    assert_same(svmarrow.load(tmp_path / "model").predict(TWO), model.predict(TWO))


# --- hostile files of every kind ---

KIND_EXAMPLES = {name.split()[0]: name for name in reversed(EXAMPLES)}


def take_apart(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def put_together(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def places(described, path=()):
    """Ways to all values of a JSON."""
    items = described.items() if isinstance(described, dict) else enumerate(described)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from places(item, (*path, key))


def use(path, X):
    """Load and predict: a file is refused, or gives a model that works or refuses rows in words."""
    try:
        model = svmarrow.load(path)
    except FormatError:
        return
    try:
        answers(model, X)
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError):
        return


INSTEAD = [
    *(None, True, -1, 2**70, 1e308, "rbf", [], {}, [[0]], {"float": "nan"}, {"same": 0}, {"tuple": []}),
    *({"array": "vectors"}, {"array": "coefficients"}),
    {"class": "SVC", "arguments": {}, "attributes": {}},
]


@pytest.mark.parametrize("kind", KIND_EXAMPLES)
def test_changed_json_is_refused_or_harmless(kind, examples, tmp_path):
    name = KIND_EXAMPLES[kind]
    model, X = examples(name), EXAMPLES[name][1]
    path = tmp_path / "model"
    model.save(path)
    header, data = take_apart(path)
    extra = header["__metadata__"]["extra"]
    rng = np.random.default_rng(0)
    ways = list(places(json.loads(extra)))
    for number in rng.permutation(len(ways))[:60]:
        changed = json.loads(extra)
        inner = changed
        for key in ways[number][:-1]:
            inner = inner[key]
        inner[ways[number][-1]] = INSTEAD[rng.integers(len(INSTEAD))]
        header["__metadata__"]["extra"] = json.dumps(changed)
        put_together(path, header, data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(path, X)


@pytest.mark.parametrize("kind", KIND_EXAMPLES)
def test_changed_bytes_are_refused_or_harmless(kind, examples, tmp_path):
    name = KIND_EXAMPLES[kind]
    model, X = examples(name), EXAMPLES[name][1]
    path = tmp_path / "model"
    model.save(path)
    data = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(data), 60):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            use(path, X)
