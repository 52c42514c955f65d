"""Speeds of the server side."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.signal import fftconvolve

from client_sdk import Collection, Grid, Report, kernels, response_table
from experiments.benchmarks.timing import Table, in_process, seconds
from experiments.trials import draw_trial
from ldpspatial import StampChannel, estimate
from ldpspatial.collecting.report_files import write_reports

Linear = Callable[[np.ndarray], np.ndarray]
EPSILON = 3.5
COUNTED = 100_000_000
PART = 5_000_000
LINES = 10_000_000
LINES_PART = 100_000
SENT = 192  # bytes of a report with its padding
STRICT = "`Report.from_json` a line"
LOOSE = "`json.loads` a line, nothing else checked"


def em_against_others() -> Table:
    """EM at d = 64 against SciPy's convolutions and the dense matrix, same stopping rule."""
    trial = draw_trial("mnormal", 64, EPSILON, 100_000, np.random.default_rng(1))
    channel, counts = trial.channel, trial.counts
    tolerance = 1e-3 * np.exp(EPSILON)
    own = seconds(lambda: estimate(channel, counts, "likelihood"))
    ours = estimate(channel, counts, "likelihood")
    matrix = channel.matrix()
    inside = counts[channel.support]
    rows: list[list[object]] = []
    for which, forward, adjoint, repeats in (
        ("SciPy's `fftconvolve`", *_convolutions(channel), 5),
        (
            "dense NumPy matrix",
            lambda f: matrix @ f.ravel(),
            lambda r: (r @ matrix).reshape(64, 64),
            1,
        ),
    ):
        em = partial(_plain_em, forward, adjoint, inside, tolerance)
        began = time.perf_counter()
        density, steps = em()
        other = time.perf_counter() - began
        if repeats > 1:
            other = seconds(em, repeats)
        gap = np.abs(density - ours.density).max()
        if ours.iterations != steps or gap > 1e-8:
            raise RuntimeError(f"the two estimates differ: {steps} steps, {gap}")
        rows.append(
            [
                f"EM to the same stop, d = 64, eps = {EPSILON}, {steps} steps",
                f"{own:.2f} s",
                f"{other:.3g} s ({which}; largest difference {gap:.0e})",
                f"{other / own:.3g}",
            ]
        )
    return ["what", "ldpspatial", "alternative", "ratio"], rows


def _convolutions(channel: StampChannel) -> tuple[Linear, Linear]:
    """Return the channel and its adjoint by the library's convolution, without plans or padding."""
    table = channel.table
    base, b = table.base_weight / table.total_weight, table.radius
    stamp = np.zeros((2 * b + 1, 2 * b + 1))
    for (row, col), weight in table.weights.items():
        stamp[b + row, b + col] = (weight - table.base_weight) / table.total_weight

    def forward(density: np.ndarray) -> np.ndarray:
        return (fftconvolve(density, stamp) + base * density.sum())[channel.support]

    def adjoint(ratio: np.ndarray) -> np.ndarray:
        spread = np.zeros(channel.output_shape)
        spread[channel.support] = ratio
        return np.asarray(fftconvolve(spread, stamp, mode="valid") + base * ratio.sum())

    return forward, adjoint


def _plain_em(
    forward: Linear, adjoint: Linear, counts: np.ndarray, tolerance: float
) -> tuple[np.ndarray, int]:
    density = np.full((64, 64), 1 / 64**2)
    predicted = forward(density)
    likelihood = counts @ np.log(predicted)
    steps = 0
    while True:
        density = density * adjoint(counts / predicted) / counts.sum()
        predicted = forward(density)
        before = likelihood
        likelihood = counts @ np.log(predicted)
        steps = steps + 1
        if likelihood - before < tolerance:
            return density, steps


