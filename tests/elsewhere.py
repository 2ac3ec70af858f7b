"""Places in which a function may be called: other threads, other processes, the workers of other libraries."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib

TIMEOUT = 300  # seconds after which a call hangs


def in_thread(function, *args):
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*args)), daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return found[0] if found else _hangs()


def in_threads(function, *args, n=4):
    """Call in several threads at once; the values of all."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(function(*args)), daemon=True) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    return found if len(found) == n else _hangs()


def in_executor(function, *args):
    """Call in an executor of asyncio, beside the loop."""

    async def call():
        with ThreadPoolExecutor(1) as pool:
            return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(pool, function, *args), TIMEOUT)

    return asyncio.run(call())


def in_child(function, *args, method):
    """Call in a process of multiprocessing, begun as ``method`` says."""
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(theirs, function, *args))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(TIMEOUT) else _hangs()
    finally:
        child.kill()
        child.join()


def _send(pipe, function, *args):
    pipe.send(function(*args))
    pipe.close()


def in_joblib(function, *args, backend):
    """Call in two workers of joblib; the value of the second."""
    calls = [joblib.delayed(function)(*args)] * 2
    return joblib.Parallel(n_jobs=2, backend=backend, timeout=TIMEOUT)(calls)[1]


def in_dask(function, *args, processes):
    """Call in a worker of Dask with two threads."""
    from distributed import Client

    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with Client(processes=processes, **options) as client:
        return client.submit(function, *args, pure=False).result(timeout=TIMEOUT)


def in_program(code, folder, **variables):
    """Run a program of its own, with these variables in its environment; what it prints."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    options = {"capture_output": True, "text": True, "timeout": TIMEOUT, "cwd": folder}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=True, **options).stdout.strip()


def _hangs():
    raise TimeoutError(f"no answer within {TIMEOUT} seconds")
