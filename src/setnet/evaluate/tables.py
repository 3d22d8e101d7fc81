"""Tables of experiments in Markdown."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from setnet.evaluate.grouping import SHAPES
from setnet.evaluate.matching import KINDS, SITUATIONS, SIZES
from setnet.evaluate.one_face import FALSE_ACCEPT_RATES, RANKS
from setnet.evaluate.record import Record, Row
from setnet.evaluate.stress_trial import FACES


@dataclass(frozen=True)
class Column:
    """A measure with its heading, or a fact when ``fact`` is set; ``lower`` when less is better."""

    key: str
    title: str
    fact: bool = False
    lower: bool = False
    digits: int = 1


@dataclass(frozen=True)
class Table:
    """Text cells with a heading; ``bold`` names cells (row, column)."""

    title: str
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    note: str = ""

    def markdown(self) -> str:
        """Return the table for a document."""
        lines = [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
        for r, row in enumerate(self.cells):
            marked = [f"**{cell}**" if (r, c) in self.bold else cell for c, cell in enumerate(row)]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in marked)} |")
        note = f"\n{self.note}\n" if self.note else ""
        return f"**{self.title}**\n\n" + "\n".join(lines) + "\n" + note

    def as_html(self) -> str:
        """Return the table for a page."""
        head = "".join(f"<th>{html.escape(title)}</th>" for title in self.columns)
        body = []
        for r, row in enumerate(self.cells):
            cells = "".join(
                f"<td{' class=best' if (r, c) in self.bold else ''}>{html.escape(cell)}</td>"
                for c, cell in enumerate(row)
            )
            body.append(f"<tr>{cells}</tr>")
        note = f"<p class=note>{html.escape(self.note)}</p>" if self.note else ""
        return (
            f"<figure><figcaption>{html.escape(self.title)}</figcaption><div class=scroll><table><thead><tr>"
            f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>{note}</figure>"
        )


def clear_best(rows: Sequence[Row], key: str, lower: bool = False, digits: int = 9) -> int | None:
    """Return which row is best by more than the standard error of its lead; None when none is.

    Nor is one that reads like the second at so many ``digits``. All methods see the same query faces, so the
    error is that of the differences.
    """
    entrants = [i for i, row in enumerate(rows) if not row.bound and row.values.get(key)]
    if len(entrants) < 2:
        return None
    sign = -1.0 if lower else 1.0
    ranked = sorted(entrants, key=lambda i: -sign * rows[i].estimate(key)[0])
    first, second = (rows[i] for i in ranked[:2])
    lead, error = first.lead(second, key)
    shows = round(first.estimate(key)[0], digits) != round(second.estimate(key)[0], digits)
    return ranked[0] if np.isfinite(error) and sign * lead > error and shows else None


def result_table(title: str, rows: Sequence[Row], columns: Sequence[Column], note: str = "") -> Table:
    """Return rows under the columns, each mean with its standard error."""
    cells = []
    bold = set()
    for c, column in enumerate(columns):
        best = None if column.fact else clear_best(rows, column.key, column.lower, column.digits)
        if best is not None:
            bold.add((best, c + 1))
    for row in rows:
        cells.append((row.name, *(_cell(row, column) for column in columns)))
    return Table(
        title, ("method", *(column.title for column in columns)), tuple(cells), frozenset(bold), note
    )


def _cell(row: Row, column: Column) -> str:
    if column.fact:
        fact = row.facts.get(column.key)
        if isinstance(fact, float):
            return f"{fact:,.{column.digits}f}"
        if isinstance(fact, int):
            return f"{fact:,}"
        return "" if fact is None else str(fact)
    if not row.values.get(column.key):
        return ""
    mean, error = row.estimate(column.key)
    text = f"{mean:.{column.digits}f}"
    return text if np.isnan(error) else f"{text} ± {error:.{column.digits + 1}f}"


def measure(depth: int, elements: int, test: str = "") -> str:
    """Return the name of a measure: nDCG of a test (the main one is "") with so many elements to a set.

    >>> measure(10, 2), measure(30, 5, "held-out typefaces")
    ('ndcg10@2', 'ndcg30@5 held-out typefaces')
    """
    return f"ndcg{depth}@{elements} {test}".rstrip()


def over_seeds(record: Record) -> list[Row]:
    """Return one row per method; its values are lists over training seeds of lists over worlds.

    A method that some seed has not been measured with is left out, so that all rows are about the same seeds.
    """
    groups: dict[str, list[Row]] = {}
    several = len({row.facts["loss"] for row in record.rows} - {""}) > 1
    for row in record.rows:
        loss = row.facts["loss"]
        name = f"{row.facts['row']}, {loss}" if loss and several else row.facts["row"]
        groups.setdefault(name, []).append(row)
    seeds = max((len(rows) for rows in groups.values()), default=0)
    return [_joined(name, rows) for name, rows in groups.items() if len(rows) == seeds]


def _joined(name: str, rows: Sequence[Row]) -> Row:
    facts = dict(rows[0].facts)
    if "gram" in facts:
        facts["gram"] = float(np.mean([row.facts["gram"] for row in rows]))
    values, draws = (
        {key: [cast(Sequence[float], part[key]) for part in parts] for key in parts[0]}
        for parts in ([row.values for row in rows], [row.draws for row in rows])
    )
    return Row(name, values, facts, rows[0].bound, draws)


@dataclass(frozen=True)
class Lead:
    """By how much a method is ahead of the best baseline at some number of elements."""

    elements: int
    baseline: str
    points: float
    error: float


def leads(rows: Sequence[Row], name: str, test: str = "") -> list[Lead]:
    """Return the lead of a row over the pooled baseline that is best at each number of elements.

    The baseline is chosen after the fact, which favours it; the error is that of the differences, over
    people, worlds and seeds.
    """
    ours = next(row for row in rows if row.name == name)
    loss = ours.facts["loss"]
    pooled = [row for row in rows if row.name.startswith("Baseline") and row.facts["loss"] in ("", loss)]
    found = []
    for count in FACES:
        key = measure(10, count, test)
        best = max(pooled, key=lambda row: row.estimate(key)[0])
        found.append(Lead(count, best.name, *ours.lead(best, key)))
    return found


def is_reproduced(rows: Sequence[Row], name: str) -> bool:
    """Return whether a row leads at every number of elements by more than twice the error of its lead."""
    return all(lead.points > 2 * lead.error for lead in leads(rows, name))


def matching_tables(record: Record) -> list[Table]:
    """Return order, what several examples change, the two bands, absent and alike people, probabilities."""
    found = [
        _order(record),
        _ways(record),
        _bands(record),
        _absent(record),
        _alike(record),
        _reliability(record),
    ]
    return [table for table in found if table.cells]


def _rows(record: Record, table: str) -> list[Row]:
    return [row for row in record.rows if row.facts["table"] == table]


def _order(record: Record) -> Table:
    columns = [Column(name, name, digits=2) for name in KINDS.values()]
    sizes = ", ".join(f"{size:,}" for size in (*SIZES, record.settings.get("faces", SIZES[-1])))
    note = (
        "nDCG@10 of photos composed of people who are in photos together, in libraries of "
        f"{sizes} faces, which virtual people fill up, for 1, 3 and 10 examples. An absent person is in no "
        "photo; a group is all faces of a person in the library. Mean ± standard error over queries."
    )
    return result_table("Order: nDCG@10 by the people asked for", _rows(record, "order"), columns, note)


def _ways(record: Record) -> Table:
    columns = [Column(f"{situation} at 1e-05", situation, digits=2) for situation in SITUATIONS]
    note = (
        "Percentage of a person's other faces found where one stranger in 100,000 is taken for them. A wrong "
        "example shows somebody else, whose faces count as strangers'. Mean ± standard error over repeats."
    )
    return result_table("Several examples of a person", _rows(record, "ways"), columns, note)


def _bands(record: Record) -> Table:
    columns = [
        Column("sure", "sure from", fact=True, digits=3),
        Column("maybe", "maybe from", fact=True, digits=3),
        Column("recall_sure", "sure, %", fact=True),
        Column("recall_maybe", "sure or maybe, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("bound", "at most (95 %)", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
        Column("millions", "million comparisons", fact=True),
    ]
    faces = record.extra.get("test", {})
    note = (
        f"{faces.get('people', 0):,} people with {faces.get('faces', 0):,} faces, searched as one library; "
        "thresholds are means, each person has their own. The bound is the greater of Clopper and Pearson's "
        "and a bootstrap of people."
    )
    return result_table("Sure and maybe, on people never seen", _rows(record, "bands"), columns, note)


def _absent(record: Record) -> Table:
    columns = [
        Column("faces", "faces", fact=True),
        Column("searches", "searches", fact=True),
        Column("empty", "without a sure match, %", fact=True),
        Column("false", "false sure matches", fact=True, digits=3),
        Column("guesses", "guesses", fact=True),
        Column("real", "expected of real strangers", fact=True, digits=3),
        Column("recall_sure", "own faces sure, if there, %", fact=True),
    ]
    note = (
        "Searches for people who are not in the library. Beside the faces of the others, it has those of "
        "virtual people, drawn from the statistics of real descriptors, who are less extreme: expected of as "
        "many real strangers are the false sure matches of the real ones at the same thresholds."
    )
    return result_table("Absent people", _rows(record, "absent"), columns, note)


def _alike(record: Record) -> Table:
    columns = [
        Column("libraries", "libraries", fact=True),
        Column("recall_sure", "sure, %", fact=True),
        Column("false_sure", "false sure per million", fact=True, digits=2),
        Column("false_maybe", "false per 100,000, guesses too", fact=True, digits=2),
    ]
    note = (
        "The people tested, divided into libraries of those who look alike, one example each. A stranger "
        "there is more similar than elsewhere; thresholds that are measured in a library follow."
    )
    rows = _rows(record, "alike")
    return result_table("Libraries of people who look alike: strangers' similarity", rows, columns, note)


def _reliability(record: Record) -> Table:
    columns = [
        Column("matches", "matches", fact=True),
        Column("given", "probability given, %", fact=True, digits=2),
        Column("right", "right, %", fact=True, digits=2),
    ]
    note = "All matches of the people tested, sure and maybe, by the probability that was given to them."
    return result_table("What probabilities are worth", _rows(record, "reliability"), columns, note)


_BCUBED = ("precision", "recall", "f1")


def grouping_tables(record: Record) -> list[Table]:
    """Return ours beside other ways for each source of photos, then ours in libraries of other shapes."""
    note = (
        "BCubed, in percent. Thresholds are the best on the other half of the first file's people; "
        "setnet takes none. Found: people of two faces or more of whom half or more are in one group of "
        "their own. Seconds of CPU for 10,000 faces."
    )
    methods = [row for row in record.rows if row.facts.get("table") != SHAPES]
    tables = []
    sizes = zip(record.extra["sources"], record.extra["faces"], record.extra["people"], strict=True)
    for number, (source, faces, people) in enumerate(sizes):
        columns = [Column("threshold", "threshold", fact=True, digits=2)]
        columns += [Column(f"{name} {number}", name, digits=2) for name in _BCUBED]
        columns += [Column(f"found {number}", "found"), Column("seconds", "seconds", fact=True)]
        title = f"Grouping {faces:,} faces of {people:,} people: {source}"
        tables.append(result_table(title, methods, columns, note))
    return [*tables, *_shapes(record)]


def _shapes(record: Record) -> list[Table]:
    rows = [replace(row, bound=True) for row in record.rows if row.facts.get("table") == SHAPES]
    if not rows:
        return []
    columns = [Column(name, name, digits=0) for name in ("faces", "people")]
    columns += [Column(name, name, digits=2) for name in (*_BCUBED, "found")]
    note = (
        "setnet, with no setting changed, on other choices of the same people's faces. Mean ± standard error "
        "over repeats. Photos of several faces were put together at random; virtual people are drawn from "
        "the statistics of real descriptors."
    )
    table = result_table("Libraries of other shapes", rows, columns, note)
    return [replace(table, columns=("library", *table.columns[1:]))]


NOTE = (
    "Mean ± standard error over the queried people. (w, b) of every method and descriptor was calibrated, in "
    "the same way, on photos of the training half as they are."
)


def adaptation_tables(record: Record) -> list[Table]:
    """Return a table per kind of photos, one of verification and one of the gains."""
    sets = [row for row in record.rows if _is_of_sets(row)]
    single = [row for row in record.rows if not _is_of_sets(row)]
    columns = [Column("bytes", "bytes", fact=True)]
    columns += [Column(measure(10, count), f"{count} faces") for count in FACES]
    tables = [
        result_table(f"Photos {kind}, nDCG@10", _named(sets, kind), columns, NOTE)
        for kind in record.settings["kinds"]
    ]
    rates = [key for row in single[:1] for key in row.values]
    matches = [Column(key, f"at FMR {key.removeprefix('tar@')}", digits=2) for key in rates]
    shown = [replace(row, name=f"{row.facts['descriptor']}, photos {row.facts['photos']}") for row in single]
    tables.append(result_table("Verification: genuine pairs accepted, percent", shown, matches))
    return [*tables, *(_gains(*part) for part in ((sets, "nDCG@10"), (single, "verification")) if part[0])]


def verdict(record: Record) -> str:
    """Return in words where the adapted descriptor is better, and where it is worse, by two errors."""
    lines = []
    for kind in record.settings["kinds"]:
        leads = [
            lead
            for ours, theirs in _pairs(record.rows)
            if ours.facts["photos"] == kind
            for lead in (ours.lead(theirs, key) for key in ours.values)
        ]
        better = sum(points > 2 * error for points, error in leads)
        worse = sum(points < -2 * error for points, error in leads)
        trained = "trained on" if kind in record.extra["trained"] else "not trained on"
        lines.append(
            f"Photos {kind} ({trained}): adapted is better in {better} and worse in {worse} of "
            f"{len(leads)} measures by more than two standard errors."
        )
    return "\n".join(lines)


def _is_of_sets(row: Row) -> bool:
    return measure(10, FACES[0]) in row.values


def _named(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows of one kind of photos, those of one method beside each other."""
    own = [row for row in rows if row.facts["photos"] == kind]
    methods = [row.facts["method"] for row in own]
    own = sorted(own, key=lambda row: methods.index(row.facts["method"]))
    return [replace(row, name=f"{row.facts['method']}, {row.facts['descriptor']}") for row in own]


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the adapted and the original row of each method and kind of photos."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row.facts["method"], row.facts["photos"]), {})[row.facts["descriptor"]] = row
    return [(both["adapted"], both["original"]) for both in found.values() if len(both) == 2]


