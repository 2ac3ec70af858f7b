"""Which part of the package may import which."""

import ast
from pathlib import Path

import pytest

import laptsne

ROOT = Path(laptsne.__file__).parent
# From the bottom to the top: a module imports from its own layer and from those before it, never from a later one.
LAYERS = [
    "_runtime",
    "kernels",
    "graph",
    "clusters",
    "fields",
    "contraction",
    "engine",
    "transform",
    "reliability",
    "metrics",
    "colours",
    "summary",
    "sampling",
    "distributed",
    "parameters",
    "memory_model",
    "umap_memory",
    "persistence",
    "fitting",
    "diagnostics",
    "new_points",
    "tsne_loss",
    "estimator",
    "landmarks",
    "lapumap",
    "memory",
    "contraction_path",
    "explorer",
    "plotting",
    "scanpy",
    "cli",
    "__main__",
]
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def layer_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_layers(path):
    """Layers that a module imports from, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # "from laptsne import plotting" imports a layer by its name.
            whole = node.module == "laptsne"
            names = [f"laptsne.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("laptsne.")}
    return {"estimator" if name == "LaptSNE" else name for name in found} & set(LAYERS)


def test_every_module_belongs_to_a_layer():
    assert {layer_of(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    own = LAYERS.index(layer_of(path))
    upwards = {name for name in imported_layers(path) if LAYERS.index(name) > own}
    assert not upwards, f"{path.name} is in {LAYERS[own]} and imports {', '.join(sorted(upwards))}"


def test_the_check_sees_an_upward_import(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def f():\n    from laptsne.estimators.laptsne import LaptSNE\n    from laptsne import plotting\n")
    assert imported_layers(module) == {"estimator", "plotting"}
