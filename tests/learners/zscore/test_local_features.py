"""Local features: which they are, and the inverse of the block-diagonal matrix they make, against dense algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from tolerances import assert_close

from gramline.learners.zscore.local_features import LocalFeatures, overlaps


def sparse_rows(seed: int, n_rows: int, n_columns: int, share: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.random((n_rows, n_columns)) < share) * random.integers(1, 4, size=(n_rows, n_columns))


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 30), st.floats(0.0, 0.3), st.sampled_from([1, 4, 16]))
def test_every_column_is_global_or_local_and_groups_are_small(seed, n_rows, n_columns, share, largest):
    rows = sparse_rows(seed, n_rows, n_columns, share)
    split = LocalFeatures.of(csr_array(rows.astype(float)), largest)
    assert np.array_equal(split.global_features.toarray(), rows[:, ~split.is_local])
    assert np.array_equal(split.local_features.toarray(), rows[:, split.is_local])
    joined = split.local_features @ split.local_features.T
    _, group = connected_components(joined, directed=False)
    assert len(np.unique(split.group)) == len(np.unique(group)) == len(np.unique([split.group, group], axis=1).T)
    assert np.bincount(split.group).max() <= largest
    if largest == 1:
        assert np.array_equal(split.is_local, (rows != 0).sum(axis=0) <= 1)


def test_rare_features_are_taken_first_and_the_one_that_would_join_too_much_is_global():
    rows = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 1, 1.0]])
    split = LocalFeatures.of(csr_array(rows), 3)
    assert split.is_local.tolist() == [False, True, True, True]
    assert split.group[0] == split.group[1] != split.group[2] == split.group[3]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("largest", [1, 16])
def test_the_inverse_is_that_of_the_dense_matrix(share, largest):
    rows = sparse_rows(3, 40, 60, share).astype(float)
    rows[0, 0], rows[1:, 0] = 1.0, 0.0
    split = LocalFeatures.of(csr_array(rows), largest)
    assert split.is_local.any()
    dense = 0.07 * np.eye(40) + split.local_features.toarray() @ split.local_features.toarray().T / 3
    assert_close(split.inverse(0.07, 3).toarray(), np.linalg.inv(dense))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_overlaps_are_the_upper_triangle_of_the_product(dtype):
    random = np.random.default_rng(2)
    left = csr_array((random.random((20, 12)) < 0.3) * random.normal(size=(20, 12)))
    weights = csr_array(np.diag(random.random(20)))
    product = overlaps(left, (weights @ left).tocsr(), np.arange(12.0), dtype)
    expected = left.T @ weights @ left + np.diag(np.arange(12.0))
    assert product.dtype == dtype
    assert_close(product, np.triu(expected).astype(dtype))
