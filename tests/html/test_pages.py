# SPDX-License-Identifier: Apache-2.0
"""Pages as files: valid, whole without the script, honest about what was thinned, and harmless whatever the run holds."""
import csv
import io
import json
import re
import subprocess

import html5lib
import pytest

import loggen

VERBS = ["diff", "equal", "check", "report"]
NS = "{http://www.w3.org/1999/xhtml}"


def tree(page):
    """The parsed page; any error of the HTML syntax fails."""
    return html5lib.HTMLParser(strict=True, tree=html5lib.getTreeBuilder("etree")).parse(page.read_text(encoding="utf-8"))


def text_of(element):
    return " ".join(" ".join(element.itertext()).split())


def section(root, name):
    return next(e for e in root.iter(NS + "section") if e.get("id") == name)


def data_of(root):
    return json.loads(next(e for e in root.iter(NS + "script") if e.get("id") == "data").text)


@pytest.mark.parametrize("verb", VERBS)
def test_valid_and_linked(pages, verb):
    root = tree(pages[verb])
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    links = [e.get("href") for e in root.iter(NS + "a")]
    assert len(links) > 9 and all(link.startswith("#") and link[1:] in ids for link in links)
    for e in root.iter():
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert e.get(name) is None or e.get(name) in ids, (e.tag, e.get(name))
        assert not [a for a in e.keys() if a.startswith("on") or a in ("src", "style", "action")], (e.tag, e.attrib)


@pytest.mark.parametrize("verb", VERBS)
def test_order_of_sections(pages, verb):
    """Coverage comes before the verdict, and the verdict before everything that was found."""
    names = [e.get("id") for e in tree(pages[verb]).iter(NS + "section")]
    assert names == ["coverage", "verdict", "findings", "overview", "map", "timeline", "traces", "slots", "events", "callsites"]


def test_diff_without_script(pages, toy, lab):
    """What a reader without JavaScript sees agrees with what --json says."""
    root = tree(pages["diff"])
    found = lab.diff(toy["graph-off"], toy["graph-on"])[1]
    verdict, findings = text_of(section(root, "verdict")), text_of(section(root, "findings"))
    assert "DIFFERS" in verdict and f"{found['summary']['differs']} of {found['summary']['slots']} slots differ" in verdict
    assert found["reasons"][0]["remedy"] in verdict and found["reasons"][0]["code"] in verdict
    first = found["first_divergence"]
    assert f"donate {int(first['id'], 16)} of slot {first['slot']}" in findings and first["callsite"][0]["symbol"] in findings
    coverage = text_of(section(root, "coverage"))
    assert f"core.donate B {found['coverage']['core.donate'][1]['attempted']}" in coverage and "Never fired: core.graph_update" in coverage
    assert "none, as graph-off promises" in coverage and "core.graph_launch A 0 0 0 0 0 0 0 never" not in coverage
    rows = [[text_of(c) for c in r] for r in section(root, "slots").iter(NS + "tr")][1:]
    assert len(rows) == len(found["slots"])
    by_name = {f"{s['rank']}/{s['pool']}/{s['slot']}": s for s in found["slots"]}
    for row in rows:
        slot = by_name[row[0]]
        assert row[1] == slot["verdict"] and row[9] == slot["hash"][0] and row[10] == slot["hash"][1]
        assert row[12] == ", ".join(e["kind"] for e in slot["explain"])
    assert [r[1] for r in rows] == sorted([r[1] for r in rows])  # differs comes before equal


def test_what_stands_beside_the_verdict(toy, tmp_path, lab):
    """The page has the words of the text report on tolerance, noise, the third run and the configuration."""
    again = lab.record("graph-off", "--bug", "stale-index-tail", options=("--watch-slot", "0"), again=1)
    words = ["diff", toy["graph-off"].path, toy["graph-on"].path, "--rtol", "1e-3", "--noise", again.path]
    lab.slotprobe(*words, "--format", "html", "-o", tmp_path / "page.html")
    said = text_of(section(tree(tmp_path / "page.html"), "verdict"))
    lines = [line.strip() for line in lab.slotprobe(*words).stdout.splitlines() if line.strip().startswith(("tolerance", "noise"))]
    assert len(lines) == 2 and all(line in said for line in lines)


def test_findings_lead_to_events_and_call_sites(pages):
    """finding -> event -> call site, by links alone."""
    root = tree(pages["diff"])
    link = next(e.get("href") for e in section(root, "findings").iter(NS + "a"))
    row = next(e for e in root.iter(NS + "tr") if e.get("id") == link[1:])
    site = next(e.get("href") for e in row.iter(NS + "a"))
    article = next(e for e in root.iter(NS + "article") if e.get("id") == site[1:])
    assert "toy_report_donate" in text_of(article) and "donate" in text_of(article)


def test_check_page_says_what_check_says(pages, toy, lab):
    findings = text_of(section(tree(pages["check"]), "findings"))
    for invariant in lab.check(toy["graph-on"])[1]["invariants"]:
        assert f"{invariant['state'].replace('_', ' ')} {invariant['text']}" in findings


