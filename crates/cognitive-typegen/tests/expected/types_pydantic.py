# Written by `cogn types`. Do not edit: change schema.json and run it again.

from __future__ import annotations

from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field


class Meta(BaseModel):
    """Control plane: enough to route on without reading the data."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    # How sure the module is of having met its declared contract. Not a probability of being right.
    confidence: float
    # The share of answers with such a confidence that people found right, once there are enough decisions.
    calibrated_confidence: Union[float, None] = None
    # The harm that acting on the answer could do. `high` in a failure of the runtime means that nothing may act on it, and says nothing about the input.
    risk: Literal["none", "low", "medium", "high"]
    # One line for logs and review cards.
    explain: str
    # The id of the run in audit records and traces.
    trace_id: Union[str, None] = None
    # provider/model
    model: Union[str, None] = None
    # The time of the whole run in milliseconds, with checks, media, parts and waiting.
    latency_ms: Union[float, None] = None
    # The part of the run's `latency_ms` that was spent in calls of models.
    processing_time_ms: Union[int, None] = None
    # Tokens of all calls: `input_tokens`, `output_tokens`, `total_tokens`; with a price, `cost` in `currency`.
    usage: Any = None
    media_processed: Union[list[Any], None] = None
    media_validation: Union[dict[str, Any], None] = None
    confidence_aggregation: Union[Literal["mean", "min", "weighted_mean"], None] = None
    generation_quality: Union[MetaGenerationQuality, None] = None
    temporal_confidence: Union[MetaTemporalConfidence, None] = None
    warnings: Union[list[Any], None] = None


class MetaGenerationQuality(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    prompt_adherence: Union[float, None] = None
    aesthetic_score: Union[float, None] = None
    technical_quality: Union[float, None] = None


class MetaTemporalConfidence(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    overall: Union[float, None] = None
    segments: Union[list[Any], None] = None
    low_confidence_regions: Union[list[Any], None] = None


class ErrorInfo(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    # E1000 to E4014, E4100 and E4101 of this runtime, or the module's own. `cogn explain CODE`.
    code: str
    message: str
    recoverable: Union[bool, None] = None
    suggestion: Union[str, None] = None
    details: Union[dict[str, Any], None] = None


class Custom(BaseModel):
    """A value that is not in the list, with its reason."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    custom: str
    reason: str


class Failure(BaseModel):
    """A run that did not meet its contract."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    ok: Literal[False]
    meta: Meta
    error: ErrorInfo
    partial_data: Union[dict[str, Any], None] = None


# all-shapes 1.2.0


class AllShapesInput(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    # Ends a comment: * / and '''
    text: str
    first_name: str = Field(alias="first-name")
    class_: Union[str, None] = Field(default=None, alias="class")
    mood: Union[Literal["it's", "\"fine\""], None] = None
    limits: Union[dict[str, float], None] = None


class AllShapesData(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    rationale: str
    kind: Union[Literal["a", "b-c", "self"], Custom]
    level: Literal[1, 2, 3]
    chain: AllShapesDataChain
    either: Union[str, list[int], None] = None
    type: Union[Literal["x"], None] = None
    places: Union[list[AllShapesDataPlacesItem], None] = None
    anything: Any = None


class AllShapesNode(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    value: int
    next: Union[AllShapesNode, None] = None


class AllShapesDataChain(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    value: int
    next: Union[AllShapesNode, None] = None


class AllShapesDataPlacesItem(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    line: int


class AllShapesSuccess(BaseModel):
    """A run that met its contract."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    ok: Literal[True]
    meta: Meta
    data: AllShapesData


AllShapesEnvelope = Union[AllShapesSuccess, Failure]
