"""Shared support code that does not depend on models.

Parameter rules, input validation, threads, progress, decoding, codes, certificates, plotting and saving.
"""
