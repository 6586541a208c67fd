"""svmarrow's machines in the place of scikit-learn's, for programs that keep their imports.

>>> import svmarrow
>>> svmarrow.patch_sklearn()
>>> from sklearn.svm import SVC
>>> SVC.__module__
'svmarrow.patch.svm'
>>> svmarrow.unpatch_sklearn()

A program that cannot be edited runs under ``python -m svmarrow.patch script.py``.
"""
