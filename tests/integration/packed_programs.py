"""What a `combo` does at its first grid, question to a host and report, done once for all forks of `quick_combo`.

Their hosts are this machine. So what travels with a question is not sent and compiled each time: the hosts take it from
the compiled library. tests/unit/plan/test_bundle.py holds that what is really sent is all that a verb needs.
"""

from __future__ import annotations

import gc
import inspect
import json
import sys
import zlib
from pathlib import Path

from bytecode import compiled_library, share

from comborun.grid.file import parse_grid
from comborun.host.verbs import publish
from comborun.remote import library, program
from comborun.reporter.pages.page import TEMPLATES, _environment
from comborun.rules.names import PROGRAM

parse_grid("policies: [p]\nenvironments: [e]\nepisodes: 1\ncommand: run {output_dir} {episodes}\n", Path("grid.yaml"))
for template in TEMPLATES.glob("*.j2"):
    _environment().get_template(template.name)
FROM = "from comborun.host.__main__ import main"
NOTHING = zlib.compress(b"{}")
COMPILED = f"""
{inspect.getsource(share)}
def fill(self, entries, fill=Staging.fill):
    fill(self, entries)
    library, texts = self.folder + "/lib", shutil.ignore_patterns("*.py", "*.sh")
    if not os.path.exists(library + "/comborun_host/__pycache__"):
        shutil.copytree({str(compiled_library())!r}, library, False, texts, share, dirs_exist_ok=True)
Staging.fill = fill
"""
exec(COMPILED, publish.__dict__)
text = inspect.getsource(publish) + COMPILED
publishing = zlib.compress(json.dumps({publish.__name__: [False, text]}).encode())
library.packed = lambda verb: publishing if verb == "publish" else NOTHING
program._LOADER = program._LOADER.replace(FROM, f"sys.path.insert(0, {str(compiled_library() / PROGRAM)!r})\n{FROM}")
gc.freeze()  # a fork looks for no garbage in what it never changes
sys.path.remove(str(Path(__file__).parent))