def _gains(rows: Sequence[Row], title: str) -> Table:
    keys = [*rows[0].values]
    cells = tuple(
        (
            f"{ours.facts['method']}, photos {ours.facts['photos']}",
            *("{:+.2f} ± {:.2f}".format(*ours.lead(theirs, key)) for key in keys),
        )
        for ours, theirs in _pairs(rows)
    )
    heads = [key.replace("ndcg10@", "faces: ").replace("tar@", "FMR ") for key in keys]
    return Table(f"Gain by adaptation, {title}", ("method", *heads), cells)


_MEASURES = {"precision": "precision", "recall": "recall", "f1": "F1", "ndcg10": "nDCG@10"}


def video_tables(record: Record) -> list[Table]:
    """Return shots, people and queries in one table; what does not apply to a row is left empty."""
    note = (
        "In percent. A limit counts when it is at most 0.5 s from the true one; a person when one element of "
        "the shot is theirs, and each further one is wrong. Queries: one picture per person, in no clip."
    )
    cells = tuple((row.name, *(_footage_cell(row, key) for key in _MEASURES)) for row in record.rows)
    return [Table("Composed footage", ("what", *_MEASURES.values()), cells, note=note)]


def _footage_cell(row: Row, key: str) -> str:
    if key not in row.values:
        return ""
    mean, error = row.estimate(key)
    return f"{mean:.1f}" if len(row.values[key]) < 2 else f"{mean:.1f} ± {error:.1f}"


