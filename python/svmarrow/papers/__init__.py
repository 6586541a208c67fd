"""Experiments of the papers that no product function needs: one module for each subject.

| module | repeats |
|---|---|
| `reduced_set` | J. Weston and G. H. Bakir, TR-132, 2004, and Z. Xu and others, 2015: selections of vectors |
| `rifkin` | R. Rifkin, "Everything Old Is New Again", MIT 2002: error bounds, errors of codes |

The other modules of svmarrow do not import these.
"""