def large_grids() -> Table:
    """EM on grids whose dense matrix does not fit in memory."""
    rows: list[list[object]] = []
    for cells in (256, 512, 1024):
        code = (
            "import numpy as np\n"
            "from experiments.trials import draw_trial\n"
            "from ldpspatial import estimate\n"
            f"t = draw_trial('mnormal', {cells}, {EPSILON}, 100_000, np.random.default_rng(2))\n"
            "began = time.perf_counter()\n"
            "e = estimate(t.channel, t.counts, 'scaled')\n"
            "result['seconds'] = time.perf_counter() - began\n"
            "result['steps'] = e.iterations\n"
            "result['converged'] = e.converged\n"
            "result['radius'] = t.channel.table.radius\n"
            "result['outputs'] = t.channel.table.output_size"
        )
        found = in_process(code)
        dense = found["outputs"] * cells**2 * 8 / 2**30
        rows.append(
            [
                f"EM at d = {cells}, b = {found['radius']}, 100,000 reports",
                f"{found['seconds']:.1f} s, {found['steps']} steps, {found['peak_mb']:.0f} MB peak",
                f"dense matrix: {dense:,.0f} GiB",
                f"{dense * 1024 / found['peak_mb']:.0f} (memory)",
            ]
        )
    return ["what", "ldpspatial", "alternative", "ratio"], rows


def counting() -> Table:
    """Count 10^8 reports in Parquet, with and without ids."""
    grid = Grid.from_center(48.0, 11.0, 12_000, 64)
    collection = Collection.create("benchmark", grid, EPSILON)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        _write_reports(Path(folder), collection)
        head = f"from pathlib import Path\nfiles = sorted(Path({folder!r}).glob('*.parquet'))\n"
        own = (
            f"{head}from client_sdk import Collection\n"
            "from ldpspatial.collecting.counting import count_reports\n"
            f"c = Collection.from_json(Path({folder!r}, 'c.json').read_text())\n"
            "began = time.perf_counter()\nr = count_reports(files, c)\n"
            "result['seconds'] = time.perf_counter() - began\nresult['n'] = r.n"
        )
        other = (
            f"{head}import pyarrow.dataset as ds\n"
            "began = time.perf_counter()\n"
            "t = ds.dataset(files).to_table(columns=['row', 'col'])\n"
            "t.group_by(['row', 'col']).aggregate([([], 'count_all')])\n"
            "result['seconds'] = time.perf_counter() - began"
        )
        loaded = in_process(other)
        with_ids = in_process(own)
        bare = Path(folder, "bare")
        bare.mkdir()
        _drop_ids(Path(folder), bare)
        without = in_process(own.replace("glob('*.parquet')", "glob('bare/*.parquet')"))
    alternative = f"{loaded['seconds']:.1f} s, {loaded['peak_mb']:.0f} MB (PyArrow, whole table)"
    for name, found in (("no ids", without), ("ids checked for repeats", with_ids)):
        rows.append(
            [
                f"count {found['n']:,} reports in Parquet, {name}",
                f"{found['seconds']:.1f} s, {found['peak_mb']:.0f} MB peak",
                alternative,
                f"{loaded['peak_mb'] / found['peak_mb']:.0f} (memory)",
            ]
        )
    return ["what", "ldpspatial", "alternative", "ratio"], rows


def counting_lines() -> Table:
    """Count reports in JSON lines as devices send them, against a strict reader for each line."""
    collection = Collection.create("benchmark", Grid.from_center(48.0, 11.0, 12_000, 64), EPSILON)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "reports.jsonl")
        _write_lines(file, collection)
        Path(folder, "c.json").write_text(collection.to_json())
        head = (
            "from pathlib import Path\nfrom client_sdk import Collection, Report\n"
            f"c = Collection.from_json(Path({folder!r}, 'c.json').read_text())\n"
        )
        own = in_process(
            f"{head}from ldpspatial.collecting.counting import count_reports\n"
            f"began = time.perf_counter()\nr = count_reports({str(file)!r}, c)\n"
            "result['seconds'] = time.perf_counter() - began\nresult['n'] = r.n"
        )
        plain = {name: in_process(head + code) for name, code in _plain_ways(file).items()}
    alternatives = "; ".join(
        f"{found['seconds']:.0f} s, {found['peak_mb']:.0f} MB ({name})"
        for name, found in plain.items()
    )
    return (
        ["what", "ldpspatial", "alternative", "ratio"],
        [
            [
                f"count {own['n']:,} reports in JSON lines, ids checked for repeats",
                f"{own['seconds']:.0f} s, {own['peak_mb']:.0f} MB peak",
                alternatives,
                f"{plain[STRICT]['seconds'] / own['seconds']:.1f}",
            ]
        ],
    )


