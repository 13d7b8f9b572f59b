"""Work in a separate thread while a block runs."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Run `work` until the block ends, when its event is set; then raises what `work` has raised.

    A block that fails, as by Ctrl-C, does not wait for a request that is under way: the thread is
    left to itself, and ends with the process at the latest.
    """
    over = Event()
    ended: Future[None] = Future()

    def run() -> None:
        try:
            work(over)
        except BaseException as error:  # handed to the block's thread, whatever it is
            ended.set_exception(error)
        else:
            ended.set_result(None)

    Thread(target=run, daemon=True).start()
    try:
        yield
    finally:
        over.set()
    ended.result()
