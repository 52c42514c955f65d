"""Every example in a docstring gives what it says.

Examples may use the names of ``ldpspatial`` without an import.
"""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import ldpspatial

MODULES = [
    module.name
    for module in pkgutil.walk_packages(ldpspatial.__path__, "ldpspatial.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    public = {each: getattr(ldpspatial, each) for each in ldpspatial.__all__}
    module = importlib.import_module(name)
    # Numbers as numpy 1 wrote them: True, where numpy 2 writes np.True_.
    with np.printoptions(legacy="1.25" if np.__version__ >= "2" else False):
        result = doctest.testmod(module, extraglobs=public, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
