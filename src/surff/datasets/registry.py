"""What data sets there are, which files they live in, and how those are checked.

``DATASETS`` maps a public name to its `DatasetDescription`, ``FILES`` the stem of a
file to its `DataFile`. A data set is one or more parts, a part is one file
``<stem>.csv.xz``: a header line, the label or target in the last column, the values as
the source wrote them. This module is data only and imports nothing.

Checksums are of the *decompressed* CSV, so a file packed by another version of xz is as
good as ours. Three files need another rule:

- ``letter``: the known CSV has the row order of the KEEL repository, a download has the
  order of UCI. What is pinned is the checksum of the sorted lines, which both orders
  share and which implies the class counts.
- ``cod-rna.r``: no CSV was at hand to take a checksum of. What is pinned is the known
  MD5 of the LIBSVM file, and the CSV is written back in that format to be compared.
- ``california-housing``: the known CSV's ratios per household differ from the exactly
  rounded quotients by one or two units in the last place in 7,741 rows, so no download
  can match it. The CSV of the exactly rounded quotients, which scikit-learn's
  ``fetch_california_housing`` has, is accepted besides; its checksum is of the CSV made
  from the whole-number counts that the ratios give back.
"""

from typing import NamedTuple

__all__ = [
    "DATASETS",
    "EEG_OUTLIER_ROWS",
    "FILES",
    "LETTER_KEEL_SHA256",
    "PAPER_TEST_STEM",
    "DataFile",
    "DatasetDescription",
]


class DataFile(NamedTuple):
    """One file on disk, how to check it and where it comes from.

    Attributes
    ----------
    stem : str
        The file is ``<stem>.csv.xz``.
    dataset : str
        Name in ``DATASETS`` under which it is fetched.
    n_samples, n_features : int
        Rows without the header line, columns without the label.
    columns : tuple of str
        Header line: the features, then the label or target.
    label : {"integer", "text", "real"}
        What the last column holds.
    n_bytes : int or None
        Size of the CSV, where known and only one.
    checksums : tuple of str
        Those accepted, of one kind: ``"sha256:..."`` of the CSV,
        ``"sorted-sha256:..."`` of its sorted data lines, or ``"libsvm-md5:..."`` of the
        file written in LIBSVM's format.
    url, download_name : str
        The original source and the name its file goes by.
    member : str or None
        File inside the downloaded archive.
    download_checksum : str or None
        Known checksum of the downloaded file, ``"algorithm:hex"``.
    raw_checksum : str or None
        Known checksum of the text inside it.
    converter : str
        Key of ``CONVERTERS``: how that text becomes the CSV.
    """

    stem: str
    dataset: str
    n_samples: int
    n_features: int
    columns: tuple[str, ...]
    label: str
    n_bytes: int | None
    checksums: tuple[str, ...]
    url: str
    download_name: str
    member: str | None
    download_checksum: str | None
    raw_checksum: str | None
    converter: str

    @property
    def filename(self) -> str:
        """Name of the file in a data directory."""
        return f"{self.stem}.csv.xz"


class DatasetDescription(NamedTuple):
    """A data set in words and numbers.

    Attributes
    ----------
    name : str
        What `load` takes.
    title : str
        Full name.
    task : {"classification", "regression"}
    parts : tuple of str
        Names of its parts; the first is the default of `load`.
    n_samples : dict of str to int
        Rows of each part.
    n_features : int
        Columns of ``X``.
    classes : tuple
        Labels in sorted order, empty for regression.
    stems : dict of str to str
        Part to stem of its file in ``FILES``; empty if no file is needed.
    source, licence, citation : str
        Who made it, what one may do with it, what to cite.
    where : str
        Where to get it.
    note : str
        What a user of the numbers must know.
    """

    name: str
    title: str
    task: str
    parts: tuple[str, ...]
    n_samples: dict[str, int]
    n_features: int
    classes: tuple
    stems: dict[str, str]
    source: str
    licence: str
    citation: str
    where: str
    note: str


# 0-based; the standard deviation of AF4 is 5,891 with these rows and 38.5 without.
EEG_OUTLIER_ROWS = (898, 10386, 11509, 13179)

# The paper's test part of cod-RNA, used when it is there.
PAPER_TEST_STEM = "cod-rna.r"

