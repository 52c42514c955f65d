"""Clones of authors' repositories in a folder, and how their code is run."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpspatial.errors import InputError

Arrays = Mapping[str, NDArray[Any]]
DRIVERS = Path(__file__).parent / "drivers"
# Their matrices are small: more threads than cores wait for each other.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
TOLD = 300  # characters of an error


@dataclass(frozen=True)
class Clone:
    """A public repository.

    Attributes
    ----------
    repository : str
        On GitHub; a clone's folder has the part behind the slash for its name.
    driver : str
        File in ``drivers`` that runs its code.
    marker : str
        A file of it that is run.
    compiler : str
        That must be on PATH, if any.
    beside : Clone, optional
        Of a repository that it needs in the same folder.
    """

    repository: str
    driver: str
    marker: str
    compiler: str = ""
    beside: "Clone | None" = None

    def folder(self, code: Path) -> Path:
        """Return where the clone lies.

        Raises
        ------
        InputError
            It, or what it needs, is not there.
        """
        folder = code / self.repository.partition("/")[2]
        if not (folder / self.marker).is_file():
            raise InputError(
                f"--code must hold a clone of github.com/{self.repository} with {self.marker}: "
                f"run git clone https://github.com/{self.repository} there"
            )
        if self.compiler and shutil.which(self.compiler) is None:
            raise InputError(f"{self.repository} needs the compiler {self.compiler} on PATH")
        if self.beside is not None:
            self.beside.folder(code)
        return folder.resolve()

    def run(self, code: Path, given: Arrays, *words: object) -> dict[str, NDArray[Any]]:
        """Run the driver on arrays in a process of its own and return the arrays it wrote.

        Raises
        ------
        InputError
            There is no clone, or its code failed.
        """
        folder = self.folder(code)
        with tempfile.TemporaryDirectory() as place:
            sent, found = Path(place) / "given.npz", Path(place) / "found.npz"
            np.savez(sent, **given)
            program = [sys.executable, DRIVERS / self.driver, folder, sent, found, *words]
            done = subprocess.run(
                [str(word) for word in program],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, **ONE_THREAD},
            )
            if done.returncode or not found.exists():
                told = done.stderr.strip()[-TOLD:] or f"it ended with {done.returncode} and no map"
                raise InputError(f"{self.repository} failed: {told}")
            with np.load(found) as arrays:
                return dict(arrays)


LDPTRACE = Clone("zealscott/LDPTrace", "run_ldptrace.py", "LDPTrace/code/main.py")
SQUARE_WAVE = Clone("dp-cont/dp-cont", "run_square_wave.py", "primitive.py")
HDG = Clone("YangJianyu-bupt/privmdr", "run_hdg.py", "HDG.py")
HEAT_MAPS = Clone(
    "ebagdasa/federated", "run_heat_maps.py", "analytics/location_heatmaps/run_experiment.py"
)
JAVA_TOOLS = Clone(
    "dulei715/java-tools",
    "run_disks.py",
    "src/main/java/cn/edu/dll/struct/point/TwoDimensionalIntegerPoint.java",
)
DISKS = Clone(
    "dulei715/2Dim-Est",
    "run_disks.py",
    "src/main/java/ecnu/dll/construction/schemes/new_scheme/discretization/"
    "DiscretizedDiskScheme.java",
    "javac",
    JAVA_TOOLS,
)
AHEAD = Clone("link-zju/ccs21-AHEAD", "run_ahead.py", "ahead_2dim.py")
CENTRAL_MAPS = Clone(
    "dpcomp-org/dpcomp_core", "run_central_maps.py", "dpcomp_core/algorithm/AG.py", "c++"
)
