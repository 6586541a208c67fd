"""Estimators for tables: encoding, learned scales, and the choice of the kernel in one fit."""
