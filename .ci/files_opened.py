"""Counts the files of the package that a reader of a method opens, by a static walk between functions.

A function leads to the functions, classes and methods whose names its code contains: global names of its
file, names on ``self`` of the class that the walk began with, and attributes of modules. Classes lead to
their constructors, decorators to what they wrap. The extension module and other packages are not followed.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import svmarrow

ROOT = Path(svmarrow.__file__).parent
WALKS = {
    "SVC.fit": (svmarrow.SVC, "fit"),
    "SVC.predict": (svmarrow.SVC, "predict"),
    "compress": (None, svmarrow.compress),
    "TabularClassifier.fit": (svmarrow.TabularClassifier, "fit"),
}


def names_of(code: CodeType) -> set[str]:
    """Names in the code of a function and of the functions inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_of, inner))


def functions_of(thing: Any) -> list[FunctionType]:
    """The functions of svmarrow that a function, property or class leads to."""
    if isinstance(thing, property):
        return functions_of(thing.fget)
    if isinstance(thing, (classmethod, staticmethod)):
        return functions_of(thing.__func__)
    if inspect.isclass(thing):
        own = [vars(thing).get(name) for name in ("__init__", "__post_init__", "__new__")]
        return [function for each in own for function in functions_of(each)]
    if isinstance(thing, FunctionType):
        inner = inspect.unwrap(thing)
        return [each for each in (thing, inner) if each.__module__.startswith("svmarrow")]
    return []


def walk(kind: Any, start: Any) -> set[Path]:
    """The files of all functions that a method, or a function, leads to."""
    waiting = functions_of(inspect.getattr_static(kind, start) if kind is not None else start)
    seen: set[FunctionType] = set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        names = names_of(function.__code__)
        for name in names:
            found = function.__globals__.get(name)
            waiting += functions_of(found)
            if isinstance(found, ModuleType) and found.__name__.startswith("svmarrow"):
                waiting += [each for n in names for each in functions_of(getattr(found, n, None))]
            if kind is not None and "self" in function.__code__.co_varnames[:1]:
                waiting += functions_of(inspect.getattr_static(kind, name, None))
    paths = {Path(function.__code__.co_filename) for function in seen}
    return {path for path in paths if path.is_relative_to(ROOT)}


if __name__ == "__main__":
    for title, (kind, start) in WALKS.items():
        files = sorted(str(path.relative_to(ROOT)) for path in walk(kind, start))
        print(f"{title}: {len(files)} files")
        if "--names" in sys.argv:
            print("   ", *files, sep="\n    ")
