import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher

import laptsne


def kernels():
    """All compiled functions."""
    names = [module.name for module in pkgutil.walk_packages(laptsne.__path__, "laptsne.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]


def test_functions_that_kernels_call_are_inlined():
    """Their own machine code and the copy in the kernel that is kept on disk may differ in the last bits."""
    functions = [kernel.py_func for kernel in kernels()]
    called = [function.__globals__.get(name) for function in functions for name in function.__code__.co_names]
    helpers = {callee for callee in called if isinstance(callee, Dispatcher)}
    assert len(helpers) > 10
    assert [callee.__name__ for callee in helpers if not callee.targetoptions.get("forceinline")] == []
