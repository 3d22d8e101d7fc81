"""Pairs of people who are together: two rounds of searches per person (section 4, "Query selection")."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from setnet.collect.names.name_forms import COMMA, derived_forms, full_form
from setnet.collect.names.name_matcher import NameMatcher
from setnet.collect.names.portraits import known_names
from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.sources.photo_source import PhotoSource


def pair_rows(run: CollectRun, done: Collection[str], source: PhotoSource) -> Iterator[Row]:
    """Yield a row per person of the list with the companions found in the first and the second round.

    The first round searches for "<person> and" and looks for other names of the list in the texts; the second
    excludes those found, so that rarer companions come up. There is no third: the paper found next to
    nothing new in it.
    """
    names = known_names(run)
    search = _Companions(names, source, run.settings.answers_per_search)
    for seed in names:
        if seed in done:
            continue
        search.ambiguous.clear()
        first = search.found(seed, ())
        excluded = [written for friend in first for written in (friend, *names[friend])]
        second = search.found(seed, excluded) if first else []
        row: Row = {"seed": seed, "first": first, "second": [name for name in second if name not in first]}
        row["ambiguous"] = list(search.ambiguous)
        yield row | ({"kept": True} if first else {"kept": False, "reason": "no companions"})


class _Companions:
    """Searches for a person and reads the other names in the texts; ambiguous ones are kept apart."""

    def __init__(self, names: Mapping[str, Sequence[str]], source: PhotoSource, limit: int) -> None:
        self._names, self._source, self._limit = names, source, limit
        self._matcher = NameMatcher(names)
        self.ambiguous: dict[str, None] = {}

    def found(self, seed: str, without: Sequence[str]) -> list[str]:
        words = f"{quoted(seed, self._names[seed])} and"
        names: dict[str, None] = {}
        for photo in self._source.search(words, without=without, limit=self._limit):
            seen = self._matcher.find(photo.text)
            self.ambiguous.update(dict.fromkeys(seen.ambiguous))
            if seed in seen.names:
                names.update(dict.fromkeys(name for name in seen.names if name != seed))
        return list(names)


def pairs_of(run: CollectRun) -> list[tuple[str, str]]:
    """Return the pairs found, each once, in order of names."""
    found = set()
    for row in run.manifest("pairs").kept():
        for friend in (*row["first"], *row["second"]):
            found.add((min(row["seed"], friend), max(row["seed"], friend)))
    return sorted(found)


def quoted(name: str, aliases: Sequence[str]) -> str:
    """Return the ways to write a name as one search: phrases in quotes, joined by OR.

    >>> quoted("Ann Cole", [])
    '"ann cole" OR "a cole" OR "cole, a" OR "cole, ann"'
    """
    forms: dict[str, None] = {}
    for written in (name, *aliases):
        for form in (full_form(written), *sorted(derived_forms(written))):
            forms[" ".join(form).replace(f" {COMMA}", COMMA)] = None
    return " OR ".join(f'"{form}"' for form in forms)


def searched_together(names: Mapping[str, Sequence[str]], pair: tuple[str, str]) -> str:
    """Return the search for the photos of a pair."""
    return " ".join(quoted(name, names[name]) for name in pair)
