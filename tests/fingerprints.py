"""Prints the digest of every fit as JSON: ``python tests/fingerprints.py N_JOBS``."""

from helpers.fingerprints import main

main()
