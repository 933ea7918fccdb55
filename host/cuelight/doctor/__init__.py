"""What keeps a machine from running a board and its GPUs well: each finding with its reason and its remedy."""

from cuelight.doctor.checks import examine
from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.machine import Machine, read_machine
from cuelight.doctor.recording import Recording
from cuelight.doctor.source import Live, Source
from cuelight.doctor.tree import load_tree

__all__ = ["Finding", "Live", "Machine", "Recording", "Severity", "Source", "examine", "load_tree", "read_machine"]
