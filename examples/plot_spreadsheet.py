"""
A table from a spreadsheet
==========================

Columns in different units, names, categories and missing values: what to do with each before computing a map.
"""

# %%
# A table such as ``pandas.read_excel`` or ``read_csv`` returns, made from data on 178 wines. One column names the rows,
# one holds the winery, one a grade, twelve hold measurements, and some cells are empty.

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from laptsne import LaptSNE, plotting

rng = np.random.default_rng(0)
wine = load_wine(as_frame=True)
table = wine.data.drop(columns="alcohol").mask(rng.random((178, 12)) < 0.02)
grades = pd.cut(wine.data["alcohol"], [0, 12.5, 13.3, 20], labels=["light", "medium", "strong"])
table.insert(0, "strength", grades.astype(str))
table.insert(0, "winery", np.array(["Rossi", "Bianchi", "Verdi"])[wine.target])
table.insert(0, "sample", [f"00{i}" for i in range(178)])
print(table.iloc[:4, :6].to_string(index=False))

# %%
# Decide what each column is:
#
# - *Names of rows* are not features. Neither is what you want to compare the map with: here the winery.
# - *Measurements* in different units are standardised. Otherwise the one with the largest numbers decides the map; see
#   :doc:`plot_scaling_features`.
# - *Categories* become one column of zeros and ones per category.
# - *Missing values* are replaced by the median. Drop rows or columns in which most values are missing.

features = table.drop(columns=["sample", "winery"])
print(features.select_dtypes("number").std().round(2).agg(["min", "max"]).to_dict())
print(f"{features.isna().sum().sum()} missing values in {features.isna().any().sum()} columns")
numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
prepared = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number")),
)

# %%
# Everything in one pipeline, which returns a data frame. The index of the table is kept.

pipeline = make_pipeline(prepared, LaptSNE(random_state=0)).set_output(transform="pandas")
embedding = pipeline.fit_transform(features)
print(embedding.head(3))

# %%
# Colour by the column that was left out, and by one that was used.

plotting.scatter(embedding, table["winery"], figsize=(5.5, 5.5), title="Winery")

# %%
ax = plotting.scatter(embedding, table["color_intensity"], figsize=(6.4, 5.5), title="Colour intensity")

# %%
# What distinguishes the wineries: the mean of each column, in units of its standard deviation. The map shows three
# regions, but the data give no evidence that they are separate: ``n_clusters_`` is 1, and nothing was contracted.

measured = features.select_dtypes("number")
means = ((measured - measured.mean()) / measured.std()).groupby(table["winery"]).mean()
print(means.T.round(1).to_string())
print(f"clusters for which there is evidence: {pipeline[-1].n_clusters_}")

# %%
# On the command line, ``laptsne embed wines.csv --label winery --html wines.html`` makes a map and
# :doc:`an explorer <plot_explorer>` of a file.
