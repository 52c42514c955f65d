"""Who may import whom: a room of ldpspatial imports rooms of lower floors, and no others.

tests/test_imports.py holds the code to it, and the table in docs/architecture.md shows it.
"""

FLOORS: tuple[dict[str, str], ...] = (
    {
        "errors": "one family of errors",
    },
    {
        "validate": "one rule an input",
        "compiled": "one way to compile",
        "one_thread": "linear algebra in one thread",
        "extensions": "what other packages bring",
    },
    {
        "places": "where people are: points, users on a grid, cell maps, regions",
        "channels": "what a report says of a position",
        "metrics": "how far apart two maps are; exact/ is the solver and its certificate",
    },
    {
        "estimation": "counts to map: estimators; field/, fit_check/, forgery/, intervals/",
        "privacy": "claims, audit, local privacy, still devices, shuffling, exact noise",
        "files": "tables, maps and positions in files; whole files or none",
    },
    {
        "datasets": "synthetic maps, walks, publishers' formats",
        "plotting": "figures",
    },
    {
        "release": "what turns positions into a map under a claim: local/, distributed/, central/",
    },
    {
        "planning": "before a collection: the recommended release, radius, grid, series",
        "collecting": "after it: counting, playing a collection, results written and read",
    },
    {
        "comparison": "releases x epsilons x people: table, curves",
    },
    {
        "service": "the collection server: store, requests of devices and operators",
    },
    {
        "cli": "parse, call, print",
    },
)
