"""Tables for Embedding Atlas, by their schema: the package itself is heavy."""

import numpy as np
import pytest

from laptsne import LaptSNE
from laptsne.explorer import to_atlas

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 3)) + 9 * (np.arange(60) % 2)[:, None]
    return LaptSNE(max_iter=30, perplexity=5, n_clusters=2, random_state=0).fit(X)


def test_schema_and_neighbours(model, tmp_path):
    columns = {"name": [f"row {i}" for i in range(60)], "weight": np.arange(60.0)}
    to_atlas(model, tmp_path / "map.parquet", columns=columns, n_neighbors=6)
    table = parquet.read_table(tmp_path / "map.parquet")
    types = dict(zip(table.schema.names, map(str, table.schema.types), strict=True))
    assert list(types) == ["projection_x", "projection_y", "name", "weight", "cluster", "neighbors"]
    assert types["projection_x"] == types["projection_y"] == "double"
    assert table.schema.field("neighbors").type.field("ids").type.value_type == pa.int64()
    assert table.schema.field("neighbors").type.field("distances").type.value_type == pa.float64()
    np.testing.assert_array_equal(table["projection_y"], model.embedding_[:, 1])
    P = model.affinities_.toarray()
    for row, found in enumerate(table["neighbors"].to_pylist()):
        assert found["ids"][0] == row
        nearest = np.sort(P[row][P[row] > 0])[::-1][:5]
        np.testing.assert_allclose(P[row, found["ids"][1:]], nearest)
        assert found["distances"][:2] == [0, 0]
        assert found["distances"] == sorted(found["distances"])
        assert len(found["ids"]) == 6


def test_a_map_alone_and_data_frames():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    Y = np.eye(3, 2)
    assert to_atlas(Y).column_names == ["projection_x", "projection_y"]
    for frame in (pd.DataFrame({"a": ["x", None, "z"]}), pl.DataFrame({"a": ["x", None, "z"]})):
        assert to_atlas(Y, columns=frame)["a"].to_pylist() == ["x", None, "z"]


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="'a' has 2 values, but the map has 3"):
        to_atlas(np.eye(3, 2), columns={"a": [1, 2]})
    with pytest.raises(ValueError, match="rename it"):
        to_atlas(np.eye(3, 2), columns={"neighbors": [1, 2, 3]})
