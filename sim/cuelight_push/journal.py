"""What was asked for, and what came of it, whatever becomes of devices and lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Journal", "Request"]


@dataclass
class Request:
    """One generation: ``limit`` tokens behind a prompt."""

    group: int
    tier: int
    prompt: int
    limit: int
    id: int = 0
    """What the device knows it by; 0 if it doesn't."""
    retired: bool = False
    """The device has told that it is over."""
    tokens: list[int] = field(default_factory=list)
    """Their positions, in the order in which they came."""

    @property
    def complete(self) -> bool:
        return len(self.tokens) >= self.limit

    def take(self, position: int) -> None:
        """A token has come."""
        assert position == self.prompt + len(self.tokens), "a token is lost, or came twice"
        assert not self.complete, "a token came after the last one"
        self.tokens.append(position)


class Journal:
    """All requests."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def add(self, request: Request) -> None:
        self.requests.append(request)

    def waiting(self) -> list[Request]:
        """Those that the device does not know, and that are not over."""
        return [each for each in self.requests if not each.id and not each.retired]

    def known(self, group: int | None = None) -> list[Request]:
        """Those that the device knows, of all groups or of one."""
        return [each for each in self.requests if each.id and group in (None, each.group)]

    def find(self, id: int) -> Request:
        found = [each for each in self.requests if each.id == id]
        assert len(found) == 1, "nobody has asked for this request, or somebody twice"
        return found[0]

    def forget(self) -> None:
        """The device has lost all that it knew."""
        for each in self.known():
            self.lose(each)

    def lose(self, request: Request) -> None:
        """The device does not know a request any more; what is complete is over."""
        request.id = 0
        request.retired = request.complete

    @property
    def over(self) -> bool:
        return all(each.retired for each in self.requests)
