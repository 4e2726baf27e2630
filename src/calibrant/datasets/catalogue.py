"""What there is to load: where each data set comes from, what it must contain, whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

__all__ = ["CATALOGUE", "PUBLIC_ADDRESS", "Source"]

PUBLIC_ADDRESS = "https://raw.githubusercontent.com"

_SMOOTH_ECE = (
    "J. Błasiok, P. Nakkiran. Smooth ECE: Principled Reliability Diagrams via Kernel "
    "Smoothing. ICLR 2024, arXiv:2309.12236."
)
_HOLLANCE = "M. Hollemans. Reliability diagrams (2020). github.com/hollance/reliability-diagrams"
_CORP = (
    "T. Dimitriadis, T. Gneiting, A. I. Jordan. Stable reliability diagrams for probabilistic "
    "classifiers. PNAS 118 (2021), doi:10.1073/pnas.2016191118."
)
_FLARES = (
    "K. D. Leka et al. A comparison of flare forecasting methods II. "
    "ApJS 243 (2019), doi:10.3847/1538-4365/ab2e12."
)
_RECIDIVISM = (
    "K. Bansak. Can nonexperts really emulate statistical learning methods? "
    "Political Analysis 27 (2019), doi:10.7910/DVN/KT20FE."
)
_VERIFICATION = (
    "NCAR Research Applications Laboratory. verification: weather forecast verification "
    "utilities. R package."
)
_FMI = "Finnish Meteorological Institute (P. Nurmi): forecasts of rain in Tampere, 2003."
_FIVETHIRTYEIGHT = "FiveThirtyEight. Checking our work (2018-2023)."
_DENSENET = (
    "M. Kull, M. Perelló-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach. Beyond temperature "
    "scaling. NeurIPS 2019 (github.com/markus93/NN_calibration)."
)
_NETCAL = (
    "F. Küppers, J. Kronenberger, A. Shantia, A. Haselhoff. Multivariate confidence calibration "
    "for object detection. CVPR Workshops 2020."
)
_CC0_IN_GPL = "GPL-3 (package as a whole); these raw data CC0"

_CHECKED_PROJECTS = (
    "college_football_playoff",
    "governors_elections",
    "march_madness_in_game_men",
    "march_madness_in_game_women",
    "march_madness_men",
    "march_madness_women",
    "mlb_games",
    "mlb_playoffs",
    "nba_games",
    "nfl_games",
    "nfl_playoffs",
    "nhl_games",
    "nhl_playoffs",
    "president_election_night",
    "tennis_men",
    "tennis_women",
    "us_senate_election_night",
    "wnba_games",
    "wnba_playoffs",
    "world_cup_advancement_men",
    "world_cup_advancement_women",
    "world_cup_matches_in_game_men",
    "world_cup_matches_in_game_women",
    "world_cup_matches_men",
    "world_cup_matches_women",
)


@dataclass(frozen=True)
class Source:
    """One data set: the files it is made from and what the result must be.

    `fingerprint` is the SHA-256 of the converted rows, sorted and rounded to nine digits, so a
    changed original, a damaged transfer and a wrong conversion are all caught by one check.

    Examples
    --------
    >>> from calibrant import datasets
    >>> source = datasets.describe(datasets.names()[0])
    >>> source.rows > 0, len(source.fingerprint)
    (True, 64)
    """

    name: str
    title: str
    repository: str
    commit: str
    paths: tuple[str, ...]
    converter: str
    rows: int
    fingerprint: str
    licence: str
    citations: tuple[str, ...]

    @property
    def citation(self) -> str:
        """Whom to cite, in one line."""
        return " ".join(self.citations)

    def addresses(self, mirror: str = PUBLIC_ADDRESS) -> tuple[str, ...]:
        """The public address of each original file, at the commit that was looked at."""
        root = f"{mirror.rstrip('/')}/{self.repository}/{self.commit}"
        return tuple(f"{root}/{quote(path)}" for path in self.paths)


_HOLLANCE_AT = ("hollance/reliability-diagrams", "e133f3d3a63356920c7d5cb7b032c3e03b38afb5")
_CORP_AT = ("TimoDimi/replication_DGJ20", "193cf2fd986544c42abd01a1c94de17f4fc04a0a")
_VERIFICATION_AT = ("cran/verification", "39e90b9d92fe804e27ea78f6d46391d1b3d02348")
_CHECKING_AT = (
    "fivethirtyeight/checking-our-work-data",
    "f6d5b2e1d6da2889345d381c41431f9a4ee208dd",
)

_ALL = (
    Source(
        "imagenet_resnet34",
        "Confidence of ResNet-34 on the ImageNet validation set",
        *_HOLLANCE_AT,
        ("results/ImageNet_pytorch-image-models/resnet34.csv",),
        "confidences",
        50_000,
        "7b5d4d8fd9cd0c7cecf0ffecdceef01e367d50584fd20898a267061eb1ab54ef",
        "MIT",
        (_HOLLANCE, _SMOOTH_ECE),
    ),
    Source(
        "imagenet_resnext50_32x4d",
        "Confidence of ResNeXt-50 on the ImageNet validation set",
        *_HOLLANCE_AT,
        ("results/ImageNet_pytorch-image-models/resnext50_32x4d.csv",),
        "confidences",
        50_000,
        "7ba12839f90bb402a9a45e7d3191bbbef8bebddde7c1b95d345ab56ebc834c02",
        "MIT",
        (_HOLLANCE,),
    ),
    Source(
        "nncal_densenet40_c10",
        "Confidence of DenseNet-40 on CIFAR-10: half of the rows at exactly 1",
        *_HOLLANCE_AT,
        ("results/markus93/probs_densenet40_c10_logits.csv",),
        "confidences",
        10_000,
        "daa79c345608fc30d0fed0e525d312d5bcc5ebd63b12ac8fed59180846fdbbe1",
        "MIT",
        (_HOLLANCE, _DENSENET),
    ),
    Source(
        "solar_flares_daffs_c1",
        "Solar flares of class C1 and above: the DAFFS forecasts of 2016 and 2017",
        *_CORP_AT,
        ("data/SF.FC.C1.csv",),
        "solar_flares_daffs",
        731,
        "98c842ba7e46bea48353c0d2aa8a0fdfa9a0724f0daf03dccaef640948095ca1",
        _CC0_IN_GPL,
        (_CORP, _FLARES, _SMOOTH_ECE),
    ),
    Source(
        "solar_flares_all_models",
        "Solar flares: 18 forecasters, two classes of flare, missing and invalid rows dropped",
        *_CORP_AT,
        ("data/SF.FC.C1.csv", "data/SF.FC.M1.csv"),
        "solar_flares",
        19_358,
        "ee90c58b31acbd500e3527fae3aa1e83a0ee9b5c0fad385a511faf3baf7df716",
        _CC0_IN_GPL,
        (_CORP, _FLARES),
    ),
    Source(
        "solar_flares_all_models_with_nan",
        "Solar flares as published: missing forecasts and forecasts of -0.01 are kept",
        *_CORP_AT,
        ("data/SF.FC.C1.csv", "data/SF.FC.M1.csv"),
        "solar_flares_as_published",
        26_316,
        "c40d141dc85d2c166268cace4111e1acd365e1131742b27f56000a4b9ff8913d",
        _CC0_IN_GPL,
        (_CORP, _FLARES),
    ),
    Source(
        "recidivism_broward",
        "Two-year recidivism in Broward County: four predictors of the same 1,000 people",
        *_CORP_AT,
        ("data/recid.csv",),
        "recidivism",
        4_000,
        "9c8ae4589c008c935f880d0a966f55af55e7c10bb04ebb93f82886bf6164cf0b",
        _CC0_IN_GPL,
        (_CORP, _RECIDIVISM),
    ),
    Source(
        "fmi_rain_tampere_2003",
        "Rain in Tampere, Finland, 2003: 24-hour forecasts in tenths",
        *_VERIFICATION_AT,
        ("data/pop.rda",),
        "rain",
        346,
        "42cfbbb8caba7e944991bb77ea93278edf7fc89143f3368cc081cf56119094c9",
        "GPL (>= 2)",
        (_VERIFICATION, _FMI, _SMOOTH_ECE),
    ),
    Source(
        "fmi_rain_raw_sentinels",
        "Rain in Tampere as published: -999 and 999 where a value is missing",
        "jrholliday/VeriPy",
        "cec76ee2b6c2ddf7c3d394483a62115baa334ec9",
        ("Examples/POP_3cat_2003.txt",),
        "rain_as_published",
        365,
        "8a18cbceae1f425f00f5586dc5676615868fe70cf2ba7947e17a0edd9ceb0284",
        "see the repository",
        ("J. R. Holliday. VeriPy. github.com/jrholliday/VeriPy", _FMI),
    ),
    Source(
        "verification_prob_frcs",
        "Icing forecasts of the R package verification",
        *_VERIFICATION_AT,
        ("data/prob.frcs.dat.rda",),
        "icing",
        1_242,
        "9216dc99a7113ddef2e9fb69c2c580994db9936aac0f87bdcd09e4c5ad5853d3",
        "GPL (>= 2)",
        (_VERIFICATION,),
    ),
    Source(
        "verification_prob_frcs_percent",
        "Icing forecasts as published: in per cent",
        *_VERIFICATION_AT,
        ("data/prob.frcs.dat.rda",),
        "icing_as_published",
        1_242,
        "6a3b44edf23d7176976aa3762a11f9a78fa84eb3f122e96792f97fda0f0de9e6",
        "GPL (>= 2)",
        (_VERIFICATION,),
    ),
    Source(
        "precip_niamey_2016",
        "Rain in Niamey, Niger, 2016: four forecasts of each day",
        "aijordan/reliabilitydiag",
        "5c99749c2c911b3446ee5ffb20f5e515631623b8",
        ("data/precip_Niamey_2016.rda",),
        "niamey",
        368,
        "7c0aa5ea8fbdd71b969727cbc9d98d33a32c8d08be208fceed15d8ba07946341",
        "GPL-3 (package); ECMWF-derived columns CC BY 4.0",
        (_CORP,),
    ),
    Source(
        "fivethirtyeight_mlb_games",
        "Baseball games: the probability that the first team wins",
        *_CHECKING_AT,
        ("mlb_games.csv",),
        "first_team_wins",
        15_747,
        "63fcf4ff7b3b276e26eb9a36f040d702079a2131cccefb34b4fd4b42fdfc0bf2",
        "CC BY 4.0",
        (_FIVETHIRTYEIGHT,),
    ),
    Source(
        "fivethirtyeight_all",
        "Every forecast of 25 projects in sport and politics",
        *_CHECKING_AT,
        tuple(f"{project}.csv" for project in _CHECKED_PROJECTS),
        "checked_forecasts",
        1_224_752,
        "dc8ff31acef82f26d414982b38214c2f52ee829d643d486affa978e7a021500b",
        "CC BY 4.0",
        (_FIVETHIRTYEIGHT,),
    ),
    Source(
        "nfl_elo_1920_with_ties",
        "American football since 1920: a tie is an outcome of 0.5",
        "fivethirtyeight/nfl-elo-game",
        "fbec1afa38",
        ("data/nfl_games.csv",),
        "football_with_ties",
        16_810,
        "2b0ce61dfaf92c397c379de4e49ab2fb7d1d600e85bf9ddb032f0e7a4089fe03",
        "MIT",
        ("FiveThirtyEight. NFL forecasting game (2017).",),
    ),
    Source(
        "llm_token_confidence",
        "Questions answered by two sizes of Llama 3.1: the token probability of the answer given",
        "NoamMichael/Comparing-Confidence-in-LLMs",
        "560aae77b1",
        ("Combined Results/llm-confidence-correct.csv",),
        "token_confidences",
        9_245,
        "3314b1adb0bc7b472c8324d4eca7ee1f6c3222d5f191dd597bfc65d3126076cd",
        "MIT",
        ("N. Michael et al. Comparing confidence in LLMs (2025).",),
    ),
    Source(
        "cifar100_wideresnet_16_4_probs",
        "CIFAR-100: class probabilities of WideResNet-16-4, 10,000 rows by 100 classes",
        "EFS-OpenSource/calibration-framework",
        "d16fc717ad7611927547f6ad13ebc1331b7c877b",
        ("examples/classification/records/cifar100/wideresnet-16-4-cifar-100.npz",),
        "class_probabilities",
        10_000,
        "e7c818451a9d1d0905123ab593874ddbdf35c656b5fb9a947223465a20747cb6",
        "Apache-2.0",
        (_NETCAL,),
    ),
    Source(
        "cifar10_logits_val_test",
        "CIFAR-10: logits of DenseNet-40, 5,000 rows to fit on and 10,000 to test on",
        "zongyuange/Workshop-repository",
        "a6765b04cb6a1e8b8e36c1cc34d6f0370d240a10",
        ("sample_logits.p",),
        "pickled_logits",
        10_000,
        "4e27f2d71986ea5afbd869143417b9c41462b9cc1203d55121940618ec7235db",
        "none stated there; the values are those of markus93/NN_calibration, MIT",
        (_DENSENET,),
    ),
)

CATALOGUE: Mapping[str, Source] = {source.name: source for source in _ALL}
