"""What the authors' public code does differently from the paper's text (ebagdasa/federated).

Nothing of that code is here: `python -m experiments authors` runs it from a clone.
"""

from dataclasses import dataclass
from functools import partial

from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.levels.adaptive_grid import AdaptiveGrid
from ldpspatial.release.distributed.sums.cohort import Cohort

# Branch adagrid, split_regions of geo_utils.py.
GRID_C2 = 15.0
# The loop over clients, make_step of geo_utils.py on all branches, adds up what it has gathered
# at every hundredth client and at the last one, but not if that very client has dropped out: the
# next hundred then write over it. With a drop-out of 10 % it keeps 8,183 of 10,000 in the mean of
# 300 runs of the loop, 7,095 at least.
KEPT = 0.82
LOOP = Cohort(drop_out=round(1 - KEPT, 2), tolerated=0.2)


def authors_grid(cohort: Cohort) -> AdaptiveGrid:
    """Return the adaptive grid of branch adagrid."""
    return AdaptiveGrid(cohort, c2=GRID_C2, rounding="nearest")


@dataclass(frozen=True)
class PlannedForOne(AdaptiveHierarchical):
    """Rounds planned for answers of sensitivity 1, as on branch multi_loc.

    There epsilon and threshold of a round are computed for noise that one person needs, while the
    noise drawn is for gamma + T. The claim is kept, as noise is what it should be; but a tree
    grows on noise that its thresholds do not know of.
    """

    def planned_for(self, length: int) -> tuple[int, int]:
        """Return 1 and 1."""
        return 1, 1


# Everybody answers every round there, as in the paper.
planned_for_one = partial(PlannedForOne, asked="every round")
