"""LaptSNE in the place of UMAP and HDBSCAN in BERTopic: the recipe of docs/coming-from.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laptsne import LaptSNE

PAGE = Path(__file__).parent.parent / "docs" / "coming-from.md"
REASON = "the recipe needs pip install --no-deps bertopic, with hdbscan and plotly"


def recipe():
    section = PAGE.read_text().partition("## BERTopic")[2].partition("\n## ")[0]
    found = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    return "\n".join(["from laptsne import LaptSNE", *found])


def test_the_recipe_gives_the_clusters_as_topics():
    pytest.importorskip("hdbscan", reason=REASON)  # BERTopic cannot place new documents without it
    pytest.importorskip("bertopic", reason=REASON)
    names = {}
    exec(compile(recipe(), PAGE.name, "exec"), names)
    model, topics = names["model"], np.array(names["topics"])
    assert model.n_clusters_ > 3
    # Both number clusters from the largest; equal sizes may be numbered either way.
    sizes = [np.sort(np.unique(labels[labels >= 0], return_counts=True)[1]) for labels in (topics, model.labels_)]
    np.testing.assert_array_equal(*sizes)
    np.testing.assert_array_equal(topics < 0, model.labels_ < 0)
    pairs = set(zip(topics.tolist(), model.labels_.tolist(), strict=True))
    assert len(pairs) == len(set(topics.tolist()))
    assert names["new_topics"] == topics[:5].tolist()
    assert len(names["topic_model"].get_topic(0)) > 0
    drawn = sum(len(trace.x) for trace in names["figure"].data)
    assert drawn >= len(topics)
    # Every union of the hierarchy has the topics of one of the tree.
    tree, topic = model.cluster_tree_, names["topic"]
    groups = [{topic[c]} for c in range(tree.n_clusters)]
    groups += [set() for _ in range(tree.n_clusters - 1)]
    for node, parent in enumerate(tree.parent[:-1]):
        groups[parent] |= groups[node]
    found = zip(names["hierarchy"]["Parent_ID"].astype(int), map(set, names["hierarchy"]["Topics"]), strict=True)
    assert dict(found) == dict(enumerate(groups[tree.n_clusters :], tree.n_clusters))


def test_topics_are_the_same_in_two_processes_with_different_numbers_of_threads():
    pytest.importorskip("hdbscan", reason=REASON)  # BERTopic cannot place new documents without it
    pytest.importorskip("bertopic", reason=REASON)
    code = recipe() + "\nimport hashlib\nprint(hashlib.sha256(repr((topics, new_topics)).encode()).hexdigest())"
    found = []
    for threads in ("1", "2"):
        environment = os.environ | {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        found.append(done.stdout.splitlines()[-1])
    assert found[0] == found[1]


def test_what_bertopic_calls_is_there(blobs):
    """BERTopic calls fit(embeddings, y=None), reads labels_ and calls predict; optional parts it finds by hasattr."""
    X = blobs[0]
    model = LaptSNE(max_iter=40, perplexity=10, random_state=0)
    assert not hasattr(model, "partial_fit")
    assert model.fit(X, y=None) is model
    assert not hasattr(model, "probabilities_")
    assert model.labels_.shape == (len(X),)
    sizes = np.bincount(model.labels_[model.labels_ >= 0])
    assert len(sizes) > 1
    assert (np.diff(sizes) <= 0).all()  # BERTopic numbers topics from the largest
    np.testing.assert_array_equal(model.predict(X[:5]), model.labels_[:5])
