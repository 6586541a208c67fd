"""The selections of vectors by which two papers compress kernel machines.

`path` has them all, so that the tables of a paper come from one function. ``"backfit"``, ``"prefit"`` and
``"rank"`` are those of `svmarrow.compression_path`; ``"basic"``, ``"l0"``, ``"l1"`` and ``"lars"`` only
repeat the experiments.

| file | holds |
|---|---|
| `selections` | `path`: every size, by any of these selections |
| `settings` | `PaperSettings`: their settings |

Sources: J. Weston and G. H. Bakir, "Fast Binary and Multi-Output Reduced Set Selection", technical report 132
(TR-132), Max Planck Institute for Biological Cybernetics, 2004; Z. Xu, J. R. Gardner, S. Tyree and
K. Q. Weinberger, "Compressed Support Vector Machines", 2015.
"""

from svmarrow.papers.reduced_set.selections import PaperSettings, path

__all__ = ["PaperSettings", "path"]
