"""Generated pages: written whole, as they lie in docs, and read out by a page that people write."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.__main__ import main as experiments
from experiments.generated import PAGES, generated, head, write_page
from experiments.studies import coverage as coverage_module
from experiments.studies import plan_figure as plan_figure_module
from experiments.studies.coverage import coverage, summarised
from experiments.studies.plan_figure import plan_figure
from experiments.tables import DOCS, replace_block


def test_a_page_is_its_head_and_the_text(tmp_path: Path) -> None:
    write_page(tmp_path, "covid", "| a |\n| --- |\n| 1 |")
    text = generated(tmp_path, "covid.md").read_text(encoding="utf-8")
    assert text == head("covid") + "\n| a |\n| --- |\n| 1 |\n"
    assert text.startswith("# Counties with COVID deaths\n\n`python -m experiments covid --data")
    assert "](../experiments/heatmaps-replications.md)" in text
    assert "![Four metrics over epsilon on 16 x 16 cells](covid-metrics.png)" in text
    write_page(tmp_path, "covid", "once more")
    assert generated(tmp_path, "covid.md").read_text() == head("covid") + "\nonce more\n"


def test_the_folder_holds_these_pages_and_no_others() -> None:
    assert {path.stem for path in generated(DOCS, "").glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_as_it_is_written_and_is_read_out(name: str) -> None:
    assert generated(DOCS, f"{name}.md").read_text(encoding="utf-8").startswith(head(name))
    reader = DOCS / PAGES[name].read_in.partition("#")[0]
    assert f"generated/{name}.md" in reader.read_text(encoding="utf-8")


def test_the_page_on_experiments_names_every_command() -> None:
    text = (DOCS / "experiments.md").read_text(encoding="utf-8")
    assert {*experiments.commands} <= {*re.findall(r"`([\w-]+)`", text)}


def test_every_figure_is_shown_on_some_page() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    shown = {
        Path(target).name
        for page in pages
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in generated(DOCS, "").glob("*.png")} <= shown


@pytest.mark.parametrize(
    ("page", "mark"),
    [
        ("experiments/forged-reports.md", "forged-reports"),
        ("experiments/levels.md", "central-levels"),
        ("experiments/levels.md", "distributed-levels"),
        ("experiments/trust-models.md", "flagship"),
        ("experiments/trust-models.md", "flagship-gains"),
        ("experiments/windows.md", "series"),
        ("experiments/estimators.md", "accuracy"),
        ("experiments/estimators.md", "coverage"),
        ("experiments/estimators.md", "stopping"),
        ("privacy.md", "still-device"),
        ("experiments/region-intervals.md", "city-intervals"),
        ("experiments/region-intervals.md", "polygon-errors"),
        ("recommended.md", "better-default"),
        ("recommended.md", "better-default-drawn"),
        ("recommended.md", "local-rivals"),
        ("releases.md", "claims"),
        ("secure-aggregation.md", "secure-aggregation"),
    ],
)
def test_pages_have_a_place_for_their_short_tables(page: str, mark: str, tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    text = (DOCS / page).read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    replace_block(copy, mark, "| new |")
    before, after = text.split(f"<!-- {mark} -->\n")[0], text.split(f"\n<!-- /{mark} -->")[1]
    assert copy.read_text(encoding="utf-8") == (
        f"{before}<!-- {mark} -->\n| new |\n<!-- /{mark} -->{after}"
    )


def test_coverage_writes_a_part_for_each_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage_module, "DOCS", tmp_path)
    page = tmp_path / "experiments" / "estimators.md"
    page.parent.mkdir()
    page.write_text("<!-- coverage -->\n<!-- /coverage -->\n")
    setting = ("15", "3.5", "100", "fisher")
    rows = [
        ("normal", *setting, "0.97", "0.95", "0.91", "1.17%", "4.15%"),
        ("szipf", *setting, "0.97", "0.98", "0.90", "10.67%", "5.80%"),
    ]
    monkeypatch.setattr(coverage_module, "covered", lambda *_: rows)
    result = CliRunner().invoke(coverage, ["--write"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    whole = generated(tmp_path, "coverage.md").read_text()
    assert whole.startswith(
        head("coverage") + "\n## Estimates by `scaled`\n\n| map | d | eps | n |"
    )
    assert whole.count("| normal | 15 | 3.5 | 100 | fisher | 0.97 | 0.95 | 0.91 | 1.17% |") == 2
    summary = "15 | 3.5 | 100 | fisher | 0.97 | 0.95 to 0.98 | 0.90 to 0.91 | 1.17% to 10.67% |"
    assert page.read_text().count(summary) == 2


def test_the_summary_of_coverage_is_that_of_the_page() -> None:
    parts = generated(DOCS, "coverage.md").read_text(encoding="utf-8").split("## Estimates by `")
    found = {
        part.partition("`")[0]: [
            tuple(cell.strip() for cell in line.strip("|").split("|"))
            for line in part.splitlines()
            if re.match(r"\| \w+ \| \d", line)
        ]
        for part in parts[1:]
    }
    assert all(len(rows) % 5 == 0 for rows in found.values())  # five maps a setting
    assert found
    assert summarised(found) in (DOCS / "experiments" / "estimators.md").read_text(encoding="utf-8")


def test_the_figure_of_a_plan_lands_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_figure_module, "DOCS", tmp_path)
    monkeypatch.setattr(plan_figure_module, "PEOPLE", 200)
    monkeypatch.setattr(plan_figure_module, "CELLS", 6)
    result = CliRunner().invoke(plan_figure, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert generated(tmp_path, "wasserstein-plan.png").stat().st_size > 5_000