def _plain_ways(file: Path) -> dict[str, str]:
    """Return loops that count the cells of one collection and look each id up, by name."""
    loop = (
        "from collections import Counter\nimport json\n"
        "began = time.perf_counter()\ncells, ids = Counter(), set()\n"
        f"for line in open({str(file)!r}, 'rb'):\n"
        "    {read}\n"
        "    row, col, name, collection = {fields}\n"
        "    if collection == c.digest and name not in ids:\n"
        "        ids.add(name)\n"
        "        cells[row, col] += 1\n"
        "result['seconds'] = time.perf_counter() - began"
    )
    return {
        STRICT: loop.format(
            read="r = Report.from_json(line.decode())",
            fields="r.row, r.col, r.id, r.collection",
        ),
        LOOSE: loop.format(
            read="r = json.loads(line)",
            fields="r['row'], r['col'], r['id'], r['collection']",
        ),
    }


def _write_lines(file: Path, collection: Collection) -> None:
    rng = np.random.default_rng(5)
    with file.open("w", encoding="ascii") as stream:
        for _ in range(LINES // LINES_PART):
            rows, cols = rng.integers(0, collection.grid.cells, (2, LINES_PART))
            drawn = kernels.randomize_many(collection.table, rows, cols)
            ids = rng.bytes(16 * LINES_PART).hex()
            for k, (row, col) in enumerate(zip(*(part.tolist() for part in drawn), strict=True)):
                report = Report(collection.digest, ids[32 * k : 32 * (k + 1)], row, col)
                stream.write(report.to_json().ljust(SENT) + "\n")


def _write_reports(folder: Path, collection: Collection) -> None:
    rng = np.random.default_rng(3)
    (folder / "c.json").write_text(collection.to_json())
    for part in range(COUNTED // PART):
        rows, cols = rng.integers(0, collection.grid.cells, (2, PART))
        reports = kernels.randomize_many(collection.table, rows, cols)
        ids = rng.integers(0, 256, (PART, 16), np.uint8)
        write_reports(folder / f"{part:03}.parquet", collection, *reports, ids)


def _drop_ids(folder: Path, bare: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only here

    for file in folder.glob("*.parquet"):
        pq.write_table(pq.read_table(file, columns=["row", "col", "collection"]), bare / file.name)


def direct_against_fft() -> Table:
    """One forward and one adjoint step by both methods: where the default switches."""
    rng = np.random.default_rng(4)
    rows: list[list[object]] = []
    for cells in (15, 64, 256):
        for radius in (1, 3, 5, 9, 14):
            table = response_table("dam", EPSILON, cells, radius=radius)
            times = {}
            for method in ("direct", "fft"):
                channel = StampChannel(table, method)
                density = rng.random(channel.input_shape)
                ratio = rng.random(channel.output_shape)
                times[method] = seconds(
                    lambda c=channel, f=density, r=ratio: (c.forward(f), c.adjoint(r)), 20
                )
            rows.append(
                [
                    cells,
                    radius,
                    len(table.weights),
                    f"{times['direct'] * 1e6:.0f} µs",
                    f"{times['fft'] * 1e6:.0f} µs",
                    StampChannel(table).method,
                ]
            )
    return ["d", "b", "disk cells", "direct", "FFT", "default"], rows
