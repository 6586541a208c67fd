"""Conversion of kernel machines trained elsewhere: scikit-learn's estimators and LIBSVM's files."""
