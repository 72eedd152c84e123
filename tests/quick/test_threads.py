"""BLAS's threads: one inside, as many as before afterwards, whoever else is inside."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import ThreadpoolController

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
