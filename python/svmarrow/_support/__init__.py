"""What every floor above stands on, and what knows no model.

Rules of parameters, rows and threads, progress, decoding, codes, certificates, drawing, and the store of
what can be saved.
"""
