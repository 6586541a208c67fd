"""Every public name of svmarrow but those of its Dask module, from the module that is its home."""

import importlib

HOMES = (
    "svmarrow",
    "svmarrow.cascade",
    "svmarrow.distillation",
    "svmarrow.exceptions",
    "svmarrow.export",
    "svmarrow.inspection",
    "svmarrow.io",
    "svmarrow.kernels",
    "svmarrow.least_squares",
    "svmarrow.libsvm",
    "svmarrow.matching_pursuit",
    "svmarrow.model_selection",
    "svmarrow.models",
    "svmarrow.multiclass",
    "svmarrow.online",
    "svmarrow.papers.reduced_set",
    "svmarrow.papers.rifkin",
    "svmarrow.preprocessing",
    "svmarrow.reduced_set",
    "svmarrow.svm",
)
PUBLIC = {
    name: getattr(module, name) for module in map(importlib.import_module, HOMES) for name in module.__all__
}
#: The same as a program's first lines.
IMPORTS = "\n".join(f"from {home} import *" for home in HOMES)