# The letter CSV whose rows are in KEEL's order; any other order is the download's.
LETTER_KEEL_SHA256 = "6b7c53779ff5457552d86bb7facbb323cf162323f21a1ac58e5267b60758dc88"

_UCI = "https://archive.ics.uci.edu/static/public"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_CC_BY = "CC BY 4.0"
_CHANG_LIN = (
    "C.-C. Chang, C.-J. Lin, LIBSVM: a library for support vector machines, "
    "ACM Transactions on Intelligent Systems and Technology 2(3):27, 2011"
)

_EEG_COLUMNS = (
    "AF3",
    "F7",
    "F3",
    "FC5",
    "T7",
    "P7",
    "O1",
    "O2",
    "P8",
    "T8",
    "FC6",
    "F4",
    "F8",
    "AF4",
    "eyeDetection",
)
_MAGIC_COLUMNS = (
    "fLength",
    "fWidth",
    "fSize",
    "fConc",
    "fConc1",
    "fAsym",
    "fM3Long",
    "fM3Trans",
    "fAlpha",
    "fDist",
    "class",
)
_COVTYPE_COLUMNS = (
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area{i}" for i in range(1, 5)),
    *(f"Soil_Type{i}" for i in range(1, 41)),
    "Cover_Type",
)
_LETTER_COLUMNS = (
    "x-box",
    "y-box",
    "width",
    "high",
    "onpix",
    "x-bar",
    "y-bar",
    "x2bar",
    "y2bar",
    "xybar",
    "x2ybr",
    "xy2br",
    "x-ege",
    "xegvy",
    "y-ege",
    "yegvx",
    "lettr",
)
_HOUSING_COLUMNS = (
    "MedInc",
    "HouseAge",
    "AveRooms",
    "AveBedrms",
    "Population",
    "AveOccup",
    "Latitude",
    "Longitude",
    "MedHouseVal",
)


def _libsvm_columns(n_features):
    return (*(f"x{i}" for i in range(1, n_features + 1)), "label")


def _cod_rna(part, n_samples, n_bytes, checksum, raw_md5):
    # LIBSVM's names: cod-rna (training), cod-rna.t (test), cod-rna.r (remaining).
    name = "cod-rna" if part == "train" else f"cod-rna.{part}"
    return DataFile(
        stem=f"cod-rna.{part}",
        dataset="cod-rna",
        n_samples=n_samples,
        n_features=8,
        columns=_libsvm_columns(8),
        label="integer",
        n_bytes=n_bytes,
        checksums=(checksum,),
        url=f"{_LIBSVM}/{name}",
        download_name=name,
        member=None,
        download_checksum=f"md5:{raw_md5}",
        raw_checksum=None,
        converter="libsvm",
    )


def _ijcnn1(part, n_samples, n_bytes, checksum):
    name = "ijcnn1.bz2" if part == "train" else "ijcnn1.t.bz2"
    return DataFile(
        stem=f"ijcnn1.{part}",
        dataset="ijcnn1",
        n_samples=n_samples,
        n_features=22,
        columns=_libsvm_columns(22),
        label="integer",
        n_bytes=n_bytes,
        checksums=(checksum,),
        url=f"{_LIBSVM}/{name}",
        download_name=name,
        member=None,
        download_checksum=None,
        raw_checksum=None,
        converter="ijcnn1",
    )


