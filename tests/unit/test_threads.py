"""BLAS's threads: one inside, as many as before afterwards, whoever else is inside."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from slice_os.errors import SliceOSError
from slice_os.threads import one_blas_thread


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))  # BLAS is loaded
    (count,) = {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}
    return count


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
    before = blas_threads()
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
    assert blas_threads() == before
