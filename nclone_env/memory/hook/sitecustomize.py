"""What an interpreter imports first where ``nclone-env profile script`` starts it on a program; then it is gone.

Python imports ``sitecustomize`` from its path when it starts. The command puts this folder in front of that path, and
this module takes it away again, begins the profile, and imports the module that was meant, if there is one. All else is
the work of the interpreter itself, so that the program runs, and ends, as it does alone.
"""

import atexit
import json
import os
import signal
import sys
import traceback

_last: list = []
atexit.register(lambda: [word() for word in _last])  # the first that is registered is the last that is called
_known = set(sys.modules)
_order = json.loads(os.environ.pop("NCLONE_PASSENGER"))
_here = os.path.dirname(__file__)
sys.path.remove(_here)
sys.path_importer_cache.pop(_here, None)
os.environ.pop("PYTHONPATH")
os.environ.update(_order["environment"])

_environment, _path = dict(os.environ), list(sys.path)
_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # threads of BLAS get none of the program's
try:
    sys.path.insert(0, _order["package"])
    from nclone_env.memory.passenger import Passenger, give_way

    sys.path[:] = _path
    _passenger = Passenger(**_order["passenger"])
    _last.append(_passenger.end)
    give_way(_known, _order["folder"])
except Exception:  # noqa: BLE001 - the program runs all the same
    traceback.print_exc()
finally:
    sys.path[:] = _path
    for _name in os.environ.keys() - _environment.keys():  # libraries set some as they are imported
        del os.environ[_name]
    os.environ.update(_environment)
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask)

del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found] # noqa: E402, F401 - the one that was meant
