"""The broker: replays the controller's log, decides, and forwards what would change it."""
