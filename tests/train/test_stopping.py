import os
import signal
import threading

import pytest

from arl_gym.errors import Interrupted
from arl_gym.train.stopping import StopSignal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_is_remembered_until_it_is_asked_for(number):
    with StopSignal() as stop:
        stop.check()
        os.kill(os.getpid(), number)
        with pytest.raises(Interrupted, match=f"told to stop by {number.name}"):
            stop.check()


def test_the_handlers_of_before_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with StopSignal():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_outside_the_main_thread_it_does_not_listen():
    seen = []

    def run():
        with StopSignal() as stop:
            stop.check()
            seen.append(signal.getsignal(signal.SIGUSR1))

    before = signal.getsignal(signal.SIGUSR1)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