CAPTION = (
    "Mean ± standard error over people and worlds. Bold: best by more than the standard error of its lead; "
    "upper bounds excluded."
)

FIRST = "Rank of first: of the first item with all query people, 1,000 when it is not among the {} hits."


def tables_of(record: Record) -> list[Table]:
    """Return the tables of a record; unknown experiments have none."""
    layout = _LAYOUTS.get(record.experiment)
    return layout(record) if layout else []


def conditions(record: Record) -> str:
    """Return in one line what the numbers were made with."""
    machine, settings = record.machine, record.settings
    parts = [f"{key} {value}" for key, value in settings.items() if value not in (None, "", [])]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{record.extra.get('world', record.experiment)}. Settings: {'; '.join(parts)}. "
        f"{machine['processor']}, {machine['cores']} cores, kernels {machine['kernels']}, load "
        f"{machine['load']}; {machine['seconds']:g} s ({machine.get('cpu_seconds', 0):g} s of CPU), "
        f"peak {machine['peak_bytes'] / 1e9:.1f} GB; "
        f"{versions}; {machine['date']}."
    )


def _stress(record: Record) -> list[Table]:
    tables = []
    for depth in (10, 30):
        columns = [Column("bytes", "bytes", fact=True)]
        columns += [Column(f"ndcg{depth}@{count}", f"{count} faces") for count in FACES]
        tables.append(result_table(f"Stress test, nDCG@{depth}", record.rows, columns, CAPTION))
    return tables


