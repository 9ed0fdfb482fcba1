//! Written by `cogn types`. Do not edit: change schema.json and run it again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MetaRiskKnown {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "low")]
    Low,
    #[serde(rename = "medium")]
    Medium,
    #[serde(rename = "high")]
    High,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MetaConfidenceAggregationKnown {
    #[serde(rename = "mean")]
    Mean,
    #[serde(rename = "min")]
    Min,
    #[serde(rename = "weighted_mean")]
    WeightedMean,
}

/// Control plane: enough to route on without reading the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// How sure the module is of having met its declared contract. Not a probability of being right.
    pub confidence: f64,
    /// The share of answers with such a confidence that people found right, once there are enough decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_confidence: Option<f64>,
    /// The harm that acting on the answer could do. `high` in a failure of the runtime means that nothing may act on it, and says nothing about the input.
    pub risk: MetaRiskKnown,
    /// One line for logs and review cards.
    pub explain: String,
    /// The id of the run in audit records and traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// provider/model
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time of the whole run in milliseconds, with checks, media, parts and waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    /// The part of the run's `latency_ms` that was spent in calls of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing_time_ms: Option<i64>,
    /// Tokens of all calls: `input_tokens`, `output_tokens`, `total_tokens`; with a price, `cost` in `currency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_processed: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_validation: Option<BTreeMap<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_aggregation: Option<MetaConfidenceAggregationKnown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_quality: Option<MetaGenerationQuality>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporal_confidence: Option<MetaTemporalConfidence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Value>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetaGenerationQuality {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_adherence: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aesthetic_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technical_quality: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetaTemporalConfidence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_confidence_regions: Option<Vec<Value>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// E1000 to E4014, E4100 and E4101 of this runtime, or the module's own. `cogn explain CODE`.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<BTreeMap<String, Value>>,
}

/// A value that is not in the list, with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    pub custom: String,
    pub reason: String,
}

/// A run that met its contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Success<Data> {
    pub ok: bool,
    pub meta: Meta,
    pub data: Data,
}

/// A run that did not meet its contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub ok: bool,
    pub meta: Meta,
    pub error: ErrorInfo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_data: Option<Value>,
}

/// What every run answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Envelope<Data> {
    Success(Success<Data>),
    Failure(Failure),
}

// all-shapes 1.2.0

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AllShapesInputMoodKnown {
    #[serde(rename = "it's")]
    ItS,
    #[serde(rename = "\"fine\"")]
    Fine,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllShapesInput {
    /// Ends a comment: * / and '''
    pub text: String,
    #[serde(rename = "first-name")]
    pub first_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mood: Option<AllShapesInputMoodKnown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, f64>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AllShapesDataKindKnown {
    #[serde(rename = "a")]
    A,
    #[serde(rename = "b-c")]
    BC,
    #[serde(rename = "self")]
    Value3,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllShapesDataKindChoice {
    Known(AllShapesDataKindKnown),
    Custom(Custom),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllShapesDataEitherChoice {
    Text(String),
    List(Vec<i64>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AllShapesDataTypeKnown {
    #[serde(rename = "x")]
    X,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllShapesData {
    pub rationale: String,
    pub kind: AllShapesDataKindChoice,
    pub level: i64,
    pub chain: AllShapesDataChain,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub either: Option<AllShapesDataEitherChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<AllShapesDataTypeKnown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<Vec<AllShapesDataPlacesItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anything: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllShapesNode {
    pub value: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<AllShapesNode>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllShapesDataChain {
    pub value: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<AllShapesNode>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllShapesDataPlacesItem {
    pub line: i64,
}

pub type AllShapesEnvelope = Envelope<AllShapesData>;
