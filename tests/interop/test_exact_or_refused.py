"""What a conversion cannot do exactly it refuses by name: subclasses, parameters, steps, older pickles."""

from __future__ import annotations

import warnings

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
from sklearn import svm as peer
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, SelectorMixin
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

from helpers.programs import c_program, needs_gcc
from svmarrow import (
    SVC,
    SVR,
    CodedClassifier,
    KernelExpansion,
    KMPClassifier,
    KMPRegressor,
    PerceptronTreeClassifier,
    RLSClassifier,
    as_expansion,
    compress,
    compression_path,
    distil,
    load,
    quantize,
    save,
)
from svmarrow.cascade import CalibratedCascade, ExactCascade
from svmarrow.distillation import DistillationSettings
from svmarrow.export import to_c, to_onnx
from svmarrow.io import save_libsvm_model
from svmarrow.models import Calibration, ExpansionClassifier
from svmarrow.patch import svm as patched
from svmarrow.preprocessing import LearnedScaler
from svmarrow.reduced_set import GradientSettings, estimate_memory

X, Y = make_classification(400, 5, n_informative=4, n_redundant=0, weights=[0.85], flip_y=0.1, random_state=3)
X3, Y3 = make_classification(
    400, 5, n_informative=4, n_redundant=0, n_classes=3, weights=[0.7, 0.2], flip_y=0.1, random_state=3
)
QUICK = DistillationSettings(steps=100, n_drawn=100)


def calibrated(machine, X=X, y=Y):
    return CalibratedClassifierCV(machine, ensemble=False, cv=3).fit(X, y)


# --- the meaning of predict ---


@pytest.mark.parametrize(
    ("machine", "rows", "labels"),
    [
        (peer.SVC(class_weight="balanced"), X, Y),
        (SVC(class_weight="balanced"), X, Y),
        (RLSClassifier(0.1, class_weight="balanced"), X3, Y3),
    ],
)
def test_calibrated_labels_are_the_most_probable_classes(machine, rows, labels, tmp_path):
    model = calibrated(machine, rows, labels)
    by_scores = model.calibrated_classifiers_[0].estimator.predict(rows)
    assert (model.predict(rows) != by_scores).mean() > 0.01
    converted = as_expansion(model)
    save(model, tmp_path / "model")
    for one in (converted, load(tmp_path / "model"), clone(converted), converted.with_weighted(None)):
        assert (one.predict(rows) == model.predict(rows)).all()
    assert (converted.with_predict_by("scores").predict(rows) == by_scores).all()
    assert (converted.with_calibration(None).predict(rows) == by_scores).all()


def test_calibrated_of_ours_keeps_its_labels():
    model = as_expansion(SVC(class_weight="balanced").fit(X[:200], Y[:200]))
    assert model.predict_by == "scores"
    assert (model.calibrated(X[200:], Y[200:]).predict(X) == model.predict(X)).all()


def test_compression_measures_the_loss_of_the_labels_that_the_model_gives():
    model = calibrated(SVC(class_weight="balanced", gamma=0.2), X[:200], Y[:200])
    held_out = X[200:], Y[200:]
    small = compress(
        model, X[:200], Y[:200], validation=held_out, max_loss=0.1, scoring="accuracy", random_state=0
    )
    assert small.predict_by == "probabilities"
    assert small.expansion_.n_vectors < as_expansion(model).expansion_.n_vectors
    lost = model.score(*held_out) - small.score(*held_out)
    assert small.loss_bound_.loss == pytest.approx(lost, abs=1e-12)
    alike = compress(model, X[200:], n_vectors=60, random_state=0)
    assert (alike.predict(X[200:]) == model.predict(X[200:])).mean() > 0.9
    quantized = quantize(model, X=X, y=Y)
    assert quantized.quantization_.score_before == pytest.approx(model.score(X, Y))
    assert to_c(model, X=X, y=Y).score_before == pytest.approx(model.score(X, Y))


def test_vectors_of_a_model_that_predicts_by_probabilities_do_not_learn_from_labels():
    model = calibrated(SVC(class_weight={1: 5.0}, gamma=0.2))
    full = as_expansion(model)._replace(weighted=False)
    path = compression_path(full, X, Y, n_vectors=full.expansion_.n_vectors)
    # Thresholds stay where the sigmoids expect them.
    np.testing.assert_array_equal(path[path.sizes[-1]].expansion_.intercepts, full.expansion_.intercepts)
    hinge = GradientSettings(loss="hinge", steps=10)
    with pytest.raises(ValueError, match="predicts by its probabilities"):
        compression_path(full, X, Y, n_vectors=5, method="gradient", settings=hinge)


