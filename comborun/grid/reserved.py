"""Keys that the grid file will have: refused for now, each with what to do meanwhile."""

from __future__ import annotations

RESERVED: dict[tuple[str, ...], str] = {
    ("preset",): "write the program's command, setup and results into the grid",
    ("shards",): "a combo is one session; run more combos at once with `limits: {parallel: N}`",
    ("block",): "a combo is one session from its first episode to its last",
    ("files",): "write them beside the grid, ship them with `sync`, and name them in the command",
    ("reserve",): "keep sessions off a GPU with `use_gpus`, or lower `limits: {per_gpu: N}`",
    ("pin",): "sessions find their GPUs in CUDA_VISIBLE_DEVICES; {gpu} and {gpus} name them",
    ("display",): "start the X server by hand and set DISPLAY under `variables`",
    ("launcher",): "write torchrun and its options into the command",
    ("placement",): "write the placement into the command",
    ("servers",): "start the model server by hand and give its address in the command",
    ("container",): "write docker run or apptainer exec into the command",
    ("evidence",): "completeness is judged by the records that `results: {files: ...}` finds",
    ("failures",): "a session's log says why it failed: `combo logs`",
    ("retry",): "`limits: {attempts: N}` starts lost sessions again",
    ("notify",): "`after` runs a command of yours when all has ended",
    ("stop_early",): "every combo runs all its episodes",
    ("slurm",): "run comborun within an allocation of your own",
    ("workdir", "link_from"): "give one folder, and have the command write below {output_dir}",
    ("policies", "glob"): "list the policies: `policies: {flat: {checkpoint: ~/ckpt/flat.pt}}`",
    ("resources", "gpu_memory"): "`limits: {per_gpu: N}` bounds how many share a GPU",
    ("resources", "cpus"): "`limits: {parallel: N}` bounds how many run at once",
    ("resources", "memory"): "`limits: {parallel: N}` bounds how many run at once",
    ("limits", "warm_up"): "`limits: {stagger: 30 s}` spaces the starts",
    ("limits", "stall_after"): "the monitor shows how long a session has been idle; `combo stop` ends it",
    ("limits", "max_time"): "write `timeout 2h` in front of the command",
    ("limits", "fail_fast"): "`combo stop` ends the rest",
    ("results", "format"): "records are JSON lines: one object a line, one line an episode",
    ("results", "videos"): "videos stay below {output_dir}, in the run directory",
}
"""path of the key -> advice; what holds for a key of the grid holds for the same key of an override"""


def advice(path: tuple[str, ...]) -> str | None:
    """What to do instead of a key that comes later; None for all others."""
    return RESERVED.get(path[1:] if path[:1] == ("overrides",) else path)


def reserved_within(section: tuple[str, ...]) -> tuple[str, ...]:
    """The reserved keys of one map."""
    section = section[1:] if section[:1] == ("overrides",) else section
    return tuple(path[-1] for path in RESERVED if path[:-1] == section)
