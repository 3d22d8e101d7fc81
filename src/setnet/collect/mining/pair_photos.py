"""Photos of each pair, and the filter of their texts (section 4, "Image download and filtering")."""

from __future__ import annotations

from collections.abc import Iterator

from setnet.collect.mining.pairs import pairs_of, searched_together
from setnet.collect.names.name_matcher import NameMatcher
from setnet.collect.names.portraits import known_names
from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.sources.photo_source import PhotoSource


def photo_rows(run: CollectRun, source: PhotoSource) -> Iterator[Row]:
    """Yield a row per photo that a pair's search found: its text, and the names it was searched for.

    A photo is kept when its text has ``names_needed`` names of some pair that found it, both by default: a
    pair is what was searched for, and a text with one of the names comes with a photo of one person. Its
    query are the names of the pairs that passed. Photos of the archive that no search found get a row too.
    """
    names = known_names(run)
    pairs = pairs_of(run)
    found: dict[str, list[int]] = {}
    texts: dict[str, str] = {}
    for number, pair in enumerate(pairs):
        words = searched_together(names, pair)
        for photo in source.search(words, limit=run.settings.answers_per_pair):
            found.setdefault(photo.photo, []).append(number)
            texts[photo.photo] = photo.text
    matcher = NameMatcher(names)
    for photo_path in sorted(found):
        yield _row(run, matcher, photo_path, texts[photo_path], [pairs[i] for i in found[photo_path]])
    captions = run.manifest("captions")
    if captions.exists:
        for row in captions.kept():
            if row["photo"] not in found:
                yield {"photo": row["photo"], "kept": False, "reason": "found by no pair"}


def _row(run: CollectRun, matcher: NameMatcher, photo: str, text: str, pairs: list[tuple[str, str]]) -> Row:
    seen = matcher.find(text)
    needed = run.settings.names_needed
    passed = [pair for pair in pairs if sum(name in seen.names for name in pair) >= needed]
    row: Row = {"photo": photo, "text": text, "pairs": [list(pair) for pair in pairs]}
    if not passed:
        return row | {
            "kept": False,
            "reason": "names not in the text",
            "detail": ", ".join(seen.names) or "none of the list",
        }
    query = [name for name in seen.names if any(name in pair for pair in passed)]
    return row | {"kept": True, "query": query}
