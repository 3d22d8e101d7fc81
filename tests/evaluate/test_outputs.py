"""Tables, plots, pages, the command line, and what bad input is answered with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.cli.research.evaluate import app
from setnet.errors import InvalidInputError, ModelError, SetNetError
from setnet.evaluate.data.people import People, divided, read_people
from setnet.evaluate.data.splits import read_split
from setnet.evaluate.data.world_source import Source
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.report.page import write_markdown, write_page
from setnet.evaluate.report.paper_comparison import compared, paper_table, paper_tables
from setnet.evaluate.report.plots import plots_of
from setnet.evaluate.report.record import Record, Row, Run, read_record
from setnet.evaluate.report.tables import Column, clear_best, result_table
from setnet.learn.data.virtual_people import VirtualPeople

RNG = np.random.default_rng(0)


def stress_row(name: str, middle: float, bound: bool = False) -> Row:
    values = {f"ndcg{d}@{f}": [middle - f, middle - f + 1] for d in (10, 30) for f in (2, 3, 4, 5)}
    return Row(name, values, {"bytes": 512, "bytes_per_item": 512}, bound)


def stress_run(path: Path | None = None) -> Run:
    run = Run("stress", {"seed": 0}, path)
    for row in (stress_row("mean", 80), stress_row("a|b <i>", 90), stress_row("bound", 99, bound=True)):
        run.add(row)
    return run


def test_bold_needs_a_lead_larger_than_its_standard_error() -> None:
    near = [Row("a", {"x": [10.0, 12.0, 11.0]}), Row("b", {"x": [10.5, 11.0, 11.4]})]
    assert clear_best(near, "x") is None
    clear = [*near, Row("c", {"x": [13.0, 14.0, 13.5]})]
    assert clear_best(clear, "x") == 2
    assert clear_best(clear, "x", lower=True) is None
    assert clear_best([*clear, Row("bound", {"x": [99.0] * 3}, bound=True)], "x") == 2
    alike = [Row("a", {"x": [1.04, 1.04]}), Row("b", {"x": [1.03, 1.03]})]
    assert (clear_best(alike, "x", digits=2), clear_best(alike, "x", digits=1)) == (0, None)
    assert clear_best([Row("a", {"x": [1.0]}), Row("b", {"x": [5.0]})], "x") is None, (
        "one repeat has no error"
    )


def test_tables_in_markdown_and_html_escape_names() -> None:
    table = result_table("T", stress_run().record().rows, [Column("ndcg10@2", "2")], "note")
    assert "| **88.5 ± 0.50** |" in table.markdown()
    assert r"a\|b" in table.markdown()
    assert "&lt;i&gt;" in table.as_html()
    assert "<td class=best>88.5 ± 0.50</td>" in table.as_html()


def test_paper_tables_are_whole() -> None:
    for key in paper_tables():
        table = paper_table(key)
        assert re.search(r"Table|Fig\.|Section", table.table), "which table of the paper is it?"
        assert all(len(row) == len(table.columns) for row in table.rows.values())
    stress = compared(stress_run().record())
    assert len(stress) == 2
    assert {row[0] for row in stress[0].cells} == {"paper", "here"}
    assert "simulated" not in stress[0].title
    with pytest.raises(SetNetError, match="identify"):
        compared(Record("photos", {}, (), {}))


def test_page_and_markdown_hold_everything(tmp_path: Path) -> None:
    stress_run(tmp_path / "stress-lfw.json")
    page = write_page(tmp_path, tmp_path / "out" / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', page), "the page asks for other files"
    assert "Stress test (section 5.1): lfw" in page
    target = tmp_path / "results.md"
    target.write_text(
        "# Results\n\nwritten by hand\n\n<!-- begin generated: claim -->\nx\n<!-- end generated: claim -->\n"
    )
    for _ in range(2):
        write_markdown(tmp_path, target)
    text = target.read_text()
    assert text.count("begin generated: evaluate stress-lfw") == 1
    assert "written by hand" in text
    assert "begin generated: claim -->\nx\n" in text
    for place in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / place).is_file()
        assert (tmp_path / place).with_suffix(".svg").is_file()
    with pytest.raises(InvalidInputError, match="holds no results"):
        write_page(tmp_path / "results", tmp_path / "x.html")


def test_every_experiment_with_a_plot_draws_it(tmp_path: Path) -> None:
    trade = {"mean_ms": 3.0, "bytes_per_item": 512}
    curve = {"curve": {"far": [0.001, 0.1], "tar": [50.0, 90.0]}}
    fit = {"edges": [0.0, 0.5, 1.0], "real_density": [1, 2], "virtual_density": [1, 1]}
    rows = {
        "tradeoff": [
            Row("a", {"ndcg10": [50.0]}, trade),
            Row("b", {"ndcg10": [60.0]}, trade | {"mean_ms": 9.0}),
        ],
        "retrieval": [Row("a", {"ndcg10 n1": [50.0, 51.0]}), Row("b", {"ndcg10 n3": [60.0, 61.0]})],
        "identify": [Row("a", {}, curve)],
        "fit": [Row("a", {}, fit), Row("b", {}, fit)],
        "orthogonality": [
            Row("a", {"plain_ratio": [1.2], "whitened_ratio": [1.1]}),
            Row("b", {"plain_ratio": [1.0]}),
        ],
    }
    for experiment, some in rows.items():
        for path in plots_of(Record(experiment, {}, tuple(some), {}), tmp_path):
            assert path.stat().st_size > 5000
    assert len(list(tmp_path.glob("*.svg"))) == 6
    assert plots_of(Record("photos", {}, (Row("a"),), {}), tmp_path) == []


def test_command_runs_continues_and_reports(tmp_path: Path) -> None:
    result = tmp_path / "stress.json"
    words = [
        "stress",
        "--method",
        "mean",
        "--sets",
        "300",
        "--queries",
        "5",
        "--repeats",
        "2",
        "--json",
        str(result),
    ]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    record = read_record(result)
    assert record.settings["difficulty"] == 1.7
    assert record.machine["versions"]["numpy"]
    assert record.rows[0].name == "mean"
    stamp = record.row("mean").facts["seconds"]
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0
    assert read_record(result).row("mean").facts["seconds"] == stamp
    assert (
        CliRunner().invoke(app, ["compare", str(result)]).output.count("Baseline-3 + W (W after agg.)") == 2
    )
    page = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert page.exit_code == 0
    assert (tmp_path / "report.html").is_file()


def written(path: Path, descriptors: object, labels: object) -> Path:
    np.savez(path, descriptors=np.asarray(descriptors, np.float32), labels=np.asarray(labels))
    return path


@pytest.mark.parametrize(
    ("labels", "broken", "words"),
    [
        ([""] * 40, None, "no row has a label"),
        ([f"p{i}" for i in range(40)], None, "0 people have two faces or more, 40 are known"),
        ([f"p{i // 4}" for i in range(40)], np.nan, "row 3 holds NaN or infinity"),
        ([f"p{i // 4}" for i in range(40)], 0.0, "row 3 is the zero vector"),
    ],
)
def test_bad_descriptor_files(tmp_path: Path, labels: list[str], broken: float | None, words: str) -> None:
    rows = RNG.standard_normal((40, 16))
    if broken is not None:
        rows[3] = broken
    with pytest.raises(InvalidInputError, match=words):
        read_people(written(tmp_path / "d.npz", rows, labels))


def test_other_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such descriptor file"):
        read_people(tmp_path / "none.npz")
    np.savez(tmp_path / "x.npz", descriptors=np.ones((3, 4)))
    with pytest.raises(InvalidInputError, match="labels"):
        read_people(tmp_path / "x.npz")
    with pytest.raises(InvalidInputError, match="simulated"):
        Source(world="moon")
    with pytest.raises(InvalidInputError, match="--descriptors"):
        Source(world="composed")
    with pytest.raises(InvalidInputError, match="simulated draws virtual people"):
        Source(tmp_path / "x.npz", "simulated")
    with pytest.raises(InvalidInputError, match="give one of them"):
        Source(tmp_path / "x.npz", people=tmp_path / "people.npz")
    people = People(
        RNG.standard_normal((60, 16)).astype(np.float32), np.array([f"p{i // 5}" for i in range(60)])
    )
    with pytest.raises(InvalidInputError, match="takes 128-D descriptors, these are 16-D"):
        Methods(people).chosen(["sface-512"])
    with pytest.raises(InvalidInputError, match="mean"):
        Methods(people).chosen(["median"])
    (tmp_path / "not.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(InvalidInputError, match="no result"):
        read_record(tmp_path / "not.json")


def test_people_are_divided_and_nobody_is_in_both_halves() -> None:
    labels = np.array([f"p{i // 3}" for i in range(90)])
    halves = divided(People(np.ones((90, 4), np.float32), labels), "x")
    assert not set(halves.train.labels) & set(halves.test.labels)
    assert len(halves.train.labels) + len(halves.test.labels) == 90


def test_either_half_gets_people_of_several_faces_however_many_have_one() -> None:
    labels = np.array([f"p{i // 2}" for i in range(12)] + [f"q{i}" for i in range(500)])
    for seed in range(20):
        halves = divided(People(np.ones((512, 4), np.float32), labels), "x", seed)
        assert (len(halves.train.groups(2)), len(halves.test.groups(2))) == (3, 3)


def test_one_half_of_lfw_cannot_be_divided() -> None:
    labels = np.repeat(sorted(read_split().train)[:20], 3)
    with pytest.raises(InvalidInputError, match="0 people to judge on"):
        divided(People(np.ones((60, 4), np.float32), labels), "x")


def test_a_run_does_not_go_on_with_other_data_of_the_same_name(tmp_path: Path) -> None:
    labels = [f"p{i // 4}" for i in range(60)] + [""] * 10
    words = ["stress", "--method", "mean", "--sets", "100", "--queries", "3", "--repeats", "1", "--json"]
    file, result = tmp_path / "d.npz", tmp_path / "r.json"
    for number, passes in ((0, True), (0, True), (1, False)):
        rows = np.random.default_rng(number).standard_normal((70, 8))
        written(file, rows, labels)
        done = CliRunner().invoke(app, [*words, str(result), "--descriptors", str(file)])
        assert (done.exception is None) is passes, done.output
    assert "with other settings: descriptors 'd.npz" in str(done.exception)


def test_a_run_that_goes_on_keeps_the_largest_memory_and_adds_up_times(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    Run("stress", {"seed": 0}, path).save()
    stored = json.loads(path.read_text())
    stored["machine"] |= {"peak_bytes": 10**15, "seconds": 1000.0, "cpu_seconds": 2000.0}
    path.write_text(json.dumps(stored))
    Run("stress", {"seed": 0}, path).save()
    machine = read_record(path).machine
    assert machine["peak_bytes"] == 10**15
    assert machine["seconds"] >= 1000
    assert machine["cpu_seconds"] >= 2000


def test_few_faces_are_judged_without_whitening(tmp_path: Path) -> None:
    labels = [f"p{i // 4}" for i in range(40)] + [""] * 10
    file = written(tmp_path / "d.npz", RNG.standard_normal((50, 32)), labels)
    words = ["--descriptors", str(file), "--repeats", "1"]
    for more in (["stress", "--sets", "100", "--method", "mean"], ["identify"], ["orthogonality"]):
        done = CliRunner().invoke(app, [*more, *words], catch_exceptions=False)
        assert done.exit_code == 0
        assert "+W" not in done.stdout
    with pytest.raises(InvalidInputError, match="whitening 32 dimensions needs more than 32 descriptors"):
        CliRunner().invoke(app, ["stress", *words, "--method", "mean +W"], catch_exceptions=False)


def test_fitted_people_can_be_used(tmp_path: Path) -> None:
    eye = np.eye(16, dtype=np.float32)
    VirtualPeople(np.zeros(16, np.float32), eye, 0.5 * eye).save(tmp_path / "people.npz")
    words = ["orthogonality", "--people", str(tmp_path / "people.npz"), "--repeats", "1"]
    result = tmp_path / "r.json"
    done = CliRunner().invoke(app, [*words, "--json", str(result)], catch_exceptions=False)
    assert done.exit_code == 0
    assert read_record(result).settings["people"].startswith("people.npz, SHA-256")
    assert read_record(result).rows[0].facts["dim"] == 16
    (tmp_path / "people.npz").write_bytes((tmp_path / "people.npz").read_bytes()[:300])
    with pytest.raises(ModelError, match="no parameters"):
        CliRunner().invoke(app, words, catch_exceptions=False)
