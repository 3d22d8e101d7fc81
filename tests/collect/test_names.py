from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect import CollectRun, run_step
from setnet.collect.names import NameMatcher, read_names
from setnet.errors import InvalidInputError


def test_a_list_has_a_name_per_line_with_aliases_and_comments(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("# people\nAnn Cole | Annie\n\nBen_Dole\n", encoding="utf-8")
    found = [(each.name, each.aliases) for each in read_names(tmp_path / "names.txt")]
    assert found == [("Ann Cole", ("Annie",)), ("Ben Dole", ())]


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("names.txt", "Zo\xeb".encode("latin-1"), "byte 2 is no UTF-8"),
        ("names.txt", b"\n", "empty"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(tmp_path: Path, file: str, data: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InvalidInputError, match=message) as error:
        read_names(tmp_path / file)
    assert file in str(error.value)


def test_names_twice_or_without_portraits_are_named_and_left_out(tmp_path: Path) -> None:
    for name in ("Ann_Cole", "Ben_Dole", "Somebody_Else"):
        (tmp_path / "portraits" / name).mkdir(parents=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "names.txt").write_text("Ann Cole\nANN  COLE\nBen Dole\nCid Fox\n", encoding="utf-8")
    run = CollectRun.begin(
        tmp_path / "run",
        portraits=tmp_path / "portraits",
        photos=[tmp_path / "photos"],
        names=tmp_path / "names.txt",
    )
    run_step(run, "names")
    rows = {row["entry"]: row for row in run.manifest("names").rows()}
    assert [row["name"] for row in rows.values() if row["kept"]] == ["Ann Cole", "Ben Dole"]
    assert rows["names.txt:2"]["reason"] == "listed twice"
    assert rows["names.txt:4"]["reason"] == "no folder of portraits"
    assert rows[str(tmp_path / "portraits" / "Somebody_Else")]["reason"] == "not in the list of names"


LIST = {
    "George W Bush": ("Dubya",),
    "George Bush": (),
    "Zoë Ray": (),
    "Robert De Niro": (),
    "Catherine Zeta-Jones": (),
    "Shaquille O'Neal": (),
    "Madonna": (),
    "Sammy Davis Jr": (),
    "Ann Cole": (),
    "Alan Cole": (),
    "章子怡": (),
}


@pytest.fixture(scope="module")
def matcher() -> NameMatcher:
    return NameMatcher(LIST)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("GEORGE W. BUSH and zoe ray", ("George W Bush", "Zoë Ray")),
        ("Zoë Ray's guests", ("Zoë Ray",)),
        ("Bush, George W.; Ray, Zoë", ("George W Bush", "Zoë Ray")),
        ("De Niro, Robert", ("Robert De Niro",)),
        ("R. De Niro at work", ("Robert De Niro",)),
        ("C. Zeta Jones, Shaquille O\u2019Neal", ("Catherine Zeta-Jones", "Shaquille O'Neal")),
        ("Sammy Davis, Jr. sings", ("Sammy Davis Jr",)),
        ("Sammy Davis sings", ("Sammy Davis Jr",)),
        ("the singer Madonna", ("Madonna",)),
        ("a madonna by Raphael", ()),
        ("on madonna_and_zoe_ray", ("Madonna", "Zoë Ray")),
        ("Dubya waves", ("George W Bush",)),
        ("演员章子怡出席", ("章子怡",)),
        ("talks with George. Bush fires spread", ()),
        ("nobody", ()),
    ],
)
def test_names_are_found_as_people_write_them(
    matcher: NameMatcher, text: str, names: tuple[str, ...]
) -> None:
    if text.startswith("on "):  # a text without capitals, such as a file name, says nothing by their absence
        text = text[3:]
    assert matcher.find(text).names == names


def test_a_full_name_is_never_read_as_the_short_form_of_another(matcher: NameMatcher) -> None:
    assert matcher.find("George Bush").names == ("George Bush",)
    assert matcher.find("George W Bush").names == ("George W Bush",)


def test_what_could_be_two_people_is_neither_and_is_reported(matcher: NameMatcher) -> None:
    found = matcher.find("A. Cole with Ann Cole")
    assert found.names == ("Ann Cole",)
    assert found.ambiguous == ("a cole",)
    assert matcher.ambiguous_forms()["a cole"] == ("Alan Cole", "Ann Cole")


def test_a_comma_between_two_people_does_not_turn_a_name_round(matcher: NameMatcher) -> None:
    assert matcher.find("Barbara Bush, George Lucas").names == ()
    assert matcher.find("Barbara Bush, George").names == ()


WORDS = st.text("abcdefgh", min_size=2, max_size=6).map(str.capitalize)


@given(
    WORDS, WORDS, st.sampled_from(["{f} {l}", "{l}, {f}", "{F} {L}", "{f} {l}'s", "{i}. {l}", "{l}, {i}."])
)
def test_a_name_alone_in_the_list_is_found_however_it_is_written(first: str, last: str, way: str) -> None:
    written = way.format(f=first, l=last, F=first.upper(), L=last.upper(), i=first[0])
    name = f"{first} {last}"
    assert NameMatcher({name: ()}).find(f"seen: {written}; more").names == (name,)
