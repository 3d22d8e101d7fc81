"""The tables of a record, for each experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from setnet.evaluate.experiments.one_face.identification import FALSE_ACCEPT_RATES, RANKS
from setnet.evaluate.footage.footage_table import video_tables
from setnet.evaluate.methods.stress_measure import FACES
from setnet.evaluate.report.adaptation_tables import adaptation_tables
from setnet.evaluate.report.claim_rows import leads, measure, over_seeds
from setnet.evaluate.report.grouping_tables import grouping_tables
from setnet.evaluate.report.matching_tables import matching_tables
from setnet.evaluate.report.record import Record, Row
from setnet.evaluate.report.tables import Column, Table, result_table

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
