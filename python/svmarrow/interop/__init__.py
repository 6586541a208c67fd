"""Kernel machines that others have trained, as expansions: scikit-learn's estimators, LIBSVM's files."""

from svmarrow.interop.convert import as_expansion
from svmarrow.interop.libsvm_reader import load_libsvm_model
from svmarrow.interop.libsvm_writer import save_libsvm_model

__all__ = ["as_expansion", "load_libsvm_model", "save_libsvm_model"]
