# SPDX-License-Identifier: Apache-2.0
"""docs/fleet.md: its queries, run by DuckDB on two runs of 1,000 processes, find what biglog planted and nothing else."""
import os
import pathlib
import re

import duckdb
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "fleet.md").read_text()
BLOCKS = dict(re.findall(r"```sql\n-- (\w+)(?::[^\n]*)?\n(.*?)```", PAGE, re.S))
FLAWED = {"stale": 17, "nan": 400, "dropped": 600, "large": 801}


def rank(process):
    return f"tp{process % 8}.pp0.dp{process // 8}"


@pytest.fixture(scope="module")
def answers(fleet):
    """Every block of the page in order: {name: rows as dictionaries}."""
    before, found = os.getcwd(), {}
    os.chdir(fleet)
    try:
        connection = duckdb.connect()
        for name, sql in BLOCKS.items():
            result = connection.execute(sql)
            columns = [c[0] for c in result.description or []]
            found[name] = [dict(zip(columns, row)) for row in result.fetchall()]
    finally:
        os.chdir(before)
    return found


def test_every_block_was_found():
    assert len(BLOCKS) == PAGE.count("```sql") == len(set(BLOCKS)) >= 14


def test_coverage(answers):
    donated = {r["run"]: r for r in answers["coverage"] if r["name"] == "core.donate"}
    assert {run: (r["processes"], r["attempted"], r["recorded"], r["dropped"]) for run, r in donated.items()} == {
        "off": (1000, 48000, 48000, 0), "on": (1000, 48000, 47976, 24)}
    assert [(r["run"], r["rank"], r["missing"]) for r in answers["losses"]] == [("on", rank(FLAWED["dropped"]), 24)]
    assert answers["silent"] == [] and answers["missing_ranks"] == []


def test_which_is_unlike_the_others(answers):
    assert [(r["run"], r["rank"], r["donations"]) for r in answers["non_finite"]] == [("on", rank(FLAWED["nan"]), 1)]
    worst = answers["worst_absmax"][0]
    assert (worst["run"], worst["rank"], worst["absmax"]) == ("on", rank(FLAWED["large"]), 1e6) and worst["times_the_median"] > 1e5
    assert answers["worst_absmax"][1]["absmax"] < 10
    assert [(r["run"], r["rank"], r["slot"]) for r in answers["stale"]] == [("on", rank(FLAWED["stale"]), 3)]


def test_two_runs(answers):
    (one,) = answers["differing_ranks"]
    assert (one["rank"], one["slots"], one["differ"], one["host"]) == (rank(FLAWED["stale"]), 1, 5, "host002")
    assert [(r["rank"], r["donation"]["slot"], r["donation"]["occurrence"]) for r in answers["first_divergence"]] == [(rank(FLAWED["stale"]), 3, 2)]
    assert [(r["run"], r["rank"], r["donations"]) for r in answers["unpaired"]] == [("off", rank(FLAWED["dropped"]), 24), ("on", rank(FLAWED["dropped"]), 24)]


def test_diff_agrees(lab, fleet):
    """The database and the tool name the same slot."""
    status, found = lab.ask("diff", fleet / "off", fleet / "on")
    first = [s for s in found["slots"] if s["verdict"] == "differs" and s["claimed_len"][1] and "stale" in [e["kind"] for e in s["explain"]]]
    assert status == 1 and [(s["rank"], s["slot"], s["occurrence"]) for s in first] == [(rank(FLAWED["stale"]), 3, 2)]


def test_planes(answers):
    assert [(r["tensor"], r["layer"]) for r in answers["planes"]] == [("conv", 0), ("conv", 1), ("ssm", 0), ("ssm", 1)]
    assert answers["planes"][0]["absmax"] == 1e6 and answers["planes"][1]["absmax"] < 10


def test_parquet(answers, fleet):
    assert answers["parquet"] and len(list((fleet / "events").glob("run=*/*.parquet"))) >= 2


def test_the_schemas_are_the_header(fleet):
    """What the page says for DuckDB and for Spark are the columns of the CSV, in order."""
    header = (fleet / "on.csv").open().readline().strip().split(",")
    said = re.findall(r"(\w+): '(\w+)'", BLOCKS["events"])
    assert [name for name, _ in said] == header
    spark = re.findall(r"(\w+) (\w+)(?:,|$)", re.search(r"```\n(host STRING.*?)\n```", PAGE, re.S).group(1).replace("\n", " "))
    kind = {"VARCHAR": "STRING", "BIGINT": "BIGINT", "INTEGER": "INT", "DOUBLE": "DOUBLE"}
    assert spark == [(name, kind[duck]) for name, duck in said]
