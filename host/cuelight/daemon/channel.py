"""A stream of messages between two processes: each a length of 32 bits, little endian, and msgpack."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from cuelight.errors import InvalidArgument

__all__ = ["MOST_BYTES", "Channel", "receive"]

MOST_BYTES = 64 << 20
"""Length of a message."""
_HEAD = 4
_HIGH_WATER = 256 << 10
_log = logging.getLogger(__name__)
_encoder = msgspec.msgpack.Encoder()

_Heard = TypeVar("_Heard")


class Channel(asyncio.Protocol, Generic[_Heard]):
    """One end; made by `open`. All of it is for the event loop.

    Parameters
    ----------
    decoder : msgspec.msgpack.Decoder
        Of what the other end says. Whatever it can't decode ends the channel.
    hear : callable
        Called with each message.
    lost : callable
        Called once, when the channel has ended.
    drained : callable
        Called when it is no longer full.

    Attributes
    ----------
    full : bool
        It has as much to send as it should; what can wait should wait for `drained`.
    silence : int
        For the owner to count up now and then; 0 after each message that came.
    """

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[_Heard],
        hear: Callable[[_Heard], None],
        lost: Callable[[], None],
        drained: Callable[[], None] = lambda: None,
    ) -> None:
        self.full = False
        self.silence = 0
        self._decoder = decoder
        self._hear = hear
        self._lost = lost
        self._drained = drained
        self._received = bytearray()
        self._transport: asyncio.Transport

    async def open(self, end: socket.socket) -> None:
        """Talk through one of a pair of sockets from now on; it is closed with the channel."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=end)

    def send(self, message: msgspec.Struct) -> None:
        """Say something; nothing happens if the channel has ended.

        Raises
        ------
        InvalidArgument
            It is too long.
        """
        body = _encoder.encode(message)
        if len(body) > MOST_BYTES:
            raise InvalidArgument(f"The question has more than {MOST_BYTES} bytes as a message; shorten it.")
        if not self._transport.is_closing():
            self._transport.write(len(body).to_bytes(_HEAD, "little") + body)

    def close(self) -> None:
        """End it, whatever is left to send."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # uvloop's are no subclass.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_HIGH_WATER)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._lost()

    def pause_writing(self) -> None:
        """The other end is slow."""
        self.full = True

    def resume_writing(self) -> None:
        """It has caught up."""
        self.full = False
        self._drained()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self.silence = 0
        received = self._received
        received += data
        begin = 0
        try:
            while len(received) >= (body := begin + _HEAD):
                end = body + _length(received[begin:body])
                if len(received) < end:
                    break
                begin = end
                self._hear(self._decoder.decode(memoryview(received)[body:end].toreadonly()))
        except msgspec.MsgspecError as error:
            _log.error("What came through a channel is no message of this version (%s); it is closed.", error)
            self._transport.abort()
            return
        if begin:
            del received[:begin]


def receive(end: socket.socket, decoder: msgspec.msgpack.Decoder[Any], timeout_s: float) -> Any:
    """Wait for the first message at an end that no channel has yet.

    Raises
    ------
    OSError
        None came.
    msgspec.MsgspecError
        What came is none.
    """
    end.settimeout(timeout_s)
    body = _read(end, _length(_read(end, _HEAD)))
    return decoder.decode(body)


def _read(end: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        if not (part := end.recv(count - len(read))):
            raise ConnectionResetError("The other end has closed.")
        read += part
    return read


def _length(head: bytes | bytearray) -> int:
    length = int.from_bytes(head, "little")
    if length > MOST_BYTES:
        raise msgspec.DecodeError(f"{length} bytes")
    return length
