"""The command lines of spark-submit in docs/spark.md."""

import re
import shlex

from tests.support.kafka.jvm import ROOT


def documented(master: str) -> list[str]:
    """The words of the command line with this master."""
    text = (ROOT / "docs" / "spark.md").read_text()
    (command,) = re.findall(rf"^spark-submit --master {re.escape(master)}(?:.*\\\n)*.*$", text, re.MULTILINE)
    return shlex.split(command.replace("\\\n", " "))
