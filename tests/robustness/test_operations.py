"""Every public operation is in the list of those that are interrupted and starved, and works when small."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings

import pytest

from helpers.operations import OPERATIONS, Settings

ROOMS = (
    *("svm", "multiclass", "least_squares", "matching_pursuit", "online", "papers.reduced_set"),
    *("papers.rifkin", "reduced_set", "cascade", "models", "io", "export", "model_selection", "libsvm"),
    "kernels",
)
#: What is public and in no operation, and why.
EXCEPTIONS = {
    "a formula of some numbers": {"bagging_stability", "reverse_cumulative"},
    "a look at what is there": {
        *("Code.check_classes", "ExpansionDetector.decode", "ReducedPath.nbytes", "compiled"),
        *("ExpansionTree.leaf_expansion", "ExpansionTree.needs_double", "ExpansionSum.needs_double"),
    },
    "tells what the parameters say": {"RoutesFit.get_metadata_routing", "Search.get_metadata_routing"},
    "draws what it is given": {
        *("BinaryErrorDisplay.plot", "OverlapDisplay.plot", "GridScoresDisplay.plot", "Search.plot"),
    },
    "refuses: the model is finished": {"ExpansionModel.fit", "ExpansionTree.replaced"},
    "exchanges names of modules": {"patch_sklearn", "unpatch_sklearn"},
    "tells what is installed": {"show_versions"},
    "tells another library of svmarrow": {"register_skl2onnx"},
}


def public():
    """Name to code of every public function and method; `as_expansion` hands over what is there."""
    found = {}
    for room in ("svmarrow", *(f"svmarrow.{room}" for room in ROOMS)):
        module = importlib.import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                found[name] = thing.__code__
            for method in dir(thing) if inspect.isclass(thing) else ():
                function = inspect.getattr_static(thing, method)
                function = getattr(function, "__func__", function)
                own = inspect.isfunction(function) and function.__module__.startswith("svmarrow")
                if own and not method.startswith("_") and method != "as_expansion":
                    # Decorated methods share the code of their decorator.
                    found[function.__qualname__] = inspect.unwrap(function).__code__
    return found


@pytest.fixture(scope="session")
def called(tmp_path_factory):
    """Codes that all operations call together, and the classes whose methods they call."""
    codes, kinds = set(), set()

    def notice(frame, event, argument):
        if event == "call":
            codes.add(frame.f_code)
            thing = frame.f_locals.get("self")
            if type(thing).__module__.startswith("svmarrow"):
                kinds.add(type(thing))

    for one in OPERATIONS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = one.prepare(Settings(one.small, tmp_path_factory.mktemp("operation")))
            thing = run.fresh(1)
            sys.setprofile(notice)
            try:
                run.work(thing)
            finally:
                sys.setprofile(None)
    return codes, kinds


@pytest.mark.exhaustive
def test_every_public_function_and_class_is_in_an_operation(called):
    excused = set().union(*EXCEPTIONS.values())
    missing = {name for name, code in public().items() if code not in called[0]}
    print(sorted(missing ^ excused))
    assert missing - excused == set()
    assert excused - missing == set()

    missing = []
    for room in ("svmarrow", *(f"svmarrow.{room}" for room in ROOMS)):
        module = importlib.import_module(room)
        things = [getattr(module, name) for name in module.__all__]
        missing += [thing.__name__ for thing in things if inspect.isclass(thing) and thing not in called[1]]
    assert missing == ["GridScoresDisplay"]  # draws what it is given
