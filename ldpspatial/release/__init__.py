"""What turns users' positions into a map under a stated claim.

A room and not a plural: ``ldpspatial.releases()`` is the function that returns all of them.
"""

from ldpspatial.release.release import Release, Released

__all__ = ["Release", "Released"]
