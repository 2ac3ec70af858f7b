"""
Texts: topics that are the same every time
==========================================

A map of texts from their embeddings, its clusters as topics, and the words that distinguish each topic. The texts are
the documentation of the functions of SciPy and scikit-learn, which are installed with laptsne.
"""

# %%
# The texts: one docstring per function or class, and the submodule that it belongs to.

import importlib
import inspect
import pkgutil
import warnings

import numpy as np
import scipy
import sklearn
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer

from laptsne import LaptSNE, plotting

texts = {}
for package in (scipy, sklearn):
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name.rpartition(".")[2].startswith(("_", "tests", "conftest", "misc", "odr")):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            public = vars(importlib.import_module(module.name))
        for name in getattr(importlib.import_module(module.name), "__all__", ()):
            text = inspect.getdoc(public.get(name)) or ""
            if callable(public.get(name)) and len(text) > 400:
                texts.setdefault(text, f"{module.name.removeprefix('scipy.').removeprefix('sklearn.')}: {name}")
names = np.array(list(texts.values()))
modules = np.array([name.partition(":")[0] for name in names])
print(f"{len(texts)} texts in {len(set(modules))} modules")

# %%
# Embeddings. Any model that turns texts into vectors will do; with sentence-transformers installed, the next lines
# would be ``X = SentenceTransformer("all-MiniLM-L6-v2").encode(list(texts))``. Here they are word frequencies (TF-IDF)
# reduced to 60 dimensions, which needs no download.

stop_words = [*ENGLISH_STOP_WORDS, "parameters", "returns", "array", "optional", "default", "import", "np", "shape"]
frequencies = TfidfVectorizer(stop_words=stop_words, token_pattern=r"[a-z]{3,}", min_df=3, sublinear_tf=True)
X = TruncatedSVD(60, random_state=0).fit_transform(frequencies.fit_transform(texts))

# %%
# Distances between embeddings of texts are cosine distances.

model = LaptSNE(metric="cosine", random_state=0).fit(X)
print(f"{model.n_clusters_} clusters for which there is evidence")

common = [name for name in sorted(set(modules)) if (modules == name).sum() >= 40]
plotting.scatter(model, np.where(np.isin(modules, common), modules, None), figsize=(9, 8), title="Coloured by module")

# %%
# Topics: the clusters of the map, named by the words that are more frequent in them than elsewhere (class-based TF-IDF,
# as in BERTopic). There is no second model whose clusters may or may not follow the map, and no randomness: the same
# texts give the same map and the same topics, on one core or on many.

words = CountVectorizer(stop_words=stop_words, token_pattern=r"[a-z]{3,}", min_df=3)
counts = words.fit_transform(texts)
topics = np.unique(model.labels_[model.labels_ >= 0])
in_topic = np.array([counts[model.labels_ == topic].sum(axis=0).A1 for topic in topics], dtype=float)
share = in_topic / in_topic.sum(axis=1, keepdims=True)
weights = share * np.log1p(in_topic.sum() / len(topics) / in_topic.sum(axis=0))
vocabulary = words.get_feature_names_out()
titles = {int(topic): " ".join(vocabulary[np.argsort(-row)[:3]]) for topic, row in zip(topics, weights, strict=True)}
for topic, title in titles.items():
    print(f"{topic:3d}  {(model.labels_ == topic).sum():4d} texts  {title}")

plotting.scatter(model, [titles.get(label) for label in model.labels_], figsize=(9, 8), title="Coloured by topic")

# %%
# What a search would find: the texts nearest to one of them in the map.

query = int(np.flatnonzero(np.char.endswith(names, ": KMeans"))[0])
distances = np.linalg.norm(model.embedding_ - model.embedding_[query], axis=1)
print(f"Near {names[query]}:", *names[np.argsort(distances)[1:7]], sep="\n  ")
