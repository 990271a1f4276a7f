"""Products in eight bits: near to those in floats, by a graph that ONNX's own checker takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from toolsrv_registry.index.flat import Int8Product, _graph, quantize


def units(count: int, seed: int, dimensions: int = 384) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


@pytest.mark.parametrize("count", [1, 2, 63, 1_000])
def test_a_product_is_near_to_that_of_floats(count: int) -> None:
    matrix, rows = units(count, seed=1), units(5, seed=2)
    rows[3] = matrix[count // 2]
    found = Int8Product(*quantize(matrix))(rows)
    assert found.dtype == np.float32
    assert found == pytest.approx(rows @ matrix.T, abs=0.006)
    assert found[3].argmax() == count // 2


def test_the_largest_products_do_not_saturate() -> None:
    level = np.full((1, 384), 384**-0.5, np.float32)
    assert Int8Product(*quantize(level))(level) == pytest.approx(1.0, abs=0.006)


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    product = Int8Product(*quantize(units(100, seed=1)))
    rows = units(7, seed=3)
    together = product(rows)
    for at in range(len(rows)):
        assert np.array_equal(product(rows[at : at + 1])[0], together[at])


def test_rows_of_nothing_but_zeros_stay_zeros() -> None:
    product = Int8Product(*quantize(np.zeros((3, 4), np.float32)))
    assert product(np.zeros((2, 4), np.float32)).tolist() == [[0.0] * 3] * 2
    assert product(np.ones((1, 4), np.float32)).tolist() == [[0.0] * 3]


@pytest.mark.parametrize("shape", [(1, 1), (384, 300), (3, 70_000)])
def test_the_graph_is_sound_onnx(shape: tuple[int, int]) -> None:
    matrix = np.zeros(shape, np.int8)
    model = onnx.load_from_string(_graph(matrix))
    onnx.checker.check_model(model, full_check=True)
    (node,) = model.graph.node
    assert (node.op_type, list(node.input)) == ("MatMulInteger", ["asked", "matrix", "zero"])
    (stored,) = (one for one in model.graph.initializer if one.name == "matrix")
    assert np.array_equal(onnx.numpy_helper.to_array(stored), matrix)
