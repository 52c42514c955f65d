"""What turns users' positions into a map under a stated claim.

Its name is a singular: ``ldpspatial.releases()`` is the function that returns all releases.
"""

from ldpspatial.release.release import Release, Released

__all__ = ["Release", "Released"]
