"""Registrations of controllers: what UnregisterController changes (KIP-1312). Pure."""

from aclog.metalog.records import UnregisterControllerRecord
from aclog.nodes.apis.request import RequestError
from aclog.nodes.wire.error_codes import CONTROLLER_ID_NOT_REGISTERED, INVALID_REQUEST, UNSUPPORTED_VERSION
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image

UNREGISTRATION_SINCE = 33
"""The level of metadata.version 4.4-IV2, the first with UnregisterControllerRecord."""


def unregister_controller(image: Image, controller_id: int, *, active: int) -> UnregisterControllerRecord:
    """Return the record that removes the registration of a controller other than the active one.

    Raises:
        RequestError: 42 it is the active controller, 35 the metadata.version has no such record, 136 it is not
            registered.

    """
    if controller_id == active:
        raise RequestError(INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if image.features.level(METADATA_VERSION) < UNREGISTRATION_SINCE:
        what = "The current MetadataVersion is too old to support controller unregistration."
        raise RequestError(UNSUPPORTED_VERSION, what)
    if not image.opaque.has_controller(controller_id):
        raise RequestError(CONTROLLER_ID_NOT_REGISTERED, f"Controller ID {controller_id} is not currently registered.")
    return UnregisterControllerRecord(controller_id=controller_id)
