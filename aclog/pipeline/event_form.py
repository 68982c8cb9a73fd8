"""The forms of events that decided accesses are exported as."""

from enum import StrEnum


class EventForm(StrEnum):
    """The form of events (aclog.pipeline.authorize)."""

    OCSF = "ocsf"
    CLOUDEVENTS = "cloudevents"
