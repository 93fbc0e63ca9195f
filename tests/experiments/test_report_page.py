"""The page of results: what is on it, and that a browser draws it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("altair", reason="altair is an extra: report")
pytest.importorskip("vl_convert", reason="vl-convert-python is an extra: report")

from surff.experiments import write_report

TABLE = """dataset,multiple,method,trials,accuracy,std,generation_time,printed_accuracy
eeg,1,rff,3,69.5,1.25,0.001,68.45
eeg,2,rff,3,73.0,0.5,0.002,71.44
eeg,1,surrogate,3,70.25,1.0,0.003,68.62
eeg,0,boosting,3,93.0,0.25,0.5,
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "fair").mkdir()
    (folder / "fair" / "table2.csv").write_text(TABLE)
    (folder / "notes.csv").write_text("a,b\n1,</script>\n")
    return write_report(folder, folder / "pages" / "report.html")


def test_the_page_holds_every_row_and_chart(page):
    text = page.read_text()
    assert text.partition("<script>")[0].count("<tr>") == 5
    assert "notes" not in text
    specs = json.loads(re.search(r"const specs = (.*);\n", text)[1])
    assert list(specs) == ["chart-0-0", "chart-0-1", "chart-0-2"]
    shown = json.dumps(specs["chart-0-0"])
    for value in ("69.5", "70.25", "93.0", "HistGradientBoosting", "surrogate (paper)"):
        assert value in shown
    for name in specs:
        assert re.search(rf'id="{name}" role="group" aria-label="eeg: ', text)
    assert not re.search(r'(src|href)="(http|//)', text.partition("<script>")[0])


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must hold CSV files that a command"):
        write_report(tmp_path, tmp_path / "report.html")


@pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "google-chrome"))),
    reason="no Chromium to open the page with",
)
def test_a_browser_draws_the_charts_without_an_error(page, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    text = page.read_text()
    watch = (
        "<script>addEventListener('error', (e) => document.title = e.message);"
        "addEventListener('unhandledrejection', (e) => document.title = e.reason);"
        "</script>"
    )
    click = (
        "<script>setTimeout(() => { const heads = document.querySelectorAll('th');"
        "heads[4].firstElementChild.click();"
        "document.querySelector('.role-legend-label text').dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));"
        "}, 1500);</script></body>"
    )
    watched = tmp_path / "watched.html"
    start, _, end = text.replace("<head>", "<head>" + watch, 1).rpartition("</body>")
    watched.write_text(start + click + end)
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", f"--user-data-dir={tmp_path}/user"),
            *("--virtual-time-budget=6000", "--dump-dom", Path(watched).as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "<title>surff: results in" in done.stdout, done.stdout[:300]
    assert len(re.findall(r'<svg[^>]*class="marks"', done.stdout)) == 3
    # The head was clicked: rows are in the order of their accuracy.
    assert 'aria-sort="ascending"' in done.stdout
    shown = re.findall(r"<td>(69\.5|73|70\.25|93)</td>", done.stdout)
    assert shown == ["69.5", "70.25", "73", "93"]
    # The first name in a legend was chosen by the keyboard: other methods are pale.
    assert 'opacity="0.08"' in done.stdout
