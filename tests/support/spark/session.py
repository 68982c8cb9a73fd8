"""The session of Spark in tests."""

from contextlib import contextmanager


@contextmanager
def settings(spark, values):
    """A session with other settings, for as long as this lasts."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
