"""Run the adaptive histogram as its authors published it: pixels of people in, a map out.

Arguments: the clone, a file with ``rows`` and ``columns`` of pixels of 1024 x 1024 (npz), the file
to write, epsilon, a side to which the image is summed, a seed. Needs numpy, scipy and Pillow.

Tree, schedule, thresholds, noise and image are theirs, with the settings of their notebook's last
experiments (c = 1/10, one secure sum of everybody). What they use of TensorFlow is the Gamma and
the Poisson law, for which NumPy stands in, in double precision; of pygtrie a dictionary of
paths. Their plots, progress bars and metrics are left out.

Their image spreads a leaf's count over its pixels as count / side, where pixels are side^2: large
leaves have too much of it. It is written as ``image``, and with that put right as ``density``.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

SIDE = 1024
FOLDER = "analytics/location_heatmaps"
CALIBRATION = 1 / 10


class Paths(dict):  # type: ignore[type-arg]
    """What they need of a trie: values by paths of names with slashes between."""

    def has_key(self, path):  # type: ignore[no-untyped-def]
        """Tell whether a path has a value."""
        return path in self

    def longest_prefix(self, path):  # type: ignore[no-untyped-def]
        """Return the longest beginning of a path that has a value, and the value."""
        names = path.split("/")
        for length in range(len(names), 0, -1):
            begin = "/".join(names[:length])
            if begin in self:
                return begin, self[begin]
        return None, None

    def keys(self, path):  # type: ignore[no-untyped-def]
        """Return a path and what lies below it."""
        return sorted(each for each in self if each == path or each.startswith(f"{path}/"))


def tensorflow() -> ModuleType:
    """Return what they call of TensorFlow."""

    def gamma(shape, alpha, beta, dtype):  # type: ignore[no-untyped-def]
        return np.random.gamma(alpha, 1 / beta, shape)  # noqa: NPY002

    def poisson(shape, lam, dtype):  # type: ignore[no-untyped-def]
        return np.random.poisson(lam, (*shape, *lam.shape))  # noqa: NPY002

    def reshape(tensor, shape):  # type: ignore[no-untyped-def]
        return SimpleNamespace(numpy=lambda: np.reshape(tensor, shape))

    found = ModuleType("tensorflow")
    vars(found).update(
        random=SimpleNamespace(gamma=gamma, poisson=poisson),
        dtypes=SimpleNamespace(float16=None, int32=None),
        subtract=np.subtract,
        reshape=reshape,
    )
    return found


def stand_in(name: str, **content: object) -> None:
    """Let an import find a module with this content."""
    module = ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module


def sides(paths):  # type: ignore[no-untyped-def]
    """Return the side of the leaf that is drawn at each pixel: they draw in this order."""
    found = np.ones((SIDE, SIDE))
    for path in sorted(paths):
        bits = path.split("/")
        row, column = (int("".join(each[k] for each in bits), 2) for k in (0, 1))
        side = SIDE >> len(bits)
        rows, columns = (slice(at * side, (at + 1) * side + 1) for at in (row, column))
        found[rows, columns] = side
    return found


def main() -> None:
    """Play their experiment and sum the map of its last round."""
    clone, given, found, epsilon, cells, seed = sys.argv[1:]
    sys.path.insert(0, str(Path(clone) / FOLDER))
    sys.modules["tensorflow"] = tensorflow()
    stand_in("pygtrie", StringTrie=Paths)
    stand_in("tqdm", tqdm=lambda values, **_: values)
    stand_in("plotting")
    stand_in("metrics", get_metrics=lambda *_, **__: SimpleNamespace(mse=0.0))
    mechanisms, run = (import_module(name) for name in ("mechanisms", "run_experiment"))
    np.random.seed(int(seed))  # noqa: NPY002 - what their code draws from
    held = np.load(given)
    people = np.zeros(len(held["rows"]), dtype=[("x", np.int16), ("y", np.int16)])
    people["x"], people["y"] = held["rows"], held["columns"]
    users = len(people)
    results = run.run_experiment(
        np.ones((SIDE, SIDE)),
        people,
        level_sample_size=users,
        secagg_round_size=users,
        eps_func=lambda _, regions: mechanisms.get_eps_from_two_std(CALIBRATION * users / regions),
        threshold_func=lambda _, __, eps, left: 2 * mechanisms.get_std_from_eps(max(eps, left)),
        collapse_func=lambda threshold: threshold / 4,
        total_epsilon_budget=float(epsilon) * users,
        partial=100,
        max_levels=10,
        total_size=SIDE,
        output_flag=False,
    )
    image = np.maximum(results[-1].image, 0.0)
    side = int(cells)
    maps = {"image": image, "density": image / sides(results[-1].tree)}
    summed = {
        name: each.reshape(side, SIDE // side, side, SIDE // side).sum((1, 3))
        for name, each in maps.items()
    }
    np.savez(found, **{name: each / each.sum() for name, each in summed.items()})


if __name__ == "__main__":
    main()
