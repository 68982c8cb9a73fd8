"""Spark finds the data source of an installed wheel by its name alone, beside a user's own `pipeline`."""

from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Environment

pytestmark = [pytest.mark.server, pytest.mark.slow(20)]

LOG = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "__cluster_metadata-0"

SCRIPT = f"""
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.read.format("aclog").load({str(LOG)!r}).count())
spark.stop()
"""


def test_spark_finds_the_data_source(installed: Environment, tmp_path: Path):
    work = tmp_path / "work"
    (work / "pipeline").mkdir(parents=True)
    (work / "pipeline" / "__init__.py").write_text("raise SystemExit('the user has a package of this name')\n")
    (work / "script.py").write_text(SCRIPT)
    ran = installed.run(str(work / "script.py"), cwd=work)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[-1]) > 200


def test_the_spark_command_runs_in_a_crowded_folder(installed: Environment, tmp_path: Path):
    (tmp_path / "pipeline.py").write_text("raise SystemExit('the user has a module of this name')\n")
    ran = installed.run("-m", "aclog", "spark", "history", "--log", str(LOG), "--out", "out", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert list((tmp_path / "out").glob("*.parquet"))
