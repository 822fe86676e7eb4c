"""The Slurm of the tests is a real one: it grants GPUs, requeues, and two of them get along."""

from pathlib import Path

from box import until
from slurm import Slurm, slurm_at


def test_two_slurms_side_by_side_grant_each_gpu_once(slurm: Slurm, tmp_path: Path) -> None:
    with slurm_at(nodes=1) as other:
        for each in (slurm, other):
            place = tmp_path / each.folder.name
            place.mkdir()
            job = f'echo "$SLURMD_NODENAME $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES" >{place}/$SLURM_JOB_ID; sleep 1'
            array = ("sbatch", "--array=0-3", "--gres=gpu:1", f"--output={place}/log", "--wrap", job)
            assert each.command(*array).returncode == 0
        for each in (slurm, other):
            place = tmp_path / each.folder.name
            until(lambda place=place: len(list(place.glob("[0-9]"))) == 4, f"four tasks have started: {each.tasks()}")
            granted = {file.read_text() for file in place.glob("[0-9]")}
            assert len(granted) == 4
            assert all(line.split()[1] == line.split()[2] for line in granted)
        assert not set(slurm.processes()) & set(other.processes())
    assert not other.processes()
    assert slurm.tasks() is not None
