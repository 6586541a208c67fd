"""Shared support code that does not depend on models.

Parameter rules, input validation, threads, progress, decoding, codes, plotting and saving.
"""
