"""Whether native calls let go of the interpreter lock."""

import sys
import threading
from types import FrameType
from typing import Any

from asr.profile import natives

#: What works on a whole clip and would hold up every other thread.
_WATCHED_LIBRARIES = ("rust_fe",)
_WATCHED_CALLS = ("onnxruntime.run",)
#: Longer than any call: nobody takes the lock away, only who lets go of it loses it.
_NO_SWITCH_S = 10.0


class LockWatch:
    """Sends another thread off at each native call and looks whether it ran meanwhile.

    That it ran proves that the call let go of the lock. That it did not run proves nothing of a
    call shorter than the system needs to wake a thread: look at several calls.

    Attributes:
        seen: function -> whether any of its calls was seen to let go.
    """

    def __init__(self) -> None:
        self.seen: dict[str, bool] = {}
        self._ran = 0
        self._before = 0
        self._done = False
        self._gate = threading.Lock()
        self._gate.acquire()
        self._interval_s = sys.getswitchinterval()
        self._thread = threading.Thread(target=self._run, name="lock watch", daemon=True)

    def start(self) -> None:
        """Look at the calls of this thread, until ``stop``."""
        self._thread.start()
        self._replaced = sys.getprofile()
        sys.setswitchinterval(_NO_SWITCH_S)
        sys.setprofile(self._hook)

    def stop(self) -> None:
        """Look away."""
        sys.setprofile(self._replaced)
        sys.setswitchinterval(self._interval_s)
        self._done = True
        if self._gate.locked():
            self._gate.release()
        self._thread.join()

    def _run(self) -> None:
        while not self._done:
            self._gate.acquire()
            self._ran += 1

    def _hook(self, _: FrameType, event: str, function: Any) -> None:  # noqa: ANN401
        if event in ("call", "return"):
            return
        library, name = natives.describe(function)
        if library not in _WATCHED_LIBRARIES and name not in _WATCHED_CALLS:
            return
        if event == "c_call":
            self._before = self._ran
            if self._gate.locked():
                self._gate.release()
        else:
            self.seen[name] = self.seen.get(name, False) or self._ran != self._before
