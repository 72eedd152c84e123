"""Two actors of Ray make the index that one process makes, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
import ray
import ray.data
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.errors import CorpusError
from slice_os.integrations.ray import pack

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def two_workers():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.txt").write_text(f"The customer {number} wants to cancel. " * 20)
    rows = [json.dumps({"id": n, "text": f"Row {n} asks for a refund."}) for n in range(300)]
    (folder / "rows.jsonl").write_text("\n".join([*rows, "{"]))
    return folder


def held(location):
    with slice_os.open(location) as index:
        return [
            (stored.passage, dict(stored.metadata), stored.packed.to_bytes())
            for stored in index.passages()
        ]


def test_the_index_is_that_of_one_process(two_workers, corpus, tmp_path):
    rejects = []
    slice_os.index(slice_os.read(corpus), tmp_path / "direct.slice", on_reject=lambda _: None)
    report = pack(slice_os.read(corpus), tmp_path / "packed", on_reject=rejects.append)
    assert (report.documents, report.unchanged, report.rejected) == (330, 0, 1)
    assert slice_os.load(tmp_path / "packed", tmp_path / "ray.slice").loaded == 330
    assert [Path(reject.place).name for reject in rejects] == ["rows.jsonl#301"]
    assert held(tmp_path / "ray.slice") == held(tmp_path / "direct.slice")
    files = len(list((tmp_path / "packed").glob("*.parquet")))
    (corpus / "0.txt").write_text("Something else.")
    report = pack(slice_os.read(corpus), tmp_path / "packed")
    assert (report.documents, report.replaced, report.unchanged) == (1, 1, 329)
    assert slice_os.load(tmp_path / "packed", tmp_path / "ray.slice").loaded == 1
    assert len(list((tmp_path / "packed").glob("*.parquet"))) == files + 1
    again = slice_os.index(slice_os.read(corpus), tmp_path / "ray.slice", on_reject=lambda _: None)
    assert (again.documents, again.unchanged) == (0, 330)


def test_a_dataset_of_rays_own_is_indexed(two_workers, tmp_path):
    rows = [{"id": f"r{n}", "text": f"The row {n}.", "year": n} for n in range(200)]
    dataset = ray.data.from_items([*rows, {"id": "none", "text": "", "year": 0}])
    rejects = []
    assert pack(dataset, tmp_path / "packed", on_reject=rejects.append).documents == 200
    slice_os.load(tmp_path / "packed", tmp_path / "a.slice")
    assert [reject.reason for reject in rejects] == ["no text"]
    with slice_os.open(tmp_path / "a.slice") as index:
        assert index.get("r7").metadata == {"year": 7}


def test_standard_input_is_refused(two_workers, tmp_path):
    with pytest.raises(CorpusError, match="Standard input is read here alone"):
        pack(slice_os.read("-"), tmp_path / "packed")


def test_the_verb_packs_on_ray(two_workers, corpus, tmp_path):
    run = CliRunner().invoke(
        main, ["pack", str(corpus), "--output", str(tmp_path / "packed"), "--ray", "auto", "--json"]
    )
    assert run.exit_code == 3, run.output
    assert json.loads(run.stdout)["documents"] == 330


RUN = """
import sys
import ray, ray.data
import slice_os
from slice_os.integrations.ray import pack
ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
pack(slice_os.read(sys.argv[1]), sys.argv[3])
slice_os.load(sys.argv[3], sys.argv[2])
"""


def processes(run, name=b""):
    """Return the processes of a run, by what their environment says, or those of a name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_ours = f"SLICE_OS_RUN={run}".encode() in (folder / "environ").read_bytes()
            if is_ours and name in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def kill(process):
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes as Linux shows them")
def test_kills_of_workers_and_of_the_driver_lose_nothing(corpus, tmp_path):
    kills = int(os.environ.get("SLICE_OS_KILLS", "4"))
    rng = random.Random(0)
    arguments = [sys.executable, "-c", RUN, corpus, tmp_path / "ray.slice", tmp_path / "packed"]
    done = of_workers = 0
    while done < kills:
        name = uuid.uuid4().hex
        run = subprocess.Popen(
            arguments, stderr=subprocess.DEVNULL, env={**os.environ, "SLICE_OS_RUN": name}
        )
        while done < kills and run.poll() is None:
            if workers := processes(name, b"_Packer"):
                time.sleep(rng.uniform(0, 1.5))
                if done % 2:
                    run.kill()
                else:
                    kill(rng.choice(workers))
                    of_workers += 1
                done += 1
            time.sleep(0.1)
        run.kill()
        run.wait()
        while rest := processes(name):
            for process in rest:
                kill(process)
            time.sleep(0.1)
    assert of_workers
    subprocess.run(arguments, check=True, stderr=subprocess.DEVNULL)
    slice_os.index(slice_os.read(corpus), tmp_path / "direct.slice", on_reject=lambda _: None)
    assert held(tmp_path / "ray.slice") == held(tmp_path / "direct.slice")
