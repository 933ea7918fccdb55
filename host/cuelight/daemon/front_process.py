"""The process of a front end; started by `FrontEnds`, which tells its file descriptors and its place."""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import msgspec
import uvloop
from prometheus_client import CollectorRegistry

from cuelight.daemon.channel import receive
from cuelight.daemon.crowd import Crowd, table_bytes
from cuelight.daemon.front_end import LAST_WORDS_S, FrontEnd
from cuelight.daemon.logs import set_level, write_json_lines
from cuelight.daemon.remote import DECODER, RemoteCore
from cuelight.daemon.service import Service
from cuelight.daemon.settings import Settings
from cuelight.daemon.wire import Welcome
from cuelight.engine.language import Language

_WELCOME_S = 60.0


def main() -> int:
    """Serve until the core wants it to end, or is gone."""
    channel_fd, listener_fd, table_fd, place, places = map(int, sys.argv[1:])
    # These are for the core, which says what is to happen.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    channel, listener = socket.socket(fileno=channel_fd), socket.socket(fileno=listener_fd)
    try:
        welcome = receive(channel, DECODER, _WELCOME_S)
    except (OSError, msgspec.MsgspecError):
        return 1
    assert isinstance(welcome, Welcome)
    settings = Settings.model_validate_json(welcome.settings)
    write_json_lines(sys.stderr, settings.log.level)
    core = RemoteCore(welcome.facts)
    service = Service(core, Language(Path(welcome.facts.directory)), settings, CollectorRegistry())
    crowd = Crowd(mmap.mmap(table_fd, table_bytes(places)), place)
    front = FrontEnd(service, listener, crowd, core.tell_ready)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(front, core, service, channel))
    if core.lost:
        # Who would have done so is gone.
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
        return 1
    return 0


async def _serve(front: FrontEnd, core: RemoteCore, service: Service, channel: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        front.stop()
        if core.lost:
            loop.call_later(LAST_WORDS_S, front.stop)

    def set_settings(settings: Settings) -> None:
        service.set_settings(settings)
        set_level(settings.log.level)

    await core.open(channel, set_settings, stop)
    await front.serve()
    core.close()


if __name__ == "__main__":
    sys.exit(main())
