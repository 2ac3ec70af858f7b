import ast
import errno
import importlib
import inspect
import os
import pkgutil
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import laptsne


def modules():
    names = [module.name for module in pkgutil.walk_packages(laptsne.__path__, "laptsne.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def decorators(function):
    return {node.id for node in function.decorator_list if isinstance(node, ast.Name)}


class Calls(ast.NodeVisitor):
    """Calls of compiled functions by kernels.

    Attributes
    ----------
    kernels : set of str
    inlined, called : sets of str
        Compiled functions that kernels call: those that become part of the kernel, and those that do not.
    """

    def __init__(self, module):
        self.globals = vars(module)
        self.in_kernel = False
        self.kernels, self.inlined, self.called = set(), set(), set()
        self.visit(ast.parse(inspect.getsource(module)))

    def visit_FunctionDef(self, node):
        is_kernel = bool(decorators(node) & {"compiled", "inlined"})
        if is_kernel:
            self.kernels.add(node.name)
        before, self.in_kernel = self.in_kernel, self.in_kernel or is_kernel
        self.generic_visit(node)
        self.in_kernel = before

    def visit_Name(self, node):
        if not self.in_kernel:
            return
        if isinstance(value := self.globals.get(node.id), Dispatcher):
            (self.inlined if value.targetoptions.get("forceinline") else self.called).add(node.id)


def test_functions_that_kernels_call_are_inlined():
    """Their own machine code and the copy in the cached kernel may differ in the last bits."""
    found = [Calls(module) for module in modules()]
    assert len(set.union(*(calls.inlined for calls in found))) > 10
    assert set.union(*(calls.called for calls in found)) == set()


def test_all_compiled_functions_are_seen():
    for module in modules():
        names = {name for name, value in vars(module).items() if isinstance(value, Dispatcher)}
        own = {name for name in names if vars(module)[name].__module__ == module.__name__}
        assert own <= Calls(module).kernels


def calls_outside_kernels(node):
    """Names of functions that Python code calls, as opposed to compiled functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and decorators(child) & {"inlined", "compiled"}:
            continue
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
            yield child.func.id
        yield from calls_outside_kernels(child)


def test_inlined_functions_are_not_called_from_python():
    """They have no entry from Python: such a call would crash the interpreter."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in Path(laptsne.__file__).parent.rglob("*.py")}
    inlined = {
        path: {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and "inlined" in decorators(n)}
        for path, tree in trees.items()
    }
    assert sum(len(names) for names in inlined.values()) > 10
    everywhere = set().union(*inlined.values())
    for path, tree in trees.items():
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names} & everywhere
        called = set(calls_outside_kernels(tree)) & (inlined[path] | imported)
        assert not called, f"{path.name} calls {', '.join(sorted(called))} from Python"


@pytest.fixture
def double(tmp_path, monkeypatch):
    """Return a function that imports a module with a kernel anew, as another process would."""
    (tmp_path / "kernel_on_full_disk.py").write_text(
        "from laptsne._runtime.compiled import compiled\n\n\n@compiled\ndef double(x):\n    return 2 * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))

    def imported():
        sys.modules.pop("kernel_on_full_disk", None)
        return importlib.import_module("kernel_on_full_disk").double

    return imported


def test_kernels_are_cached(double):
    assert double()(3) == 6
    again = double()
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_full_disk_does_not_keep_kernels_from_running(double, monkeypatch):
    kernel, replace = double(), os.replace

    def full(source, target):
        if str(target).endswith((".nbi", ".nbc")):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert kernel(3) == 6
