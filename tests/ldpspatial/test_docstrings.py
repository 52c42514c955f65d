"""Every example in a docstring gives what it says.

Examples may use the names of ``ldpspatial`` without an import.
"""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import ldpspatial

ROOT = Path(__file__).parents[2]
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


def test_modules_that_docstrings_name_are_there() -> None:
    """A relative name is one beside the file, as of an import."""
    missing = []
    for path in sorted((ROOT / "ldpspatial").rglob("*.py")):
        package = path.relative_to(ROOT).parts[:-1]
        for name in re.findall(r":mod:`~?([.\w]+)`", path.read_text(encoding="utf-8")):
            dots = len(name) - len(name.lstrip("."))
            start = package[: len(package) - dots + 1] if dots else ()
            module = Path(*start, *name.lstrip(".").split("."))
            folders = (ROOT / module, ROOT / "client_sdk" / "python" / module)
            if not any(each.is_dir() or each.with_suffix(".py").exists() for each in folders):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert not missing
