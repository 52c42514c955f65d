"""A campaign of rounds from end to end: a server, devices with ledgers, and the map."""
