"""What `--help` shows of every verb: commands that can be copied."""

from __future__ import annotations

__all__ = ["EXAMPLES"]

EXAMPLES = {
    "assess": [
        "calibrant assess preds.csv",
        "calibrant assess preds.parquet --prob p --label y --by model --fail-above 0.05",
        "calibrant assess answers.jsonl --by model",
        "calibrant assess preds.csv --profile clinical --thresholds 0.1,0.2",
    ],
    "plot": [
        "calibrant plot preds.csv -o diagram.svg",
        "calibrant plot preds.parquet --by model --layout grid -o models.png",
    ],
    "report": [
        "calibrant report preds.parquet --by model -o report.html --open",
        "calibrant report preds.csv -o report.md",
    ],
    "decide": ["calibrant decide preds.csv --thresholds 0.1,0.2,0.3 -o curve.svg"],
    "compare": [
        "calibrant compare preds.csv --prob model_a --prob model_b",
        "calibrant compare preds.parquet --by model --on question_id",
    ],
    "certify": [
        "calibrant certify answers.jsonl --risk 0.1",
        "calibrant certify preds.parquet --prob p --label y --side both --risk 0.05",
    ],
    "selective": [
        "calibrant selective answers.jsonl --by model",
        "calibrant selective preds.parquet -o curve.svg",
    ],
    "scan": [
        "calibrant scan 'logs/*.parquet' --by model -o today.parquet",
        "calibrant scan big/ -o big.parquet --checkpoint big.progress",
    ],
    "merge": ["calibrant merge monday.parquet tuesday.parquet -o week.parquet"],
    "recalibrate": [
        "calibrant recalibrate train.csv -o map.json --picture map.svg",
        "calibrant recalibrate new.csv --apply map.json -o better.csv",
    ],
    "monitor": ["calibrant monitor today.parquet --state watch.json --fail-on-alarm"],
    "sql": [
        "calibrant sql analytics.predictions --by model --dialect bigquery",
        "calibrant sql analytics.predictions --apply map.json --dialect bigquery",
    ],
    "demo": ["calibrant demo"],
    "datasets": ["calibrant datasets", "calibrant datasets imagenet_resnet34 -o resnet.parquet"],
}
