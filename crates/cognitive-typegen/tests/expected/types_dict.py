# Written by `cogn types`. Do not edit: change schema.json and run it again.

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, Union


class Meta(TypedDict):
    """Control plane: enough to route on without reading the data."""

    # How sure the module is of having met its declared contract. Not a probability of being right.
    confidence: float
    # The share of answers with such a confidence that people found right, once there are enough decisions.
    calibrated_confidence: NotRequired[float]
    # The harm that acting on the answer could do. `high` in a failure of the runtime means that nothing may act on it, and says nothing about the input.
    risk: Literal["none", "low", "medium", "high"]
    # One line for logs and review cards.
    explain: str
    # The id of the run in audit records and traces.
    trace_id: NotRequired[str]
    # provider/model
    model: NotRequired[str]
    # The time of the whole run in milliseconds, with checks, media, parts and waiting.
    latency_ms: NotRequired[float]
    # The part of the run's `latency_ms` that was spent in calls of models.
    processing_time_ms: NotRequired[int]
    # Tokens of all calls: `input_tokens`, `output_tokens`, `total_tokens`; with a price, `cost` in `currency`.
    usage: NotRequired[Any]
    media_processed: NotRequired[list[Any]]
    media_validation: NotRequired[dict[str, Any]]
    confidence_aggregation: NotRequired[Literal["mean", "min", "weighted_mean"]]
    generation_quality: NotRequired[MetaGenerationQuality]
    temporal_confidence: NotRequired[MetaTemporalConfidence]
    warnings: NotRequired[list[Any]]


class MetaGenerationQuality(TypedDict):
    prompt_adherence: NotRequired[float]
    aesthetic_score: NotRequired[float]
    technical_quality: NotRequired[float]


class MetaTemporalConfidence(TypedDict):
    overall: NotRequired[float]
    segments: NotRequired[list[Any]]
    low_confidence_regions: NotRequired[list[Any]]


class ErrorInfo(TypedDict):
    # E1000 to E4014, E4100 and E4101 of this runtime, or the module's own. `cogn explain CODE`.
    code: str
    message: str
    recoverable: NotRequired[bool]
    suggestion: NotRequired[str]
    details: NotRequired[dict[str, Any]]


class Custom(TypedDict):
    """A value that is not in the list, with its reason."""

    custom: str
    reason: str


class Failure(TypedDict):
    """A run that did not meet its contract."""

    ok: Literal[False]
    meta: Meta
    error: ErrorInfo
    partial_data: NotRequired[Union[dict[str, Any], None]]


# all-shapes 1.2.0


AllShapesInput = TypedDict(
    "AllShapesInput",
    {
        "text": "str",
        "first-name": "str",
        "class": NotRequired["Union[str, None]"],
        "mood": NotRequired["Literal[\"it's\", \"\\\"fine\\\"\"]"],
        "limits": NotRequired["dict[str, float]"],
    },
)


class AllShapesData(TypedDict):
    rationale: str
    kind: Union[Literal["a", "b-c", "self"], Custom]
    level: Literal[1, 2, 3]
    chain: AllShapesDataChain
    either: NotRequired[Union[str, list[int]]]
    type: NotRequired[Literal["x"]]
    places: NotRequired[list[AllShapesDataPlacesItem]]
    anything: NotRequired[Any]


class AllShapesNode(TypedDict):
    value: int
    next: NotRequired[AllShapesNode]


class AllShapesDataChain(TypedDict):
    value: int
    next: NotRequired[AllShapesNode]


class AllShapesDataPlacesItem(TypedDict):
    line: int


class AllShapesSuccess(TypedDict):
    """A run that met its contract."""

    ok: Literal[True]
    meta: Meta
    data: AllShapesData


AllShapesEnvelope = Union[AllShapesSuccess, Failure]
