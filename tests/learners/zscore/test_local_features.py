"""Local features: which they are, and the inverse of the block-diagonal matrix they make, against dense algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from tolerances import assert_close

from gramline.learners.zscore import local_features
from gramline.learners.zscore.local_features import LocalFeatures


def sparse_rows(seed: int, n_rows: int, n_columns: int, share: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.random((n_rows, n_columns)) < share) * random.integers(1, 4, size=(n_rows, n_columns))


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 30), st.floats(0.0, 0.3))
def test_every_column_is_far_or_local_and_groups_are_small(seed, n_rows, n_columns, share):
    rows = sparse_rows(seed, n_rows, n_columns, share)
    found = LocalFeatures.of(csr_array(rows.astype(float)))
    assert np.array_equal(found.far.toarray(), rows[:, ~found.is_local])
    assert np.array_equal(found.local.toarray(), rows[:, found.is_local])
    joined = found.local @ found.local.T
    _, group = connected_components(joined, directed=False)
    assert len(np.unique(found.group)) == len(np.unique(group)) == len(np.unique([found.group, group], axis=1).T)
    assert np.bincount(found.group).max() <= local_features.GROUP


def test_rare_features_are_taken_first_and_the_one_that_would_join_too_much_is_far(monkeypatch):
    monkeypatch.setattr(local_features, "GROUP", 3)
    rows = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 1, 1.0]])
    found = LocalFeatures.of(csr_array(rows))
    assert found.is_local.tolist() == [False, True, True, True]
    assert found.group[0] == found.group[1] != found.group[2] == found.group[3]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_the_inverse_is_that_of_the_dense_matrix(share):
    rows = sparse_rows(3, 40, 60, share).astype(float)
    found = LocalFeatures.of(csr_array(rows))
    assert found.is_local.any()
    diagonal = np.random.default_rng(4).random(40) + 0.01
    dense = np.diag(diagonal) + found.local.toarray() @ found.local.toarray().T / 3
    assert_close(found.inverse(diagonal, 3).toarray(), np.linalg.inv(dense))
