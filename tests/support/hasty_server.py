"""A server whose minutes are short: what it does once a minute can be waited for."""

from multiprocessing.process import BaseProcess

from ldpspatial.service import app, group_commit
from ldpspatial.service.limits import Limits
from ldpspatial.service.server import make_server
from tests.support.service import Server

MINUTE_S = 0.3


class HastyServer(Server):
    """A server that gathers, joins and tidies several times a second."""

    def _new_process(self) -> BaseProcess:
        arguments = self._location, self.port, self._limits
        return self._processes.Process(target=_serve, args=arguments)


def _serve(location: str, port: int, limits: Limits) -> None:
    group_commit.LONGEST_UNGATHERED_S = MINUTE_S
    make_server(app.make_app(location, limits), limits, "127.0.0.1", port).run()
