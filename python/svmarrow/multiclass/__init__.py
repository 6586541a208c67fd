"""Several classes from binary machines: codes and decoders.

| name | what |
|---|---|
| `svmarrow.CodedClassifier` | any binary classifier under any code, decoded in any way |
| `Code`, `make_code` | codes, their distances, and how they are made |

Source: R. Rifkin, "Everything Old Is New Again", MIT 2002, chapter 4. The bounds of the thesis and its
study of the errors of codes are in `svmarrow.papers.rifkin`.
"""

from svmarrow._support.decoding import Code, make_code

__all__ = ["Code", "make_code"]
