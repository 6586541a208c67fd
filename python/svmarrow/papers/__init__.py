"""Experiments of the papers that no product function needs: one module for each paper.

| module | repeats |
|---|---|
| `rifkin` | R. Rifkin, "Everything Old Is New Again", MIT 2002: error bounds, errors of codes |

The other modules of svmarrow do not import these.
"""
