"""Results for other programs: paths, a CSV file, copies of the photos or links to them."""

from __future__ import annotations

import csv
import filecmp
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.addresses import is_address
from setnet.cli.output import one_line, print_text, say
from setnet.errors import StorageError

if TYPE_CHECKING:
    from setnet.library import PhotoHit


def print_paths(hits: Sequence[PhotoHit], end: bytes = b"\n") -> None:
    """Print one path after the other, byte for byte, as other programs take them; a video's once.

    A terminal would obey control characters in names: there they are spelled.
    """
    from setnet.library import display_path

    paths = dict.fromkeys(hit.photo.stored_path for hit in hits)
    if sys.stdout.isatty():
        for path in paths:
            print_text(one_line(display_path(path)))
        return
    out = sys.stdout.buffer
    for path in paths:
        out.write(path + end)
    out.flush()


def print_csv(hits: Sequence[PhotoHit]) -> None:
    """Print a table that spreadsheets open: one row per photo, people with a question mark are guesses."""
    from setnet.library import display_path

    text = one_line if sys.stdout.isatty() else str
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["rank", "score", "matched", "people", "faces", "taken", "photo", "from", "to"])
    for rank, hit in enumerate(hits, 1):
        facts = hit.to_dict()
        people = text("; ".join(match.label for match in hit.matches))
        known = [
            facts["faces"],
            facts["taken"],
            text(display_path(hit.path)),
            facts.get("from"),
            facts.get("to"),
        ]
        table.writerow([rank, f"{hit.score:.4f}", len(hit.matches), people, *known])


def make_folder(folder: Path) -> None:
    """Make the folder that photos are put into, or raise before anything is searched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _failed(folder, error) from error


def copy_photos(hits: Sequence[PhotoHit], folder: Path) -> bool:
    """Copy the photos into a folder, and return whether all are there; no file there is ever replaced."""
    return _put(hits, folder, _copy, _is_copy, "copied")


def link_photos(hits: Sequence[PhotoHit], folder: Path) -> bool:
    """Make symbolic links to the photos in a folder, and return whether all are there."""
    return _put(hits, folder, lambda photo, place: place.symlink_to(photo), _is_link, "linked")


def _put(
    hits: Sequence[PhotoHit],
    folder: Path,
    put: Callable[[Path, Path], None],
    is_there: Callable[[Path, Path], bool],
    done: str,
) -> bool:
    from setnet.library import display_path

    files, there = _files(hits), 0
    for path in files:
        if is_address(path):
            say(f"note: {display_path(path)} is on no disk of this machine, and left out")
            continue
        if not path.is_file():
            say(f"note: {display_path(path)} is not there any more")
            continue
        for place in _places(path, folder):
            try:
                if not is_there(path, place):
                    put(path, place)
            except FileExistsError:
                continue
            except OSError as error:
                raise _failed(place, error) from error
            there += 1
            break
    say(f"{done} {there} photo{'' if there == 1 else 's'} to {display_path(folder)}")
    return there == len(files)


def _files(hits: Sequence[PhotoHit]) -> list[Path]:
    """Return the files of the hits in their order; shots of one video are one file."""
    return list(dict.fromkeys(hit.path for hit in hits))


def _copy(photo: Path, place: Path) -> None:
    """Copy a file so that no half of it is left when copying fails."""
    place.touch(exist_ok=False)  # the name is ours now, also where there are no hard links
    partial = place.with_name(f".{place.name}.partial")
    try:
        shutil.copy2(photo, partial)
        partial.replace(place)
    except BaseException:
        partial.unlink(missing_ok=True)
        place.unlink()
        raise


def _is_copy(photo: Path, place: Path) -> bool:
    """Return whether a copy of this photo is there from an earlier search."""
    return place.is_file() and not place.is_symlink() and filecmp.cmp(photo, place, shallow=False)


def _is_link(photo: Path, place: Path) -> bool:
    return place.is_symlink() and place.readlink() == photo


def _places(photo: Path, folder: Path) -> Iterator[Path]:
    """Yield the photo's own name in a folder, then numbered ones.

    >>> places = _places(Path("/2019/both.jpg"), Path("found"))
    >>> str(next(places)), str(next(places))
    ('found/both.jpg', 'found/both (2).jpg')
    """
    yield folder / photo.name
    for number in count(2):
        yield folder / f"{photo.stem} ({number}){photo.suffix}"


def _failed(place: Path, error: OSError) -> StorageError:
    from setnet.library import display_path

    return StorageError(f"cannot write {display_path(place)}: {error.strerror or error}")