def _claim(record: Record) -> list[Table]:
    rows, elements = over_seeds(record), record.settings["elements"]
    tests = dict.fromkeys(["", *(key.partition(" ")[2] for key in (rows[0].values if rows else ()))])
    note = (
        "Mean ± standard error over training seeds and test worlds. Bold: best by more than the error "
        "of its lead; what keeps every element is excluded. G_diff: of the tested identities, over that of "
        "random directions."
    )
    tables = []
    for test in tests:
        for depth in (10, 30):
            columns = [Column("size", "bytes", fact=True), Column("gram", "G_diff", fact=True, digits=2)]
            columns += [Column(measure(depth, count, test), f"{count} {elements}") for count in FACES]
            shown = [
                replace(row, facts={**row.facts, "size": _size(row)}, bound=_keeps_all(row)) for row in rows
            ]
            title = f"Networks trained alike, nDCG@{depth}{f', {test}' if test else ''}"
            tables.append(result_table(title, shown, columns, note))
    return [*tables, *(_lead_table(rows, test) for test in tests)]


def _size(row: Row) -> str:
    each = row.facts.get("bytes_per_element")
    return f"{row.facts['bytes']:,}" if each is None else f"{each} per element"


def _keeps_all(row: Row) -> bool:
    return "bytes_per_element" in row.facts


