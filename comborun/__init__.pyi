from comborun import errors as errors
from comborun.api import run as _run
from comborun.api.episodes import Episode as Episode
from comborun.api.episodes import Episodes as Episodes
from comborun.errors import GridError as GridError
from comborun.errors import HostError as HostError
from comborun.errors import RunGoneError as RunGoneError
from comborun.errors import UserError as UserError

Run = _run.Run
launch = _run.launch
open = _run.open_run  # noqa: A001
runs = _run.all_runs
__version__: str
