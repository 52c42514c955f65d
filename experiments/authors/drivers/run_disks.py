"""Run DAM, DAM-NS or HUEM as their authors published them: cells of people in, a map out.

Arguments: the clone, a file with ``rows`` and ``columns`` (npz), the file to write, epsilon, cells
a side, the mechanism, a radius. Needs numpy, a Java compiler of version 17 or later, and the
authors' java-tools, a clone of which lies beside the other one. Their numbers come from
``Math.random``, which takes no seed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OWN = Path(__file__).parent / "disks"
SOURCES = Path("src/main/java")


def main() -> None:
    """Compile what is needed of both clones, and run it."""
    clone, given, found, epsilon, cells, mechanism, radius = sys.argv[1:]
    tools = Path(clone).with_name("java-tools")
    people = np.load(given)
    with tempfile.TemporaryDirectory() as place:
        sent, came = Path(place) / "people.txt", Path(place) / "shares.txt"
        np.savetxt(sent, np.stack([people["rows"], people["columns"]], 1), "%d")
        sources = [str(each) for each in (OWN, Path(clone) / SOURCES, tools / SOURCES)]
        compiler = ["javac", "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", place]
        compiler += ["-sourcepath", os.pathsep.join(sources), str(OWN / "RunDisks.java")]
        done = subprocess.run(compiler, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        program = ["java", "-cp", place, "RunDisks", mechanism, epsilon, cells, radius]
        subprocess.run([*program, str(sent), str(came)], check=True, stdout=subprocess.DEVNULL)
        rows, columns, shares = np.loadtxt(came).T
    density = np.zeros((int(cells), int(cells)))
    density[rows.astype(int), columns.astype(int)] = shares
    np.savez(found, density=density)


if __name__ == "__main__":
    main()