def _lead_table(rows: Sequence[Row], test: str) -> Table:
    ours = [row.name for row in rows if row.name.startswith("SetNet") and "+ W" in row.name]
    cells = tuple(
        (
            name,
            *(f"{lead.points:+.1f} ± {lead.error:.1f} ({lead.baseline})" for lead in leads(rows, name, test)),
        )
        for name in ours
    )
    title = f"Lead over the best pooled baseline, nDCG@10{f', {test}' if test else ''}"
    return Table(title, ("method", *map(str, FACES)), cells)


def _retrieval(record: Record) -> list[Table]:
    columns = [Column("bytes_per_item", "bytes", fact=True)]
    for each in (1, 3):
        columns += [Column(f"ndcg{depth} n{each}", f"nDCG@{depth}, {each} ex.") for depth in (10, 30)]
    columns += [
        Column("recall30 n1", "full matches in 30, 1 ex."),
        Column("first n1", "rank of first, 1 ex.", lower=True),
    ]
    return [result_table("Retrieval by set vectors", record.rows, columns, f"{CAPTION} {FIRST.format(30)}")]


def _tradeoff(record: Record) -> list[Table]:
    columns = [
        Column("ndcg10", "nDCG@10"),
        Column("ndcg30", "nDCG@30"),
        Column("recall30", "full matches in 30"),
        Column("first", "rank of first", lower=True),
        Column("mean_ms", "mean ms", fact=True, digits=2),
        Column("median_ms", "median ms", fact=True, digits=2),
        Column("speedup", "speed-up", fact=True),
        Column("bytes_per_item", "bytes", fact=True),
    ]
    note = (
        CAPTION
        + f" {FIRST.format(100)}"
        + " Processor time of one query on one thread, 100 hits; speed-up over the plain NumPy scan of every "
        "face in the same run. Bytes per item: set vector, plus float32 elements and their codes "
        "of 8 and 4 bits where the search reads them."
    )
    return [result_table("Quality against time and bytes", record.rows, columns, note)]


