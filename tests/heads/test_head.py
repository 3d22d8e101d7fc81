"""Heads as files: what is written is read, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from setnet.errors import InvalidInputError, ModelError, VersionError
from setnet.heads import Head, Logistic, SetNet, shipped_heads
from setnet.heads.layers import Affine, Blocks, Input, NetVLAD, Product
from setnet.heads.shipped import head_path
from setnet.heads.tensor_file import read_tensors, read_texts, write_tensors
from tests.support.soak import examples


def every_part() -> Head:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float16).astype(np.float32)

    return Head(
        name="all",
        element_dim=8,
        bits=4,
        logistic=Logistic(12.5, -3.25),
        branches=(
            NetVLAD(floats(6, 2), floats(2), floats(2, 6), share=0.5),
            Product((floats(6, 7), floats(6, 7), floats(6, 7)), share=2.0),
        ),
        input=Input(floats(8), floats(8, 6), unit_first=False),
        output=(Affine(floats(19, 12), floats(12)), Blocks(floats(3, 4, 4)), Affine(bias=floats(12))),
        descriptor="sface",
        about={"trained_on": "nothing"},
    )


def test_a_head_comes_back_as_written(tmp_path: Path) -> None:
    head, path = every_part(), tmp_path / "all.safetensors"
    head.save(path)
    again = Head.load(path)
    elements = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
    np.testing.assert_array_equal(SetNet(head).pool(elements, [2, 3]), SetNet(again).pool(elements, [2, 3]))
    for name in ("name", "element_dim", "bits", "logistic", "dim", "descriptor", "about"):
        assert getattr(again, name) == getattr(head, name)


def test_parts_that_do_not_fit_are_refused() -> None:
    square = np.eye(4, dtype=np.float32)
    common: dict[str, Any] = {"name": "x", "element_dim": 4, "bits": 32, "logistic": Logistic(1.0, 0.0)}
    with pytest.raises(ModelError, match="no branches"):
        Head(**common, branches=())
    with pytest.raises(ModelError, match="the input gives 3"):
        Head(**common, branches=(Product((square,)),), input=Input(weight=square[:, :3]))
    with pytest.raises(ModelError, match="do not take 4 dimensions"):
        Head(**common, branches=(Product((square,)),), output=(Blocks(np.ones((2, 3, 3), np.float32)),))
    for share in (0.0, 1e-320, 1e308, float("nan")):
        with pytest.raises(ModelError, match="share must be positive"):
            Head(**common, branches=(Product((square,), share=share),))
    with pytest.raises(ModelError, match="finite"):
        Product((np.full((2, 2), np.nan, np.float32),))


@pytest.mark.parametrize(
    "about", ['{"format": 1', "[" * 100_000, '{"format": %s}' % ("1" * 5000), '{"format": 1, "dim": [8]}']
)
def test_metadata_that_no_head_has_is_an_error_that_names_the_file(tmp_path: Path, about: str) -> None:
    path = tmp_path / "h.safetensors"
    save_file({"branches.0.factors.0": np.eye(4, dtype=np.float32)}, path, metadata={"setnet": about})
    with pytest.raises(ModelError, match=r"h\.safetensors"):
        Head.load(path)


@pytest.mark.parametrize("missing", ["dim", "logistic", "branches"])
def test_metadata_without_a_part_is_incomplete(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "h.safetensors"
    every_part().save(path)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    about = json.loads(header["__metadata__"]["setnet"])
    del about[missing]
    header["__metadata__"]["setnet"] = json.dumps(about)
    text = json.dumps(header).encode()
    rest = data[8 + int.from_bytes(data[:8], "little") :]
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    with pytest.raises(ModelError, match="incomplete head"):
        Head.load(path)


@pytest.mark.parametrize("kind", [b"BF16", b"I16"])  # NumPy knows the first once ml_dtypes is imported
def test_tensors_of_another_type_are_an_error(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "h.safetensors"
    every_part().save(path)
    path.write_bytes(
        path.read_bytes().replace(b'"F16"', b'"%s"' % kind, 1).replace(b"    ", b"   ", len(kind) - 3)
    )
    with pytest.raises(ModelError, match="not a readable head"):
        Head.load(path)


def test_files_that_are_no_heads_are_named(tmp_path: Path) -> None:
    path = tmp_path / "h.safetensors"
    with pytest.raises(ModelError, match="no head at"):
        Head.load(path)
    path.write_bytes(b"not a head at all")
    with pytest.raises(ModelError, match="not a readable head"):
        Head.load(path)
    save_file({"x": np.ones(3, np.float32)}, str(path))
    with pytest.raises(ModelError, match="lacks the key"):
        Head.load(path)
    save_file({"x": np.ones(3, np.float32)}, str(path), metadata={"setnet": json.dumps({"format": "1"})})
    with pytest.raises(ModelError, match="lacks the key"):
        Head.load(path)
    save_file({"x": np.ones(3, np.float32)}, str(path), metadata={"setnet": json.dumps({"format": 99})})
    with pytest.raises(VersionError, match="format 99"):
        Head.load(path)
    save_file({"x": np.ones(3, np.float32)}, str(path), metadata={"setnet": json.dumps({"format": 1})})
    with pytest.raises(ModelError, match="incomplete"):
        Head.load(path)
    every_part().save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="not a readable head"):
        Head.load(path)


def test_shipped_heads_are_listed_and_load() -> None:
    listed = shipped_heads()
    assert {"sface-128", "sface-512"} == {head.name for head in listed}
    total = 0
    for head in listed:
        net = SetNet.load(head.name)
        assert (net.dim, net.bytes_per_item, net.name) == (head.dim, head.bytes_per_item, head.name)
        assert net.head.about["trained_on"]
        total += head_path(head.name).stat().st_size
    assert total < 24e6


def test_the_promised_sizes() -> None:
    sizes = {head.name: (head.dim, head.bytes_per_item) for head in shipped_heads()}
    assert sizes["sface-512"][1] == 512
    assert sizes["sface-128"][1] == 128


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(InvalidInputError, match="sface-512"):
        SetNet.load("sface-9")


@settings(deadline=None, max_examples=examples(15))
@given(
    st.dictionaries(
        st.text("ab.é", min_size=1, max_size=4),
        st.tuples(st.sampled_from(["<f2", "<f4"]), st.lists(st.integers(0, 3), max_size=3)),
        max_size=4,
    ),
    st.text(max_size=5),
)
def test_tensor_files_are_those_of_the_safetensors_library(
    tmp_path_factory: pytest.TempPathFactory, kinds: dict[str, tuple[str, list[int]]], text: str
) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(kind) for name, (kind, shape) in kinds.items()}
    path = tmp_path_factory.mktemp("t") / "t.safetensors"
    write_tensors(path, arrays, {"about": text})
    assert path.read_bytes() == save(arrays, metadata={"about": text})
    back, texts = read_tensors(path)
    assert texts == {"about": text} == read_texts(path)
    assert {name: array.tobytes() for name, array in back.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    data = path.read_bytes()
    for cut in range(0, len(data), max(1, len(data) // 20)):
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"."):
            read_tensors(path)
