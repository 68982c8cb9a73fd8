"""Asks the classes that Kafka's CidrUtils asks about each text of ranges.jsonl anew, and rewrites the file.

python make_table.py DIRECTORY_OF_JARS
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE / "ranges.jsonl"


def main() -> None:
    """Needs a JDK, and a directory with commons-net 3.13.0."""
    first, *rows = map(json.loads, TABLE.read_text().splitlines())
    hosts, texts = first["hosts"], [row["host"] for row in rows]
    command = ["java", "-cp", f"{sys.argv[1]}/*", str(HERE / "CidrTable.java")]
    asked = "".join(f"{line}\n" for line in (" ".join(hosts), *texts))
    done = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", check=True)
    lines = [json.dumps(first)]
    for text, answer in zip(texts, done.stdout.split("\n")[:-1], strict=True):
        inside = None if answer == "refused" else [hosts[int(place)] for place in answer.split()]
        lines.append(json.dumps({"host": text, "contains": inside}))
    TABLE.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
