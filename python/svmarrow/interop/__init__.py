"""Kernel machines that others have trained, as expansions: scikit-learn's estimators, LIBSVM's files."""

from svmarrow.interop.convert import as_expansion
from svmarrow.interop.libsvm_model import load_libsvm_model, save_libsvm_model

__all__ = ["as_expansion", "load_libsvm_model", "save_libsvm_model"]
