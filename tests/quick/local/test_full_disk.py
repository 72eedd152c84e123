"""A disk that is full, or a file as large as it may be: what is there is read, and nothing lost."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main

TEXT = "The customer wants to cancel the plan. That night the ship sank, and nobody saw it. " * 60


def run(*arguments):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, done.stdout + done.stderr


@pytest.fixture
def disk(tmp_path, request):
    """A disk of 6 MB, or of another size."""
    place = tmp_path / "disk"
    place.mkdir()
    size = getattr(request, "param", "size=6m")
    command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", place]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", place], check=True)


def corpus(folder, count):
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.txt").write_text(f"Number {number}. {TEXT}")
    return folder


def test_a_full_disk_is_said_and_what_was_committed_is_searched(disk, tmp_path):
    place = disk / "a.slice"
    assert run("index", corpus(tmp_path / "few", 2), "--index", place)[0] == 0
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(1 << 12))
        except OSError:
            pass
    for _ in range(2):
        code, said = run("search", "the ship sank", "--index", place)
        assert (code, "the ship sank" in said.replace("«", "").lower()) == (0, True)
        code, said = run("status", "--index", place)
        assert code == 0
        assert said.split("documents")[1].split()[0] == "2"
        assert run("doctor", "--index", place)[0] == 0
        code, said = run("index", corpus(tmp_path / "more", 9), "--index", place)
        assert code == 1
        assert "is full: make room and run this again. What was committed is kept" in said
        assert said.count("Error") == 1
    (disk / "filler").unlink()
    assert run("index", tmp_path / "more", "--index", place)[0] == 0
    assert slice_os.doctor(place, deep=True).healthy
    with slice_os.open(place) as index:
        assert index.status().documents == 11


def test_a_reindex_that_does_not_fit_leaves_what_is_live(disk, tmp_path):
    place = disk / "a.slice"
    assert run("index", corpus(tmp_path / "some", 10), "--index", place)[0] == 0
    for source in ("words", "text"):
        code, said = run("reindex", "--index", place, "--from", source)
        assert (code, said.count("Error"), "is full" in said) == (1, 1, True), said
        (one, *_) = slice_os.generations(place)
        assert (one.number, one.state, one.documents) == (1, "live", 10)
        assert run("search", "the ship sank", "--index", place)[0] == 0
    assert slice_os.prune_generations(place, unfinished=True)
    for number in range(3):
        assert run("delete", f"some/{number}.txt", "--index", place)[0] == 0
    assert slice_os.check(place).healthy


def test_a_file_that_may_not_grow_is_said(tmp_path):
    place = tmp_path / "a.slice"
    assert run("index", corpus(tmp_path / "few", 2), "--index", place)[0] == 0
    more = corpus(tmp_path / "more", 9)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)); "
    limited = [sys.executable, "-c", f"{limit}from slice_os.cli import main; main()"]
    done = subprocess.run(
        [*limited, "index", more, "--index", place], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert run("search", "the ship sank", "--index", place)[0] == 0
    assert run("index", more, "--index", place)[0] == 0
    assert slice_os.doctor(place, deep=True).healthy


def test_a_backup_and_a_restore_of_more_than_fits_leave_what_was_there(disk, tmp_path):
    small, large = tmp_path / "small.slice", tmp_path / "large.slice"
    assert run("index", corpus(tmp_path / "few", 1), "--index", small)[0] == 0
    assert run("index", corpus(tmp_path / "many", 16), "--index", large)[0] == 0
    code, said = run("backup", disk / "b.slice", "--index", large)
    assert (code, said.count("\n"), "is full" in said) == (1, 1, True)
    assert not (disk / "b.slice").exists()
    assert run("backup", disk / "b.slice", "--index", small)[0] == 0  # in its place
    code, said = run("restore", large, "--index", disk / "b.slice", "--overwrite")
    assert (code, said.count("\n"), "is full" in said) == (1, 1, True)
    assert slice_os.check(disk / "b.slice").healthy
    with slice_os.open(disk / "b.slice") as index:
        assert len(index) == 1
    assert run("index", tmp_path / "few", "--index", disk / "b.slice")[0] == 0
    assert not (disk / "b.slice" / "index.sqlite.new").exists()
    found = slice_os.check(disk / "b.slice")
    assert (found.healthy, len(found.findings)) == (True, 1)


@pytest.mark.parametrize("disk", ["size=60m,nr_inodes=24"], indirect=True)
def test_a_disk_without_inodes_is_named_as_such(disk, tmp_path):
    place = disk / "a.slice"
    assert run("index", corpus(tmp_path / "few", 2), "--index", place)[0] == 0
    for number in range(24):
        try:
            (disk / f"{number}").touch()
        except OSError:
            break
    code, said = run("index", corpus(tmp_path / "more", 9), "--index", place)
    assert (code, said.count("Error"), "no inode left" in said) == (1, 1, True), said
    code, said = run("search", "the ship sank", "--index", place)
    assert (code, "the ship sank" in said.replace("«", "").lower()) == (0, True), said
    for file in disk.glob("[0-9]*"):
        file.unlink()
    assert run("index", tmp_path / "more", "--index", place)[0] == 0
    assert slice_os.doctor(place, deep=True).healthy
