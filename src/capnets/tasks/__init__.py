"""Set tasks: set functions over sources of images, with the exact added value of each instance."""

from capnets.tasks.drawing import TaskSets, make
from capnets.tasks.embeddings import EMBEDDINGS
from capnets.tasks.functions import FUNCTIONS, SetFunction, find_function
from capnets.tasks.images import SOURCES
from capnets.tasks.specs import PROTOCOLS, VARYING, TaskSpec, parse_task

__all__ = [
    "EMBEDDINGS",
    "FUNCTIONS",
    "PROTOCOLS",
    "SOURCES",
    "VARYING",
    "SetFunction",
    "TaskSets",
    "TaskSpec",
    "find_function",
    "make",
    "parse_task",
]
