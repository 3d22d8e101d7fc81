"""`setnet demo`: print what the demo does and finds, and what to try next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import JsonOption, make_app

if TYPE_CHECKING:
    from setnet.cli.demo.demo_run import DemoAnswer, DemoReport

app = make_app()


@app.command()
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to put it all [default: in the user's data folder]."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then open the album as a web page, with the ten people saved.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --serve; 0 takes a free one.")] = 8422,
    json: JsonOption = False,
) -> None:
    """See it work: make an album of synthetic people, index it, run three queries.

    The album's 64 photos are composed from the ten synthetic people of the package openpeople; the
    queries use portraits that are not in it, so that the answers can be compared with the ground truth.
    Four of the ten look like one another; the queries are for the others.
    """
    from setnet.cli.demo.demo_run import run_demo
    from setnet.library import default_library

    place = (folder or default_library().parent / "demo").expanduser().absolute()
    report = run_demo(place, say=(lambda _: None) if json else typer.echo)
    if json:
        print_json(report.to_dict())
    else:
        for number, answer in enumerate(report.answers, 1):
            _print_answer(number, answer)
    if serve:
        _serve(report, port)
    elif not json:
        _print_next_steps(place)


def _serve(report: DemoReport, port: int) -> None:
    """Serve the album as a web page, with its people saved so that a click is enough to search."""
    from setnet.library import Library
    from setnet.web import serve

    with Library.open(report.library) as library:
        for name, portrait in report.portraits.items():
            if name not in library.people:
                library.add_person(name, [str(portrait)])
    serve(report.library, port=port, open_page=True, say=say)


def _print_answer(number: int, scored: DemoAnswer) -> None:
    query, answer = scored.query, scored.answer
    typer.echo(f"\nQuestion {number}: photos with {query}? ({scored.complete} photos have them all)")
    print_table(
        ["", "score", "found", "truly in it", "photo"],
        [
            (
                rank,
                f"{hit.score:.2f}",
                ", ".join(f"{m.person} {m.similarity:.2f}" for m in hit.matches),
                " ".join(sorted(people, key=lambda p: (p not in query.people, p))),
                hit.path.name,
            )
            for rank, (hit, people) in enumerate(zip(answer.hits, scored.truth, strict=True), 1)
        ],
        right=["", "score"],
    )
    milliseconds = answer.seconds["search"] * 1000
    typer.echo(
        f"  nDCG@10 {scored.ndcg:.1f} % of the ideal ranking; "
        f"{answer.searched} photos in {milliseconds:.1f} ms\n  as a picture: {scored.sheet}"
    )


def _print_next_steps(place: Path) -> None:
    setnet = "setnet" if shutil.which("setnet") else sys.argv[0]
    typer.echo(
        f"""
Try next, on the album:
  {setnet} search {place}/portraits/P003.jpg --library {place}/library --sheet out.html
  {setnet} people add Friend {place}/portraits/P003.jpg --library {place}/library
and on photos of your own (nothing leaves this machine):
  {setnet} index ~/Pictures
  {setnet} search somebody.jpg another.jpg --sheet out.png
  {setnet} status"""
    )