def test_what_decodes_by_itself_refuses_labels_by_probabilities(tmp_path):
    full = as_expansion(calibrated(SVC(class_weight="balanced")))
    for refused in (
        lambda: save_libsvm_model(full, tmp_path / "model"),
        lambda: ExactCascade.from_path(compression_path(full, n_vectors=10)),
        lambda: PerceptronTreeClassifier.from_expansion(full, X, budget=50),
    ):
        with pytest.raises(ValueError, match=r"with_predict_by\('scores'\)"):
            refused()
    small = compress(full, n_vectors=20)
    cascade = CalibratedCascade.from_fitted(full, small, X, epsilon=0.2)
    assert (cascade.predict(X) == full.predict(X)).mean() > 0.8
    ties = as_expansion(peer.SVC(break_ties=True).fit(X3, Y3))
    with pytest.raises(ValueError, match="break_ties=True has no place in a LIBSVM model"):
        save_libsvm_model(ties, tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"predict_by": "luck"}, "predict_by='luck' is not allowed"),
        ({"predict_by": "probabilities"}, "needs a calibration"),
        ({"predict_by": "votes"}, "needs decoding='code'"),
    ],
)
def test_predict_by_that_contradicts_the_model(changes, why):
    model = as_expansion(SVC().fit(X, Y))
    with pytest.raises(ValueError, match=why):
        model._replace(**changes)


def test_probabilities_that_all_are_one_give_the_first_class():
    """Sigmoids of double precision are 1 from a logit of 37 on: scikit-learn takes the first of equals."""
    model = calibrated(peer.SVC(kernel="linear"), X3, Y3)
    far = 1e4 * X3[:50]
    assert (as_expansion(model).predict(far) == model.predict(far)).all()
    assert (as_expansion(model).compiled().predict(far[0]) == model.predict(far[:1])).all()


@needs_gcc
def test_labels_in_single_precision_where_its_sigmoids_are_one(tmp_path):
    """Sigmoids of single precision are 1 from a logit of 17 on, and those of double precision from 37 on."""
    expansion = KernelExpansion(np.eye(3, dtype=np.float32), np.eye(3), np.zeros(3), kernel="linear")
    sigmoids = Calibration("classes", np.ones(3), np.zeros(3))
    model = ExpansionClassifier(expansion, [7, 8, 9], "ovr", calibration=sigmoids, predict_by="probabilities")
    rows = np.array([[20, 22, 3], [19, 25, 24], [40, 50, 3], [-30, -20, -25]], dtype=np.float32)
    expected = [8, 8, 7, 8]
    assert model.predict(rows.astype(float)).tolist() == expected
    assert [model.compiled().predict(row) for row in rows] == expected
    session = onnxruntime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert session.run(["label"], {"X": rows})[0].tolist() == expected
    to_c(model, tmp_path / "model.h", prefix="model")
    text = ", ".join(f"{value:.1f}f" for value in rows.ravel())
    source = f"""#include <stdio.h>
#include "model.h"
int main(void) {{
    const float rows[] = {{{text}}};
    float p[3];
    int row;
    model_probabilities(rows, p);
    for (row = 0; row < {len(rows)}; ++row) {{
        printf("%ld ", model_label(model_predict(rows + 3 * row)));
    }}
    return model_self_test() ? 0 : 1;
}}
"""
    assert [int(word) for word in c_program(tmp_path, source).split()] == expected


def test_machines_of_a_code_keep_what_stands_before_them(iris):
    rows, labels = iris
    rows = rows * [1.0, 5.0, 10.0, 100.0] + 3.0
    for machine in (
        make_pipeline(StandardScaler(), SVC(gamma=0.3)),
        BaggingClassifier(SVC(), 1, random_state=0),
    ):
        model = CodedClassifier(machine, decoder="hinge").fit(rows, labels)
        assert model.score(rows, labels) > 0.9


# --- subclasses ---


class ShiftingScaler(StandardScaler):
    def transform(self, X, copy=None):
        return super().transform(X, copy) + 1.0


class NamedScaler(StandardScaler):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, sample_weight)

    def __repr__(self):
        return "NamedScaler"


class Opposite:
    def predict(self, X):
        return super().predict(X)[::-1]


