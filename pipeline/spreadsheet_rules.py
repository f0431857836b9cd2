"""msprobe's verdict on each row of its comparison: pass, warning or error, and why.

The rules, their order and their thresholds are those of msprobe 26.2. They look at the inputs of a
call beside its outputs; no rule flags an input for being different.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

CALL = ["step", "target_seq", "bench_seq"]
NO_BENCH = "No bench data matched."
WILD = ["nan", "inf", "-inf"]

READ, MADE = ~pl.col("output"), pl.col("output")
JUDGED = MADE & ~pl.col("skipped")
FIRST = JUDGED & (MADE.cum_sum().over(CALL) == 1)
MATCHED = pl.col("name").is_not_null() & pl.col("bench_name").is_not_null()


class Rule(NamedTuple):
    """One rule: in which modes it holds, what it adds to a row, and when."""

    modes: tuple[str, ...]
    level: str
    text: str
    holds: pl.Expr


def _differ(column: str) -> pl.Expr:
    return pl.col(column) != pl.col(f"bench_{column}")


def _wild(prefix: str) -> pl.Expr:
    return pl.col(f"{prefix}max").is_in(WILD) | pl.col(f"{prefix}min").is_in(WILD)


def _lowest(column: str, side: pl.Expr) -> pl.Expr:
    return pl.col(column).filter(side).min().over(CALL).fill_null(1)


NORM = pl.col("norm_error")
NORM_READ = NORM.filter(READ).max().over(CALL).fill_null(0)
NORM_MADE = NORM.filter(MADE).max().over(CALL)
VALUES = ("statistics", "tensor")

RULES = (
    Rule(
        VALUES, "error", "There is nan/inf/-inf in the maximum or minimum value of NPU.",
        ~pl.col("skipped") & _wild("") & ~_wild("bench_"),
    ),
    Rule(
        ("statistics",), "error",
        "The norm relative error of the input is below 0.1, that of the output above 0.5.",
        JUDGED & (NORM_READ < 0.1) & (NORM > 0.5),
    ),
    Rule(
        ("tensor",), "error",
        "The one thousandth ratio of the input is above 0.9, that of the output below 0.1.",
        FIRST & (_lowest("thousandth", READ) > 0.9) & (_lowest("thousandth", MADE) < 0.1),
    ),
    Rule(
        VALUES, "error", "The requires_grad of NPU and Bench are inconsistent.",
        MATCHED & (pl.col("consistent") == "False"),
    ),
    Rule(
        VALUES, "error", "The scalar of NPU and Bench are inconsistent.",
        pl.col("plain") & _differ("max"),
    ),
    Rule(VALUES, "error", "The dtype of NPU and Bench are inconsistent.", _differ("dtype")),
    Rule(VALUES, "error", "The shape of NPU and Bench are inconsistent.", _differ("shape")),
    Rule(
        ("statistics",), "warning",
        "The norm relative error of output is 10 times that of input.",
        FIRST
        & pl.when(NORM_READ > 0).then(NORM_MADE > 10 * NORM_READ).otherwise(NORM_MADE > 0.1),
    ),
    Rule(
        ("tensor",), "warning",
        "The cosine of the output is lower than that of the input by more than 0.1.",
        FIRST
        & (_lowest("cosine", READ) > 0.9)
        & (_lowest("cosine", READ) - _lowest("cosine", MADE) > 0.1),
    ),
    Rule(
        ("md5",), "error", "The CRC-32 value of NPU differs from that of the bench.",
        _differ("checksum"),
    ),
)  # fmt: skip


def judged(rows: pl.DataFrame, mode: str) -> pl.DataFrame:
    """Return the rows with `result` and `messages`, a JSON list of all rules that hold.

    Args:
        rows: of diff/spreadsheet, with their differences.
        mode: statistics, tensor or md5.
    """
    rules = [rule for rule in RULES if mode in rule.modes]
    names = [f"rule{place}" for place in range(len(rules))]
    rows = rows.with_columns(
        rule.holds.fill_null(False).alias(name) for name, rule in zip(names, rules, strict=True)
    )
    told = [
        pl.when(pl.col(name)).then(pl.lit(f'"{rule.level}: {rule.text}"'))
        for name, rule in zip(names, rules, strict=True)
    ]
    errors, warnings = (
        pl.any_horizontal(
            pl.lit(False), *(n for n, rule in zip(names, rules, strict=True) if rule.level == level)
        )
        for level in ("error", "warning")
    )
    messages = pl.concat_list(told).list.drop_nulls().list.join(", ")
    return rows.with_columns(
        pl.when(~MATCHED)
        .then(None)
        .when(errors)
        .then(pl.lit("error"))
        .when(warnings)
        .then(pl.lit("warning"))
        .otherwise(pl.lit("pass"))
        .alias("result"),
        pl.when(~MATCHED)
        .then(pl.lit(NO_BENCH))
        .otherwise(pl.concat_str(pl.lit("["), messages, pl.lit("]")))
        .alias("messages"),
    )
