"""Spark finds the data source of an installed wheel by its name alone, in a folder with a user's own `pipeline`."""

from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Environment
from tests.support.spark.jvm import options

pytestmark = [pytest.mark.server, pytest.mark.slow(20)]

LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"

SCRIPT = f"""
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.defaultJavaOptions", {options()!r}).getOrCreate()
print(spark.read.format("aclog").load({str(LOG)!r}).count())

from aclog.__main__ import run  # the command takes the session that is there
sys.exit(run(["spark", "history", "--log", {str(LOG)!r}, "--out", "out"]))
"""


def test_spark_finds_the_data_source_and_the_command_runs(installed: Environment, tmp_path: Path):
    work = tmp_path / "work"
    (work / "pipeline").mkdir(parents=True)
    (work / "pipeline" / "__init__.py").write_text("raise SystemExit('the user has a package of this name')\n")
    (work / "script.py").write_text(SCRIPT)
    ran = installed.run(str(work / "script.py"), cwd=work)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[0]) > 200
    assert list((work / "out").glob("*.parquet"))
