//! The dimensions of a model: layers, widths, heads and rotation. Refuses impossible values, and variants that would be
//! computed wrongly.

use super::WeightsError;
use super::architectures::{self, Architecture};
use super::attention::Heads;
use super::gguf::{Gguf, Value, damaged_error, unsupported_error};
use super::tiles::COLUMNS;

/// The limit for the context length. No model of a size that this engine computes was trained for more.
const MAX_CONTEXT_LENGTH: usize = 1 << 20;

/// The dimensions of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelShape {
    pub(super) architecture: &'static Architecture,
    pub(super) layers: usize,
    /// The length of the vector of a token.
    pub(super) width: usize,
    /// The length inside the feed-forward part.
    pub(super) hidden: usize,
    pub(super) heads: Heads,
    pub(super) context: usize,
    /// The base of the rotation frequencies.
    pub(super) rope_base: f32,
    /// The factor for positions before they become angles.
    pub(super) rope_scale: f32,
    /// The number of positions that layers with a window see, the token itself included; `None` without such layers.
    window: Option<usize>,
    /// Keeps the norm from dividing by zero.
    pub(super) epsilon: f32,
}

impl ModelShape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
        let settings = ShapeSettings { gguf, architecture: architectures::find(gguf)? };
        settings.refuse_variants()?;
        let (width, queries) =
            (settings.number("embedding_length")?, settings.number("attention.head_count")?);
        let heads = settings.heads(width, queries)?;
        let epsilon = settings.positive("attention.layer_norm_rms_epsilon", None)?;
        Ok(Self {
            architecture: settings.architecture,
            layers: settings.number("block_count")?,
            width,
            hidden: settings.number("feed_forward_length")?,
            heads,
            context: settings.number("context_length")?.min(MAX_CONTEXT_LENGTH),
            rope_base: settings.positive("rope.freq_base", Some(10_000.0))?,
            rope_scale: settings.rope_scale()?,
            window: settings.window()?,
            epsilon,
        })
    }

    /// Returns the number of positions that a layer sees, the token itself included; `None` if it sees everything.
    pub(super) fn window(&self, layer: usize) -> Option<usize> {
        let local = self.architecture.local?;
        self.window.filter(|_| layer % local.period + 1 < local.period)
    }

    /// Returns the number of values in the matrices of all layers and of a vocabulary with this many tokens.
    pub(super) fn parameters(&self, tokens: usize) -> u64 {
        let attention = 2 * self.width * (self.query_width() + self.key_width());
        let layer = attention + 3 * self.width * self.hidden;
        (self.width * tokens + self.layers * layer) as u64
    }

    /// The length of the queries of a token.
    pub(super) fn query_width(&self) -> usize {
        self.heads.queries * self.heads.width
    }

    /// The length of the keys of a token, and of its values.
    pub(super) fn key_width(&self) -> usize {
        self.heads.keys * self.heads.width
    }

    /// The factor for queries.
    #[expect(clippy::cast_precision_loss, reason = "no head is wide enough to lose a digit")]
    pub(super) fn query_scale(&self) -> f32 {
        1.0 / ((self.architecture.attention_width)(self.layers, self.width, self.heads) as f32).sqrt()
    }
}

/// The settings of a file whose names start with the architecture.
struct ShapeSettings<'a> {
    gguf: &'a Gguf<'a>,
    architecture: &'static Architecture,
}

impl ShapeSettings<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.name)
    }

    fn number(&self, name: &str) -> Result<usize, WeightsError> {
        let key = self.key(name);
        let value = self.gguf.whole_number(&key).filter(|value| (1..1 << 24).contains(value));
        value.ok_or_else(|| damaged_error(&format!("the value `{key}` is missing or out of range")))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a setting, given with few digits")]
    fn positive(&self, name: &str, otherwise: Option<f32>) -> Result<f32, WeightsError> {
        let key = self.key(name);
        let value = match self.gguf.value(&key) {
            None => otherwise,
            Some(Value::Float(value)) => Some(value as f32),
            Some(_) => None,
        };
        let value = value.filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or_else(|| damaged_error(&format!("the value `{key}` is missing or out of range")))
    }

    fn heads(&self, width: usize, queries: usize) -> Result<Heads, WeightsError> {
        let keys = self.number("attention.head_count_kv")?;
        let own_width = self.gguf.value(&self.key("attention.key_length")).is_some();
        let head = if own_width { self.number("attention.key_length")? } else { width / queries };
        if (!own_width && !width.is_multiple_of(queries)) || !queries.is_multiple_of(keys) {
            return Err(damaged_error("the number of heads does not divide the width"));
        }
        if !head.is_multiple_of(COLUMNS) || head == 0 {
            return Err(unsupported_error(&format!(
                "unsupported head width: {head} is not a multiple of 32"
            )));
        }
        if queries.checked_mul(head).is_none_or(|all| all >= 1 << 24) {
            return Err(damaged_error("the heads are too wide"));
        }
        for name in ["rope.dimension_count", "attention.value_length"] {
            let key = self.key(name);
            if self.gguf.whole_number(&key).is_some_and(|value| value != head) {
                return Err(unsupported_error(&format!(
                    "the value `{key}` differs from the width of a head"
                )));
            }
        }
        Ok(Heads { queries, keys, width: head })
    }

    /// Returns the factor for positions. Only linear scaling is supported; every other kind would be computed wrongly.
    fn rope_scale(&self) -> Result<f32, WeightsError> {
        match self.gguf.text(&self.key("rope.scaling.type")) {
            None | Some("none") => Ok(1.0),
            Some("linear") => Ok(1.0 / self.positive("rope.scaling.factor", None)?),
            Some(other) => Err(unsupported_error(&format!("unsupported scaling of the rotation: `{other}`"))),
        }
    }

    fn window(&self) -> Result<Option<usize>, WeightsError> {
        let key = "attention.sliding_window";
        match (self.architecture.local, self.gguf.value(&self.key(key))) {
            (Some(_), Some(_)) => self.number(key).map(Some),
            _ => Ok(None),
        }
    }

    /// Refuses variants of the architecture that would be computed wrongly.
    fn refuse_variants(&self) -> Result<(), WeightsError> {
        if self.gguf.whole_number(&self.key("expert_count")).is_some_and(|count| count > 0) {
            return Err(unsupported_error("unsupported model: a mixture of experts"));
        }
        if self.gguf.value(&self.key("final_logit_softcapping")).is_some() {
            return Err(unsupported_error("unsupported model: its logits are capped"));
        }
        let period = self.gguf.value(&self.key("attention.sliding_window_pattern"));
        if period.is_some()
            && period != self.architecture.local.map(|local| Value::Unsigned(local.period as u64))
        {
            return Err(unsupported_error("the layers with a window are in an unknown order"));
        }
        Ok(())
    }
}
