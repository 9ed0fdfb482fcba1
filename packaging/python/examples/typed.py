"""A module as a function with pydantic classes, which are checked against its schema when it is loaded."""

from typing import Literal

from pydantic import BaseModel

import cogn


class TextIn(BaseModel):
    text: str
    labels: list[str] | None = None


class Label(BaseModel):
    rationale: str
    sentiment: Literal["positive", "negative", "neutral"]
    label: str


def main(runtime: cogn.Runtime | None = None) -> None:
    classify = cogn.module("text-classifier", input=TextIn, output=Label, runtime=runtime)
    try:
        label = classify(text="The delivery came two weeks late.", labels=["shipping", "billing"])
        print(label.sentiment, label.label)
    except cogn.Failure as failure:
        print(failure.code, failure.suggestion, failure.partial_data)


if __name__ == "__main__":
    main()
