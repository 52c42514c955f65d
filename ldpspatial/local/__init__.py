"""Local differential privacy: nobody but the device sees a position."""

from ldpspatial.local.dam import Dam, DamNs, Huem

__all__ = ["Dam", "DamNs", "Huem"]