FILES = {
    file.stem: file
    for file in (
        DataFile(
            stem="eeg-eye-state",
            dataset="eeg",
            n_samples=14_980,
            n_features=14,
            columns=_EEG_COLUMNS,
            label="integer",
            n_bytes=1_681_119,
            checksums=(
                "sha256:"
                "10e256892acbf02520b2502fb4db80e13642cb839b0f14c63a5db4acead7e297",
            ),
            url=f"{_UCI}/264/eeg+eye+state.zip",
            download_name="eeg+eye+state.zip",
            member="EEG Eye State.arff",
            download_checksum=None,
            raw_checksum=None,
            converter="arff",
        ),
        DataFile(
            stem="magic04",
            dataset="magic04",
            n_samples=19_020,
            n_features=10,
            columns=_MAGIC_COLUMNS,
            label="text",
            n_bytes=1_477_467,
            checksums=(
                "sha256:"
                "ed9c3c747b6a424f579fb830b375bfea72ac4b0f4520fb2edd1ee609df79d0bc",
            ),
            url=f"{_UCI}/159/magic+gamma+telescope.zip",
            download_name="magic+gamma+telescope.zip",
            member="magic04.data",
            download_checksum=None,
            raw_checksum="md5:bb3888bd588c4b15b24351218f74491e",
            converter="csv",
        ),
        _cod_rna(
            "train",
            59_535,
            3_714_646,
            "sha256:afa5d983b12643e95daf5829dd131ff7722f6ad102dce3b32c3b3007d57d1c26",
            "cd14eab76f391e288e6e8e592ae658dd",
        ),
        _cod_rna(
            "t",
            271_617,
            16_998_713,
            "sha256:d5ec4cb8787b7bd58a502428c40e4a1b44214af323516a11dff271ba7f8d241d",
            "b876c22c86a33ef262342b12d2718655",
        ),
        _cod_rna(
            "r",
            157_413,
            None,
            "libsvm-md5:65205a3cd47cfad08679aca12c209af7",
            "65205a3cd47cfad08679aca12c209af7",
        ),
        DataFile(
            stem="covtype",
            dataset="covtype",
            n_samples=581_012,
            n_features=54,
            columns=_COVTYPE_COLUMNS,
            label="integer",
            n_bytes=75_170_064,
            checksums=(
                "sha256:"
                "ea35ca6820fcbe0bdc6707e9ed31e11a9de84f07d88da73b511c737383c271a6",
            ),
            url=f"{_UCI}/31/covertype.zip",
            download_name="covertype.zip",
            member="covtype.data.gz",
            download_checksum=None,
            raw_checksum="md5:71df19898bd3e11db15ae0faf4159f2c",
            converter="csv",
        ),
        DataFile(
            stem="letter",
            dataset="letter",
            n_samples=20_000,
            n_features=16,
            columns=_LETTER_COLUMNS,
            label="text",
            n_bytes=712_666,
            checksums=(
                "sorted-sha256:"
                "8f30cb197b7950486645d63f4f6ec014edbc75a8d56d22ee3321e93bbf4f397a",
            ),
            url=f"{_UCI}/59/letter+recognition.zip",
            download_name="letter+recognition.zip",
            member="letter-recognition.data",
            download_checksum=None,
            raw_checksum=None,
            converter="label_first",
        ),
        _ijcnn1(
            "train",
            49_990,
            6_740_183,
            "sha256:a307e62b65f5114fe4508f25e01767a168e594e551d14265a13691ebaae1de55",
        ),
        _ijcnn1(
            "t",
            91_701,
            12_370_865,
            "sha256:8fdeaa5ecd9fee81452edc6c7b242ab0de084ce6ef40b9aa0d1ca4903e41fee8",
        ),
        DataFile(
            stem="california-housing",
            dataset="california-housing",
            n_samples=20_640,
            n_features=8,
            columns=_HOUSING_COLUMNS,
            label="real",
            n_bytes=None,
            checksums=(
                "sha256:"
                "6c920b8ea6eae64f9e0a29ec8cc9c82ccd01d977bd1dcad4a8c15ab1fe30978a",
                "sha256:"
                "94ef369b909f5c725340b512b7c9a05c1550a554b6592d29303990e3ba521a1f",
            ),
            url="https://ndownloader.figshare.com/files/5976036",
            download_name="cal_housing.tgz",
            member="cal_housing.data",
            download_checksum="sha256:"
            "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
            raw_checksum=None,
            converter="california_housing",
        ),
    )
}

_COVTYPE_SOURCE = (
    "J. Blackard (1998), Covertype, UCI Machine Learning Repository, "
    "doi:10.24432/C50K5N"
)
_COVTYPE_CITATION = (
    "J. A. Blackard, D. J. Dean, Comparative accuracies of artificial neural networks "
    "and discriminant analysis in predicting forest cover types from cartographic "
    "variables, Computers and Electronics in Agriculture 24(3), 1999"
)
_COVTYPE_LICENCE = (
    "CC BY 4.0; copyright Jock A. Blackard and Colorado State University, reuse "
    "unlimited with retention of this notice"
)
_COVTYPE_NOTE = (
    "The first 15,120 rows are balanced between the seven classes and the rest is not: "
    "shuffle before taking a prefix. Some binary columns are set in very few rows "
    "(Soil_Type15 in 3), so a subsample can hold constant columns."
)

