"""Typed exceptions: every refusal is one of these, with one sentence that names cause and remedy."""

from __future__ import annotations

__all__ = [
    "BuildError",
    "CaptureError",
    "ChatTemplateError",
    "CommandRefused",
    "CuelightError",
    "DeviceBusy",
    "DeviceClosed",
    "DeviceFull",
    "DeviceLost",
    "DownloadError",
    "FormatNotKept",
    "GrammarError",
    "GroupResetting",
    "InvalidArgument",
    "LaneError",
    "ModelFileError",
    "NeverFits",
    "NoKvCredit",
    "PoisonRequest",
    "PromptTooLong",
    "RequestCancelled",
    "RequestFailed",
    "SegmentError",
    "Timeout",
    "TransportError",
    "UnknownDevice",
    "UnknownGroup",
    "UnknownModel",
    "UnknownTier",
    "UnsupportedModel",
]


class CuelightError(Exception):
    """Base of everything this package raises on purpose."""


class Timeout(CuelightError, TimeoutError):
    """A wait ended before what was waited for came."""


class InvalidArgument(CuelightError, ValueError):
    """A value the caller gave is out of its range."""


class GrammarError(InvalidArgument):
    """A form that answers are to have is none, or can't be kept to."""


class FormatNotKept(CuelightError):
    """An answer that had begun can't go on in the form that it is to have."""


class PromptTooLong(InvalidArgument):
    """Prompt and new tokens do not fit the context."""


class UnknownDevice(InvalidArgument):
    """A device URI names no transport."""


class UnknownGroup(InvalidArgument):
    """A lane group the device does not have."""


class UnknownModel(InvalidArgument):
    """A model name or path that leads to no model."""


class UnknownTier(InvalidArgument):
    """A latency tier the device does not have."""


class DeviceClosed(CuelightError):
    """The device was closed, or is being closed, by this program."""


class TransportError(CuelightError):
    """The way to the device failed; the device itself may be well."""


class DeviceLost(CuelightError):
    """The device was reset or is gone; its requests are lost."""


class SegmentError(CuelightError):
    """A shared memory segment is missing, foreign or of another layout version."""


class CommandRefused(CuelightError):
    """The device refused a command; `reason` is its `cuelight.regmap.RejectReason`.

    Parameters
    ----------
    message : str
        One sentence: cause and remedy.
    reason : int
        Reject reason, 0 where the driver refused before asking the device.
    """

    def __init__(self, message: str, reason: int = 0) -> None:
        super().__init__(message)
        self.reason = reason


class DeviceFull(CommandRefused):
    """No slot is offered: every one holds a request."""


class NoKvCredit(CommandRefused):
    """The lane group has fewer free KV blocks than the request needs."""


class NeverFits(NoKvCredit):
    """The lane group has fewer KV blocks than the request needs, however many are free."""


class GroupResetting(CommandRefused):
    """The lane group is being reset."""


class DeviceBusy(CuelightError):
    """A setting can't change while requests live, or another program has the device."""


class RequestFailed(CuelightError):
    """A request ended without finishing."""


class RequestCancelled(RequestFailed):
    """A request was cancelled, and its result was asked for."""


class LaneError(RequestFailed):
    """A lane process failed to start, reported an error or died."""


class PoisonRequest(LaneError):
    """A request whose lanes died time after time, so that it was given up; others go on."""


class BuildError(CuelightError):
    """Native code could not be built."""


class CaptureError(CuelightError):
    """A captured machine can't be read or written, or is none."""


class DownloadError(CuelightError):
    """A file could not be fetched, or is not the one that was expected."""


class ModelFileError(CuelightError):
    """A model file is unreadable, truncated or inconsistent."""


class UnsupportedModel(CuelightError):
    """A well-formed model that this version cannot run."""


class ChatTemplateError(CuelightError):
    """A chat template is missing or refused the messages."""
