import hashlib

import pytest

from surff.datasets.convert import CONVERTERS, to_libsvm
from surff.datasets.registry import FILES


@pytest.mark.parametrize(
    ("converter", "text"),
    [
        (
            "arff",
            b"@RELATION r\r\n@ATTRIBUTE a NUMERIC\r\n\r\n@DATA\r\n% a comment\r\n"
            b"1.50,-2,0\r\n3,4e-1,1\r\n\r\n",
        ),
        ("csv", b"1.50,-2,0\r\n3,4e-1,1"),
        ("label_first", b"0,1.50,-2\n1,3,4e-1\n"),
        ("libsvm", b"0 1:1.50 2:-2\n1 2:4e-1 1:3 \n"),
    ],
)
def test_values_keep_the_text_of_the_source(converter, text):
    csv = CONVERTERS[converter](text, ("a", "b", "label"))
    assert csv == b"a,b,label\n1.50,-2,0\n3,4e-1,1\n"


@pytest.mark.parametrize("label", [b"-1", b"-1.000000"])
@pytest.mark.parametrize("zero", [b"", b" 13:0.000000"])
def test_ijcnn1_does_not_depend_on_padding_or_on_written_zeros(label, zero):
    text = label + b" 6:1 11:-0.731854 12:0.1734310" + zero + b" 22:-0.00389\n"
    csv = CONVERTERS["ijcnn1"](text, FILES["ijcnn1.train"].columns)
    row = csv.split(b"\n")[1].split(b",")
    assert row[:10] == [b"0"] * 5 + [b"1"] + [b"0"] * 4
    assert row[10:13] == [b"-0.731854", b"0.173431", b"0.0"]
    assert row[21:] == [b"-0.00389", b"-1"]


def test_california_housing_has_the_ratios_per_household():
    # First row of StatLib's file; the answer is scikit-learn's documented first row.
    text = (
        b"-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,"
        b"126.000000,8.325200,452600.000000\n"
    )
    csv = CONVERTERS["california_housing"](text, FILES["california-housing"].columns)
    assert csv.split(b"\n")[1] == (
        b"8.3252,41.0,6.984126984126984,1.0238095238095237,322.0,"
        b"2.5555555555555554,37.88,-122.23,4.526"
    )


def test_to_libsvm_gives_back_libsvms_own_file(real_csv):
    # The MD5 of LIBSVM's file cod-rna.
    text = to_libsvm(real_csv("cod-rna.train"))
    assert hashlib.md5(text).hexdigest() == "cd14eab76f391e288e6e8e592ae658dd"


def test_to_libsvm_undoes_the_conversion():
    text = b"1 1:0.5 2:7\n-1 1:3 2:0\n"
    assert to_libsvm(CONVERTERS["libsvm"](text, ("x1", "x2", "label"))) == text
