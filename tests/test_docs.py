"""Links of the front pages lead somewhere, and answers come first."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"

#: Links of the landing page to answers.
ANSWERS = re.findall(r"\]\(questions\.md#([^)]+)\)", (DOCS / "index.md").read_text())


def slug(heading):
    """The anchor that a heading gets."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def test_ten_questions_are_asked():
    assert len(set(ANSWERS)) == len(ANSWERS) == 10


@pytest.mark.parametrize("anchor", ANSWERS)
def test_an_answer_is_short_and_leads_on(anchor):
    page = (DOCS / "questions.md").read_text()
    parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    answers = dict(zip(map(slug, parts[1::2]), parts[2::2], strict=True))
    answer = answers[anchor]
    words = re.sub(r"^\|.*$", "", answer, flags=re.MULTILINE).split()
    assert 20 < len(words) <= 110
    assert re.search(r"\]\([a-z_]+\.md\)", answer)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_links_between_pages_exist(page):
    for target in re.findall(r"\]\(([a-z_]+\.md)(?:#[^)]*)?\)", page.read_text()):
        assert (DOCS / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_a_list_of_contents():
    listed = set()
    for page in DOCS.glob("*.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", page.read_text(), re.S):
            listed |= {line for line in block.split() if line[0] not in ":"}
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= listed