class OppositePeer(Opposite, peer.SVC):
    pass


class OppositeSVC(Opposite, SVC):
    pass


class OppositeSVR(Opposite, SVR):
    pass


class OppositePatched(Opposite, patched.SVC):
    pass


class OppositeModel(Opposite, ExpansionClassifier):
    pass


class ShiftedSVC(SVC):
    def _outputs(self, X):
        return super()._outputs(X) + 1.0


class LoggingSVC(SVC):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight)


class OwnSVC(Opposite, SVC):
    def as_expansion(self):
        return super().as_expansion()


class FirstBagging(BaggingClassifier):
    def predict(self, X):
        return self.estimators_[0].predict(X)


class MeanBagging(BaggingRegressor):
    def predict(self, X):
        return 2.0 * super().predict(X)


class OtherRest(OneVsRestClassifier):
    def decision_function(self, X):
        return -super().decision_function(X)


class OtherSearch(GridSearchCV):
    def predict(self, X):
        return super().predict(X)[::-1]


class OtherPipeline(Pipeline):
    def predict(self, X):
        return super().predict(X)[::-1]


class OtherKernel(gp.RBF):
    def __call__(self, X, Y=None, eval_gradient=False):
        return super().__call__(X, Y, eval_gradient)


class OtherLearned(LearnedScaler):
    def transform(self, X):
        return super().transform(X) + 1.0


class FirstColumns(SelectorMixin, BaseEstimator):
    def fit(self, X, y=None):  # noqa: ARG002 - scikit-learn's signature
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.arange(self.n_features_in_) < 2


class SecondColumns(SelectKBest):
    def transform(self, X):
        return super().transform(X) * 2.0


SUBCLASSES = [
    OppositePeer(),
    OppositeSVC(),
    OppositeSVR(),
    OppositePatched(),
    ShiftedSVC(),
    make_pipeline(ShiftingScaler(), SVC()),
    make_pipeline(OtherLearned(max_iter=1, n_samples=50), SVC()),
    make_pipeline(SecondColumns(k=2), SVC()),
    make_pipeline(make_pipeline(StandardScaler(), ShiftingScaler()), peer.SVC()),
    OtherPipeline([("scale", StandardScaler()), ("machine", SVC())]),
    FirstBagging(SVC(gamma=0.3), 3, random_state=0),
    MeanBagging(SVR(gamma=0.3), 3, random_state=0),
    OneVsRestClassifier(FirstBagging(SVC(gamma=0.3), 3, random_state=0)),
    VotingClassifier([("a", OppositeSVC(gamma=0.3)), ("b", SVC(gamma=0.3))]),
    OtherRest(SVC(gamma=0.3)),
    OtherSearch(SVC(), {"C": [1.0]}, cv=2),
    GaussianProcessRegressor(OtherKernel(), alpha=1.0, optimizer=None),
]


@pytest.mark.parametrize("model", SUBCLASSES, ids=lambda model: type(model).__name__)
def test_subclasses_that_predict_otherwise_are_refused(model, tmp_path):
    model = clone(model).fit(X[:80], Y[:80])
    for convert in (as_expansion, quantize, to_onnx, to_c, lambda one: compress(one, n_vectors=3)):
        with pytest.raises(TypeError, match=r"is a subclass of \w+ with another"):
            convert(model)
    if hasattr(model, "compiled"):
        with pytest.raises(TypeError, match=r"is a subclass of \w+ with another"):
            model.compiled()
    with pytest.raises(TypeError):
        save(model, tmp_path / "model")


