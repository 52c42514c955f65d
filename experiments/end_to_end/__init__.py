"""A whole collection from end to end: service, devices, browsers, map, and a series of windows."""