DATASETS = {
    description.name: description
    for description in (
        DatasetDescription(
            name="eeg",
            title="EEG eye state",
            task="classification",
            parts=("all",),
            n_samples={"all": 14_980},
            n_features=14,
            classes=(0, 1),
            stems={"all": "eeg-eye-state"},
            source="O. Roesler (2013), EEG Eye State, UCI Machine Learning Repository, "
            "doi:10.24432/C57G7J",
            licence=_CC_BY,
            citation="O. Roesler, EEG Eye State, UCI Machine Learning Repository, 2013",
            where=f"{_UCI}/264/eeg+eye+state.zip",
            note="Four rows are gross outliers and are kept: 898, 10386, 11509, 13179 "
            "(counted from 0). They rule any column scaling. The rows are one "
            "recording in time order with 23 changes of the label, so a random split "
            "puts near-identical neighbours on both sides. Labels: 0 = eye open, 1 = "
            "eye closed.",
        ),
        DatasetDescription(
            name="magic04",
            title="MAGIC gamma telescope",
            task="classification",
            parts=("all",),
            n_samples={"all": 19_020},
            n_features=10,
            classes=("g", "h"),
            stems={"all": "magic04"},
            source="R. Bock (2004), MAGIC Gamma Telescope, UCI Machine Learning "
            "Repository, doi:10.24432/C52C8B",
            licence=_CC_BY,
            citation="R. Bock, MAGIC Gamma Telescope, UCI Machine Learning Repository, "
            "2004",
            where=f"{_UCI}/159/magic+gamma+telescope.zip",
            note="All rows of class g come before those of class h: shuffle before any "
            "split. 115 rows repeat an earlier row. Labels: g = gamma (signal), h = "
            "hadron (background).",
        ),
        DatasetDescription(
            name="cod-rna",
            title="Detection of non-coding RNA",
            task="classification",
            parts=("train", "test", "paper-test"),
            n_samples={"train": 59_535, "test": 271_617, "paper-test": 157_410},
            n_features=8,
            classes=(-1, 1),
            stems={
                "train": "cod-rna.train",
                "test": "cod-rna.t",
                "paper-test": "cod-rna.t",
            },
            source=f"A. V. Uzilov et al. (2006), from the LIBSVM data page, {_LIBSVM}",
            licence="article CC BY 2.0; the LIBSVM data page states none",
            citation="A. V. Uzilov, J. M. Keegan, D. H. Mathews, Detection of "
            "non-coding RNAs on the basis of predicted secondary structure formation "
            f"free energy change, BMC Bioinformatics 7:173, 2006; {_CHANG_LIN}",
            where=f"{_LIBSVM}/cod-rna and {_LIBSVM}/cod-rna.t",
            note="Rows are grouped by sequence length and label: shuffle, never take a "
            "prefix. A third of each part is +1 (non-coding RNA). 10,069 training and "
            "60,813 test rows repeat an earlier row of the same part.",
        ),
        DatasetDescription(
            name="covtype",
            title="Forest covertype, class 2 against the rest",
            task="classification",
            parts=("all",),
            n_samples={"all": 581_012},
            n_features=54,
            classes=(-1, 1),
            stems={"all": "covtype"},
            source=_COVTYPE_SOURCE,
            licence=_COVTYPE_LICENCE,
            citation=f"{_COVTYPE_CITATION}; binary version: R. Collobert, S. Bengio, "
            "Y. Bengio, A parallel mixture of SVMs for very large scale problems, "
            "Neural Computation 14(5), 2002",
            where=f"{_UCI}/31/covertype.zip",
            note=f"{_COVTYPE_NOTE} Labels: +1 = cover type 2 (283,301 rows), -1 = any "
            "other (297,711 rows).",
        ),
        DatasetDescription(
            name="covtype-7",
            title="Forest covertype, seven classes",
            task="classification",
            parts=("all",),
            n_samples={"all": 581_012},
            n_features=54,
            classes=(1, 2, 3, 4, 5, 6, 7),
            stems={"all": "covtype"},
            source=_COVTYPE_SOURCE,
            licence=_COVTYPE_LICENCE,
            citation=_COVTYPE_CITATION,
            where=f"{_UCI}/31/covertype.zip",
            note=_COVTYPE_NOTE,
        ),
        DatasetDescription(
            name="letter",
            title="Letter recognition",
            task="classification",
            parts=("all",),
            n_samples={"all": 20_000},
            n_features=16,
            classes=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
            stems={"all": "letter"},
            source="D. Slate (1991), Letter Recognition, UCI Machine Learning "
            "Repository, doi:10.24432/C5ZP40",
            licence=_CC_BY,
            citation="D. Slate, Letter Recognition, UCI Machine Learning Repository, "
            "1991; KEEL order: J. Alcala-Fdez et al., KEEL data-mining software tool: "
            "data set repository, J. of Multiple-Valued Logic and Soft Computing 17, "
            "2011",
            where=f"{_UCI}/59/letter+recognition.zip",
            note="1,332 rows repeat an earlier row.",
        ),
        DatasetDescription(
            name="ijcnn1",
            title="IJCNN 2001 challenge",
            task="classification",
            parts=("train", "test"),
            n_samples={"train": 49_990, "test": 91_701},
            n_features=22,
            classes=(-1, 1),
            stems={"train": "ijcnn1.train", "test": "ijcnn1.t"},
            source="D. Prokhorov, IJCNN 2001 neural network competition, from the "
            f"LIBSVM data page, {_LIBSVM}",
            licence="none stated",
            citation="C.-C. Chang, C.-J. Lin, IJCNN 2001 challenge: generalization "
            f"ability and text decoding, Proc. IJCNN, 2001; {_CHANG_LIN}",
            where=f"{_LIBSVM}/ijcnn1.bz2 and {_LIBSVM}/ijcnn1.t.bz2",
            note="Unbalanced: always answering -1 is right on 90.3 % of the training "
            "and 90.5 % of the test rows.",
        ),
        DatasetDescription(
            name="california-housing",
            title="California housing",
            task="regression",
            parts=("all",),
            n_samples={"all": 20_640},
            n_features=8,
            classes=(),
            stems={"all": "california-housing"},
            source="R. K. Pace, R. Barry (1997), 1990 US census, StatLib",
            licence="none stated (US census data)",
            citation="R. K. Pace, R. Barry, Sparse spatial autoregressions, Statistics "
            "and Probability Letters 33, 1997",
            where="https://ndownloader.figshare.com/files/5976036",
            note="Target in 100,000 US dollars, capped: 965 rows are at 5.00001. Heavy "
            "tails (AveOccup reaches 1243.3, median 2.8). The ratios per household may "
            "differ from scikit-learn's in the last two bits.",
        ),
        DatasetDescription(
            name="breast_cancer",
            title="Breast cancer Wisconsin (diagnostic)",
            task="classification",
            parts=("all",),
            n_samples={"all": 569},
            n_features=30,
            classes=(0, 1),
            stems={},
            source="W. Wolberg, O. Mangasarian, N. Street, W. Street (1995), UCI "
            "Machine Learning Repository, doi:10.24432/C5DW2B",
            licence=_CC_BY,
            citation="W. N. Street, W. H. Wolberg, O. L. Mangasarian, Nuclear feature "
            "extraction for breast tumor diagnosis, Proc. SPIE 1905, 1993",
            where="comes with scikit-learn",
            note="Labels: 0 = malignant, 1 = benign.",
        ),
        DatasetDescription(
            name="digits",
            title="Handwritten digits, 8 x 8 pixels",
            task="classification",
            parts=("all",),
            n_samples={"all": 1_797},
            n_features=64,
            classes=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
            stems={},
            source="E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten "
            "Digits, UCI Machine Learning Repository, doi:10.24432/C50P49",
            licence=_CC_BY,
            citation="E. Alpaydin, C. Kaynak, Cascading classifiers, Kybernetika "
            "34(4), 1998",
            where="comes with scikit-learn",
            note="The test part of the source only. Pixels are integers 0 to 16.",
        ),
    )
}
