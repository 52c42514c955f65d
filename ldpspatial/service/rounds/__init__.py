"""Rounds of distributed campaigns: a directory of identities, sessions of secure sums, the map."""
