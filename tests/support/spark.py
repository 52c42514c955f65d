"""A Spark session of the tests' own: one thread, little memory, no page, no network."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

JAVA = 17  # which Spark 4.0 needs at least


def missing() -> str:
    """Return what is missing for Spark, or nothing."""
    for package in ("ibis", "pyspark"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: counting in Spark was not tested"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        return f"Java {JAVA} is not installed: counting in Spark was not tested"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('"')[2].partition(".")[0]
    if not version.isdigit() or int(version) < JAVA:
        return f"Java {JAVA} or later is not installed: counting in Spark was not tested"
    return ""


def start_spark(folder: Path) -> Any:
    """Start a session that writes below a folder alone; the caller stops it."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession  # noqa: PLC0415 (it is optional)

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.shuffle.partitions": 2,
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[1]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, str(value))
    return builder.getOrCreate()
