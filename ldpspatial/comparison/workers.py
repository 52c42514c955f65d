"""What a process that plays runs for another one does about itself."""

import gc
import os
import threading
import time
from functools import cache
from multiprocessing import parent_process
from multiprocessing.connection import wait

LOOKED = 2.0  # seconds between two looks for the process that is played for


@cache
def end_with(caller: int) -> None:
    """Let this process end soon after the one that started it, however that one ends.

    One that was killed cannot tell its processes, and they would wait for work, some of them
    forever. Where the caller did not start this one, as on a cluster, nothing is done.
    """
    starter = parent_process()
    if starter is None or starter.pid != caller:
        return
    ended = getattr(starter, "sentinel", None)  # joblib's processes are told of none

    def look() -> None:
        if ended is not None:
            wait([ended])
        else:
            while os.getppid() == caller:  # on Windows it stays
                time.sleep(LOOKED)
        os._exit(1)

    threading.Thread(target=look, name="end-with-caller", daemon=True).start()


@cache
def keep_loaded() -> None:
    """Let collections of garbage pass over all that a process has loaded by its first run's end.

    Joblib collects in its processes once a second: a twentieth of their time, but for this.
    """
    gc.collect()
    gc.freeze()
