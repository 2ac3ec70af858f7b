"""Call functions in other threads, other processes and the workers of other libraries."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import joblib

TIMEOUT = 300  # seconds after which a call counts as hung


def in_thread(function, *args):
    """Call in another thread."""
    return in_threads(function, *args, n=1)[0]


def in_threads(function, *args, n=4):
    """Call in n threads at once; return all results."""
    found = []
    started = [threading.Thread(target=lambda: found.append(function(*args)), daemon=True) for _ in range(n)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(TIMEOUT)
    return found if len(found) == n else _raise_timeout()


def in_executor(function, *args):
    """Call in an executor of asyncio, beside the event loop."""

    async def call():
        with ThreadPoolExecutor(1) as pool:
            return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(pool, function, *args), TIMEOUT)

    return asyncio.run(call())


def in_child(function, *args, method):
    """Call in a process of multiprocessing with the given start method."""
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(theirs, function, *args))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(TIMEOUT) else _raise_timeout()
    finally:
        child.kill()
        child.join()


def _send(pipe, function, *args):
    pipe.send(function(*args))
    pipe.close()


def in_joblib(function, *args, backend):
    """Call in two workers of joblib; return the result of the second."""
    calls = [joblib.delayed(function)(*args)] * 2
    return joblib.Parallel(n_jobs=2, backend=backend, timeout=TIMEOUT)(calls)[1]


def in_dask(function, *args, processes):
    """Call in a worker of Dask with two threads."""
    from distributed import Client

    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with Client(processes=processes, **options) as client:
        return client.submit(function, *args, pure=False).result(timeout=TIMEOUT)


def in_program(code, folder, **variables):
    """Run Python code in a process of its own with these environment variables; return what it prints."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    options = {"capture_output": True, "text": True, "timeout": TIMEOUT, "cwd": folder}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=True, **options).stdout.strip()


class KernelThreads(defaultdict):
    """Threads in which kernels have run, by the name of the kernel."""

    def __init__(self):
        super().__init__(set)

    @property
    def shared(self):
        """Names of the kernels that have run in several threads."""
        return sorted(name for name, found in self.items() if len(found) > 1)


def record_kernel_threads(set_attribute=setattr):
    """Split kernels of any size among threads; return a record, still empty, of the threads in which they run."""
    from laptsne._runtime import threads  # here: benchmarks of other libraries do without

    found, rows = KernelThreads(), threads.Workers.rows

    def recorded(self, kernel, n_rows, *args, **options):
        def chunk(start, stop, *args):
            found[kernel.__name__].add(threading.get_ident())
            kernel(start, stop, *args)

        rows(self, chunk, n_rows, *args, **options)

    set_attribute(threads.Workers, "rows", recorded)
    set_attribute(threads, "MIN_WORK", 0)
    return found


def _raise_timeout():
    raise TimeoutError(f"no answer within {TIMEOUT} seconds")