def test_timeline_counts_every_event(pages, toy, lab):
    """The bins add up to what the run holds."""
    data, on = data_of(tree(pages["report"])), toy["graph-on"]
    rows = list(csv.DictReader(io.StringIO(lab.slotprobe("export", on.path, "--format", "csv").stdout)))
    for lane, name in enumerate(data["lanes"]):
        slot, cells = name.rsplit("/", 1)[1], data["timeline"][0]["lanes"][lane]
        counted = [sum(cells[i::6]) for i in (1, 2, 3)]
        kinds = [r["kind"] for r in rows if r["slot"] == slot]
        donations, restores = kinds.count("donate"), kinds.count("restore")
        # a discard names its donation, not its slot
        assert counted[:2] == [donations, restores] and counted[2] >= len(kinds) - donations - restores, name
        trace = data["traces"][0][lane]
        assert trace[1::2] == pytest.approx([float(r["absmax"]) for r in rows if r["slot"] == slot and r["kind"] == "donate"], rel=1e-4)
    assert sum(data["timeline"][0]["launches"]) == int(rows[-1]["launches"]) > 0


def test_map_of_a_diff(pages, toy, lab):
    """A cell differs where --json lists its plane."""
    data, found = data_of(tree(pages["diff"])), lab.diff(toy["graph-off"], toy["graph-on"])[1]
    by_name = {f"{s['rank']}/{s['pool']}/{s['slot']}": s for s in found["slots"]}
    for lane, name in enumerate(data["lanes"]):
        names = data["map"]["planes"][data["map"]["layout"][lane]]
        differing = {f"{p['tensor']}, layer {p['layer']}" for p in by_name[name]["planes_differing"]}
        assert {n for n, c in zip(names, data["map"]["rows"][lane], strict=True) if c == "x"} == differing


def test_timeline_marks_what_differs(pages, toy):
    """Only slots that differ have marked donations, as many as the toy itself knows to be wrong."""
    data = data_of(tree(pages["diff"]))
    marked = [[sum(lane[5::6]) for lane in run["lanes"]] for run in data["timeline"]]
    assert marked[0] == marked[1] and [n > 0 for n in marked[0]] == [v == "differs" for v in data["verdicts"]]
    assert sum(marked[1]) == sum(e["differs"] for e in toy["graph-on"].of("donate"))


# ---- large runs ----


def test_thinning_is_said(large, make_page):
    page = make_page("large", "report", large)
    root = tree(page)
    data = data_of(root)
    assert page.stat().st_size < 6e6
    assert "Drawn are 1000 of 2500 slots" in text_of(section(root, "overview"))
    assert "100 of 2500 slots shown" in text_of(section(root, "slots"))
    assert len(data["lanes"]) == 1000 and data["lanes_all"] == 2500 and len(data["slots"]) == data["slots_all"] == 2500
    assert sum(sum(lane[1::6]) for lane in data["timeline"][0]["lanes"]) == 40000


def test_traces_keep_the_largest(build, tmp_path, make_page):
    """A point of a thinned trace is the largest of those that it stands for."""
    run = tmp_path / "run"
    assert subprocess.run([build / "tests/export/biglog", run, "graph-on", "1", "20000", "2", "2"], timeout=60).returncode == 0
    data = data_of(tree(make_page("traces", "report", run)))
    assert data["trace_step"] == 10 and len(data["traces"][0][0]) == 2000
    rows = csv.DictReader(io.StringIO(subprocess.run([build / "slotprobe", "export", run, "--format", "csv"], capture_output=True,
                                                     text=True, timeout=60).stdout))
    values = [float(r["absmax"]) for r in rows if r["kind"] == "donate" and r["slot"] == "0"]
    assert data["traces"][0][0][1::2] == pytest.approx([max(values[i:i + 10]) for i in range(0, 10000, 10)], rel=1e-4)


# ---- hostile runs ----

@pytest.mark.parametrize("verb", ["diff", "check", "report"])
def test_hostile_names_stay_text(hostile_pages, verb):
    page = hostile_pages[verb]
    root = tree(page)
    assert len(list(root.iter(NS + "script"))) == 2 and not list(root.iter(NS + "img")) and not list(root.iter(NS + "i"))
    raw = page.read_text(encoding="utf-8")
    assert raw.count("</script>") == 2 and raw.count("<script") == 2
    planes = [n for names in data_of(root)["map"]["planes"] for n in names]
    assert any("</script><script>" in n for n in planes) and any("\\xff" in n or "ÿ" in n for n in planes)
    assert "<img src=x onerror" in text_of(section(root, "slots"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", raw)


def test_no_such_run_leaves_an_old_page(lab, tmp_path):
    page = tmp_path / "old.html"
    page.write_text("old")
    assert lab.slotprobe("report", tmp_path / "none", "--format", "html", "-o", page).returncode == 2
    assert page.read_text() == "old"


@pytest.mark.parametrize("verb", ["report", "check"])
def test_page_on_a_full_disk(lab, toy, verb):
    done = lab.slotprobe(verb, toy["graph-on"].path, "--format", "html", "-o", "/dev/full")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "not whole" in done.stderr


def test_run_without_donations(lab, make_page):
    run = loggen.Run("graph-on", loggen.Process()).write(lab.folder / "empty")
    root = tree(make_page("nothing", "check", run, status=3))
    assert "NOT PROVEN" in text_of(section(root, "verdict")) and data_of(root)["lanes"] == []