def _orthogonality(record: Record) -> list[Table]:
    columns = [
        Column("dim", "D", fact=True),
        Column("random", "n / sqrt(D)", fact=True),
        Column("plain", "G_diff", lower=True),
        Column("whitened", "G_diff whitened", lower=True),
        Column("plain_ratio", "ratio", lower=True, digits=2),
        Column("whitened_ratio", "ratio whitened", lower=True, digits=2),
    ]
    people = record.extra.get("people")
    note = f"n = {people} people. Ratio: G_diff over n / sqrt(D), the value of random directions. " + CAPTION
    return [result_table("Orthogonality of people's descriptors", record.rows, columns, note)]


def _identify(record: Record) -> list[Table]:
    columns = [Column("dim", "D", fact=True)]
    columns += [Column(f"tpir{rank}", f"rank {rank}", digits=2) for rank in RANKS]
    columns += [Column(f"tar@{rate:g}", f"TAR at FAR {rate:g}", digits=2) for rate in FALSE_ACCEPT_RATES]
    note = (
        f"{record.extra.get('people')} people. Rank: probes identified within that rank, percent. "
        "TAR at FAR: percentage of genuine pairs accepted at the threshold that this share of impostor "
        "pairs passes. " + CAPTION
    )
    return [result_table("Identification and verification of single faces", record.rows, columns, note)]


def _photos(record: Record) -> list[Table]:
    columns = [
        Column("ndcg10", "nDCG@10"),
        Column("ndcg30", "nDCG@30"),
        Column("first", "rank of first", lower=True),
        Column("mean_ms", "mean ms", fact=True, digits=2),
    ]
    tables = [result_table("End-to-end: composed group photos", record.rows, columns, CAPTION)]
    losses = record.extra.get("losses")
    if losses:
        cells = tuple((part, f"{points:.2f}") for part, points in losses.items())
        tables.append(Table("Where nDCG@10 is lost", ("part", "points"), cells))
    return tables


def _fit(record: Record) -> list[Table]:
    cells = tuple(
        (
            row.name,
            *(f"{row.facts[key]:.3f}" for key in ("real", "real_sd", "virtual", "virtual_sd")),
            f"{row.facts['wasserstein']:.4f}",
            f"{row.facts['kolmogorov']:.4f}",
        )
        for row in record.rows
    )
    columns = ("pairs", "real mean", "sd", "virtual mean", "sd", "Wasserstein", "Kolmogorov-Smirnov")
    return [Table("Similarities of real and of virtual people", columns, cells)]


def _collecting(record: Record) -> list[Table]:
    columns = [Column(name, name, fact=True) for name in ("asked", "photos", "faces", "named")]
    columns += [
        Column("precision", "names right", digits=2),
        Column("recall", "people named", digits=2),
        Column("unknown", "unknown right", digits=2),
        Column("accuracy", "labels right", digits=2),
    ]
    note = (
        "Asked: faces left to a person. Percent, by who stands where: names right, of faces with a name; "
        "people named, of faces of people in the list; unknown right, of faces called unknown; labels "
        "right, of all."
    )
    extra = record.extra
    cells = (
        ("pairs of people", f"{extra['pairs_found']:,} found of {extra['pairs_true']:,}"),
        ("precision of pairs", f"{extra['pairs_precision']:.1f} %"),
        ("recall of pairs", f"{extra['pairs_recall']:.1f} %"),
        ("planted copies dropped", f"{extra['copies_found']:,} of {extra['copies']:,}"),
        ("other photos dropped as copies", f"{extra['dropped_wrongly']:,}"),
        ("Cohen's kappa of the two who answer", f"{extra['kappa']:.3f}" if "kappa" in extra else "-"),
    )
    return [
        Table("Collected from an archive with captions", ("", ""), cells),
        result_table("Labels of faces", record.rows, columns, note),
    ]


_LAYOUTS: dict[str, Callable[[Record], list[Table]]] = {
    "adaptation": adaptation_tables,
    "claim": _claim,
    "collect": _collecting,
    "fit": _fit,
    "grouping": grouping_tables,
    "identify": _identify,
    "matching": matching_tables,
    "orthogonality": _orthogonality,
    "photos": _photos,
    "retrieval": _retrieval,
    "stress": _stress,
    "tradeoff": _tradeoff,
    "video": video_tables,
}
