from comborun.api.episodes import Episode as Episode
from comborun.api.episodes import Episodes as Episodes
from comborun.api.run import Run as Run
from comborun.api.run import launch as launch
from comborun.api.run import open_run as open
from comborun.errors import GridError as GridError
from comborun.errors import HostError as HostError
from comborun.errors import RunGoneError as RunGoneError
from comborun.errors import UserError as UserError

__version__: str
