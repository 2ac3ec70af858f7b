"""How the package is built: what may import what, no untyped models, no reaching into other modules' objects."""

import ast
from collections import Counter
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
    "metrics",
    "methods",
    "reliability",
    "settings",
    "fitted_map",
    "memory",
    "estimators",
    "explorer",
    "plotting",
    "scanpy",
    "cli",
    "__main__",
]
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
SMALL = 40  # lines
# Private names of other libraries without which it cannot be done.
FOREIGN = {"_getframe", "_exit", "_trait_values", "_validate_params", "_cache", "_fit_method"}
# Names of parameters and variables that hold an estimator.
MODELS = {"model", "estimator"}


def name_of(path):
    return str(path.relative_to(ROOT))


def layer_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(tree):
    """Dotted names, after "laptsne.", that a module imports, wherever in it the import stands."""
    found, of_types = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            of_types |= {id(child) for child in ast.walk(node)}
        if id(node) in of_types:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = node.module == "laptsne"  # "from laptsne import plotting" imports a layer by its name
            names = [f"laptsne.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        else:
            continue
        found |= {name.removeprefix("laptsne.") for name in names if name.startswith("laptsne.")}
    return found


def imported_layers(tree):
    estimators = {"LaptSNE", "LapUMAP", "LandmarkLaptSNE"}
    first = {name.split(".")[0] for name in imported_modules(tree)}
    return {"estimators" if name in estimators else name for name in first} & set(LAYERS)


def untyped_models(tree):
    """Functions that take a model of any type."""
    return [
        f"{node.name}, line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.args, *node.args.kwonlyargs]
        if argument.arg in MODELS and (argument.annotation is None or ast.unparse(argument.annotation) == "Any")
    ]


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def defined_privately(tree):
    """Private names that a module defines: attributes and methods of its classes, and its functions."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node):
            own.add(node.attr)
    return {name for name in own if is_private(name)}


def of_self(node):
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
        return True
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def private_accesses(tree):
    """Private attributes, of objects other than self, that the module does not define itself."""
    own = defined_privately(tree)
    return [
        f"{ast.unparse(node)}, line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not of_self(node)
        and node.attr not in own | FOREIGN
    ]


def private_imports(tree):
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laptsne")
        for alias in node.names
        if is_private(alias.name) and alias.name != "_runtime"
    ]


def mixins(trees):
    """Classes of the package named as mixins, or without instances of their own, and how many classes have them."""
    uses = Counter(
        ast.unparse(base).rpartition(".")[2]
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    )
    defined = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {name: uses[name] for name in defined if name.endswith("Mixin") or name.startswith("Base")}


def test_every_module_belongs_to_a_layer():
    assert {layer_of(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downwards(path):
    own = LAYERS.index(layer_of(path))
    upwards = {name for name in imported_layers(tree_of(path)) if LAYERS.index(name) > own}
    assert not upwards, f"{path.name} is in {LAYERS[own]} and imports {', '.join(sorted(upwards))}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_function_takes_a_model_of_any_type(path):
    assert not untyped_models(tree_of(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_reaches_into_objects_of_another(path):
    assert not private_accesses(tree_of(path))
    assert not private_imports(tree_of(path))


def test_no_mixin_has_a_single_user():
    assert {name: n for name, n in mixins([tree_of(path) for path in MODULES]).items() if n < 2} == {}


def test_rooms():
    """Few modules at the top, no two of one name, and none so small that it is a part of its only user."""
    top = [path.stem for path in ROOT.glob("*.py")]
    assert len(top) <= 8, top
    named = Counter(path.stem for path in MODULES if not path.stem.startswith("__"))
    assert [name for name, n in named.items() if n > 1] == []
    users = Counter(name for path in MODULES for name in imported_modules(tree_of(path)))
    small = []
    for path in MODULES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if path.stem.startswith("__"):
            continue
        if len(path.read_text(encoding="utf-8").splitlines()) < SMALL and users[name] == 1:
            small.append(name)
    assert small == []


def test_files_and_functions_are_of_a_size_to_be_read():
    long = [name_of(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 600]
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                docstring = (ast.get_docstring(node, clean=False) or "").count("\n")
                size = node.end_lineno - node.lineno + 1 - docstring
                long += [f"{name_of(path)}: {node.name}"] * (size > 60)
    assert long == []


class TestTheChecks:
    """Each sees what it is for."""

    def test_an_upward_import(self):
        tree = ast.parse("def f():\n    from laptsne import LaptSNE\n    from laptsne import plotting\n")
        assert imported_layers(tree) == {"estimators", "plotting"}

    @pytest.mark.parametrize("annotation", ["", ": Any"])
    def test_an_untyped_model(self, annotation):
        assert untyped_models(ast.parse(f"def f(model{annotation}): ...")) == ["f, line 1"]
        assert untyped_models(ast.parse(f"def f(x, *, estimator{annotation}): ...")) == ["f, line 1"]
        assert not untyped_models(ast.parse("def f(model: FittedMap): ..."))

    def test_an_access_to_a_private_attribute(self):
        assert private_accesses(ast.parse("model._mapping")) == ["model._mapping, line 1"]
        assert private_accesses(ast.parse("def f(self):\n    self.model._mapping")) != []
        assert not private_accesses(ast.parse("class A:\n    def f(self, other):\n        self._x = other._x"))
        assert private_imports(ast.parse("from laptsne.graph.ivf import _helper")) == ["laptsne.graph.ivf._helper"]

    def test_a_mixin_with_one_user(self):
        assert mixins([ast.parse("class AMixin: ...\nclass B(AMixin): ...")]) == {"AMixin": 1}
