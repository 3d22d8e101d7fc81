from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect import NameMatcher

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
