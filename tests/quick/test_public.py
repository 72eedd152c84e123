"""The public names: they can be looked at whatever is installed, and hide none of Python's."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

import slice_os

LOOKING = """
import builtins, inspect, pydoc, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "accelerate", "onnx", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import slice_os
assert all(hasattr(slice_os, name) for name in dir(slice_os))
assert len(inspect.getmembers(slice_os)) >= 30
assert "Train an encoder" in pydoc.render_doc(slice_os)
assert not hasattr(slice_os, "nothing")
try:
    slice_os.train("recipe.toml", "out")
except slice_os.SliceOSError as exc:
    assert "pip install 'slice-os[train]'" in str(exc)
else:
    raise AssertionError
"""


def test_looking_at_the_package_needs_no_extra():
    done = subprocess.run(
        [sys.executable, "-c", LOOKING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_everything_hides_nothing_of_pythons():
    names: dict[str, object] = {}
    exec("from slice_os import *", names)
    hidden = {name for name in names if hasattr(builtins, name)} - {"__builtins__", "__doc__"}
    assert hidden == set()
    assert names["Index"] is slice_os.Index


@pytest.mark.parametrize("location", [None, 7, ["a"]])
def test_a_location_is_a_path(location):
    for function in (slice_os.open, slice_os.Index, slice_os.doctor):
        with pytest.raises(TypeError):
            function(location)


def test_what_is_held_is_what_status_counts(tmp_path):
    index = slice_os.open(tmp_path / "a.slice", passage_words=20)
    index.add([slice_os.Document("a", "The ship sank."), slice_os.Document("b", "A plan.")])
    with index._backend.writer() as out:
        out.begin(slice_os.Document("b", "Another plan."))  # and never finished
    assert index.holds(["a", "b", "c"]) == {"a"}
    assert (index.holds("a"), index.holds("ab")) == ({"a"}, set())
    assert index.status().documents == 1