def test_a_method_of_an_instance_is_an_override_too():
    model = peer.SVC().fit(X, Y)
    model.decision_function = lambda rows: np.zeros(len(rows))
    with pytest.raises(TypeError, match="another decision_function"):
        as_expansion(model)
    full = as_expansion(SVC().fit(X, Y))
    with pytest.raises(TypeError, match="another predict"):
        as_expansion(OppositeModel(full.expansion, full.classes, "binary"))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(NamedScaler(), SVC()),
        LoggingSVC(),
        make_pipeline(FirstColumns(), SVC()),
        make_pipeline(SelectKBest(k=2), peer.SVC()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_subclasses_that_only_train_otherwise_are_converted(model):
    model.fit(X, Y)
    np.testing.assert_allclose(
        as_expansion(model).decision_function(X), model.decision_function(X), rtol=0, atol=1e-9
    )


def test_a_subclass_may_answer_for_itself():
    model = OwnSVC().fit(X, Y)
    assert as_expansion(model).expansion_ is model.expansion_


# --- parameters ---


def test_degrees_that_are_not_whole_are_refused():
    model = KernelRidge(kernel="poly", degree=2.5, coef0=20.0).fit(np.abs(X), Y)
    for convert in (as_expansion, to_onnx, quantize):
        with pytest.raises(ValueError, match=r"degree=2\.5 is not allowed: it must be a whole number"):
            convert(model)
    other = KernelRidge(kernel="rbf", degree=2.5).fit(X, Y)
    np.testing.assert_allclose(as_expansion(other).predict(X), other.predict(X), rtol=1e-9, atol=1e-9)


def test_categories_that_are_no_numbers_of_double_precision_are_refused():
    identifiers = np.array([2**60, 2**60 + 1, 2**60 + 2])[np.arange(60) % 3, None]
    model = make_pipeline(OneHotEncoder(), SVC()).fit(identifiers, np.arange(60) % 3 > 0)
    with pytest.raises(ValueError, match="is not a number of double precision"):
        as_expansion(model)


# --- older versions of scikit-learn ---


def older(model, **attributes):
    """The model as an older version has left it: attributes under other names, or none."""
    state = vars(model)
    for name, old in attributes.items():
        value = state.pop(name)
        if old is not None:
            state[old] = value
    state["_sklearn_version"] = "0.21.3"
    return model


def test_machines_of_older_versions_are_read():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for rows, labels in ((X, Y), (X3, Y3)):
            model = peer.SVC(probability=True, random_state=0).fit(rows, labels)
            expected = as_expansion(model)
            read = as_expansion(
                older(
                    model,
                    break_ties=None,
                    n_features_in_=None,
                    _n_support="n_support_",
                    _probA="probA_",
                    _probB="probB_",
                )
            )
            assert (read.predict(rows) == expected.predict(rows)).all()
            np.testing.assert_array_equal(read.predict_proba(rows), expected.predict_proba(rows))
    process = GaussianProcessRegressor(alpha=1.0, optimizer=None).fit(X, Y)
    expected = as_expansion(process).predict(X)
    np.testing.assert_array_equal(as_expansion(older(process, _y_train_std=None)).predict(X), expected)


def test_what_an_older_version_does_not_have_is_named():
    model = older(calibrated(SVC()), calibrated_classifiers_=None)
    model.calibrated_classifiers_ = [type("Old", (), {"base_estimator": None, "estimator": SVC().fit(X, Y)})]
    with pytest.raises(ValueError, match=r"scikit-learn 0\.21\.3 and lacks"):
        as_expansion(model)


# --- one door for models of several kernels ---


def wide(A, B):
    return 1.0 / (1.0 + np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


@pytest.mark.parametrize("kind", [KMPClassifier, KMPRegressor])
def test_functions_among_several_kernels_are_refused_by_name(kind, tmp_path):
    model = kind(n_vectors=10, kernel=["rbf", wide], gamma=10.0).fit(X, Y)
    for convert in (
        as_expansion,
        quantize,
        compression_path,
        to_onnx,
        to_c,
        lambda one: one.compiled(),
        lambda one: estimate_memory(one, 5),
        lambda one: save_libsvm_model(one, tmp_path / "text"),
        lambda one: compress(one, n_vectors=3),
    ):
        with pytest.raises(TypeError, match=r"this model has 2 kernels, of which one is a Python function"):
            convert(model)


@pytest.mark.parametrize("kind", [KMPClassifier, KMPRegressor])
def test_several_widths_are_converted_exactly(kind, tmp_path):
    model = kind(n_vectors=10, gamma=(0.1, 10.0)).fit(X, Y)
    for convert in (as_expansion, lambda one: one):
        save(convert(model), tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    with pytest.raises(TypeError, match="several kernels"):
        save_libsvm_model(model, tmp_path / "text")


# --- models are values ---


def test_set_params_that_contradict_a_model_are_refused():
    model = compress(SVC().fit(X3, Y3), n_vectors=20)
    before = model.get_params(deep=False)
    for changes, why in (
        ({"classes": [0, 0, 0]}, "distinct"),
        ({"classes": [0, 1]}, "needs"),
        ({"decoding": "binary"}, "decoding"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": 2, "predict_by": "probabilities"}, "calibration"),
        ({"n_features": 3}, "n_features"),
        ({"kernel": "rbf"}, "a parameter of ExpansionClassifier"),
    ):
        with pytest.raises(ValueError, match=why):
            model.set_params(**changes)
        assert all(value is model.get_params(deep=False)[name] for name, value in before.items())
    assert model.set_params(n_jobs=1) is model
    assert model.n_jobs == 1


def test_clones_are_apart():
    model = compress(SVC().fit(X, Y), n_vectors=10)
    other = clone(model)
    assert other is not model
    assert other.loss_bound_ is model.loss_bound_
    other.set_params(classes=["no", "yes"], n_jobs=1)
    assert set(other.predict(X)) <= {"no", "yes"}
    assert model.classes_.tolist() == [0, 1]
    assert model.n_jobs is None
    assert other.loss_bound_ is None
    assert isinstance(clone(model).expansion_, KernelExpansion)


# --- imitation instead of conversion ---


def test_a_kernel_machine_that_is_not_converted_is_refused_and_distil_imitates_it():
    failing = {
        "PowerTransformer": make_pipeline(PowerTransformer(), SVC()),
        "averages probabilities": VotingClassifier(
            [("a", calibrated(SVC())), ("b", calibrated(SVC()))], voting="soft"
        ),
        "whole number": KernelRidge(kernel="poly", degree=2.5, coef0=50.0),
        "subclass of SVC": OppositePeer(),
    }
    for why, model in failing.items():
        model.fit(X, Y)
        with pytest.raises((TypeError, ValueError), match=why) as refusal:
            compress(model, X, Y, n_vectors=5, random_state=0, method="gradient")
        remedy = "svmarrow.distil(model, X, y) trains a kernel model that imitates this "
        assert str(refusal.value).endswith(remedy + type(model).__name__)
    distil(failing["PowerTransformer"], X, Y, n_vectors=5, random_state=0, settings=QUICK)
    forest = RandomForestClassifier(5, random_state=0)
    for other in (
        forest.fit(X, Y),
        make_pipeline(PowerTransformer(), forest).fit(X, Y),
        VotingClassifier([("a", forest), ("b", forest)], voting="soft").fit(X, Y),
        OneVsOneClassifier(forest).fit(X, Y),
    ):
        with pytest.raises((TypeError, ValueError), match=r"svmarrow\.distil\(model, X, y\)"):
            compress(other, X, Y, n_vectors=5)
        distil(other, X, Y, n_vectors=5, random_state=0, settings=QUICK)


def test_imitation_hands_frames_of_polars_on():
    polars = pytest.importorskip("polars")
    names = ["a", "b", "c", "d", "whole"]
    columns = np.column_stack([X[:, :4], np.rint(X[:, 4])])
    frame = polars.DataFrame(columns, schema=names).with_columns(polars.col("whole").cast(polars.Int32))
    forest = RandomForestClassifier(5, random_state=0).fit(frame, Y)
    seen = []

    def predict_proba(rows):
        seen.append(rows)
        return RandomForestClassifier.predict_proba(forest, rows)

    forest.predict_proba = predict_proba
    small = distil(forest, frame, Y, n_vectors=10, settings=QUICK, random_state=0)
    assert {type(rows) for rows in seen} == {polars.DataFrame}
    assert all(rows.schema == frame.schema for rows in seen)
    assert small.feature_names_in_.tolist() == names
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        labels = small.predict(columns)
    assert (small.predict(frame) == labels).all()
    with pytest.raises(ValueError, match="must be in the same order"):
        small.predict(frame.select(names[::-1]))
    with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
        small.predict(frame.rename({"a": "other"}))


def test_memory_of_automatic_compression():
    machine = SVC().fit(X, Y)
    by = {method: estimate_memory(machine, 50, X, method=method).total for method in ("backfit", "gradient")}
    assert estimate_memory(machine, 50, X, method="auto").total == max(by.values())
    assert (
        estimate_memory(machine, 50, method="auto").total
        == estimate_memory(machine, 50, method="backfit").total
    )
    settings = GradientSettings(batch=64)
    automatic = estimate_memory(machine, 50, X, method="auto", settings=settings)
    constructed = estimate_memory(machine, 50, X, method="gradient", settings=settings)
    assert automatic.total == max(constructed.total, by["backfit"])
    rows = sp.csr_array(X)
    assert estimate_memory(SVC().fit(rows, Y), 20, rows, method="auto").total > 0
