"""BLAS's threads: one inside, as many as before afterwards. Pools: they end with the process."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import ThreadpoolController

import slice_os
from slice_os.errors import SliceOSError
from slice_os.host import _libraries, one_blas_thread


def blas_threads():
    libraries = _libraries().select(user_api="blas").info()  # others may have been loaded since
    (count,) = {one["num_threads"] for one in libraries}
    return count


def _set_blas_threads(count):
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        library.set_num_threads(count)
        library.clear_controlling_thread(force=True)


@pytest.fixture(autouse=True)
def _two_threads():
    """Let BLAS have two threads, whatever the tests run with."""
    before = blas_threads()
    _set_blas_threads(2)
    assert blas_threads() == 2
    yield
    _set_blas_threads(before)


def test_one_thread_inside_and_as_many_as_before_after_an_error():
    before = blas_threads()

    def fail():
        with one_blas_thread():
            with one_blas_thread():
                assert blas_threads() == 1
            assert blas_threads() == 1
            raise SliceOSError

    with pytest.raises(SliceOSError):
        fail()
    assert blas_threads() == before


def test_blocks_of_several_threads_that_overlap_leave_as_many_as_before():
    for _ in range(20):
        entered, left = Barrier(2), Barrier(2)

        def first(entered=entered, left=left):
            with one_blas_thread():
                entered.wait(10)
            left.wait(10)  # the other is still inside

        def second(entered=entered, left=left):
            with one_blas_thread():
                entered.wait(10)
                left.wait(10)

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(work) for work in (first, second)]:
                done.result(20)
        assert blas_threads() == 2


INTERRUPTED = """
import sys, threading
import slice_os

start = threading.Thread.start

def start_and_interrupt(thread):
    start(thread)
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and thread.name.startswith(sys.argv[2]):
        print("interrupted")
        raise KeyboardInterrupt

threading.Thread.start = start_and_interrupt
with slice_os.open(sys.argv[1]) as index:
    index.search("wants to cancel")
"""


@pytest.mark.parametrize("threads", ["slice-os-scan", "slice-os-encoder"])
def test_an_interrupt_while_threads_start_ends_the_process(tmp_path, threads):
    slice_os.index([("plan", "The customer wants to cancel.")], tmp_path / "index.slice")
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "index.slice"), threads]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted\n"
    assert done.stderr.endswith("KeyboardInterrupt\n")
