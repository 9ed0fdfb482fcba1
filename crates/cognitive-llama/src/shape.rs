//! The numbers that describe a model: how many layers, how wide, how its heads lie and how they are turned. Refuses what
//! makes no sense, and variants that would be computed wrongly.

use super::WeightsError;
use super::architectures::{self, Architecture};
use super::attention::Heads;
use super::gguf::{Gguf, Value, damaged, unsupported};
use super::tiles::COLUMNS;

/// A context longer than this is cut: no model of a size that this engine computes was trained for more.
const MAX_CONTEXT_LENGTH: usize = 1 << 20;

/// The numbers that describe the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelShape {
    pub(super) architecture: &'static Architecture,
    pub(super) layers: usize,
    /// The length of a token's vector.
    pub(super) width: usize,
    /// The length inside the feed-forward part.
    pub(super) hidden: usize,
    pub(super) heads: Heads,
    pub(super) context: usize,
    /// The base of the rotation frequencies.
    pub(super) rope_base: f32,
    /// What positions are multiplied with before they become angles.
    pub(super) rope_scale: f32,
    /// How far layers with a window look back, themselves included; nothing if none has one.
    window: Option<usize>,
    /// Keeps the norm from dividing by zero.
    pub(super) epsilon: f32,
}

impl ModelShape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self, WeightsError> {
        let settings = ShapeSettings { gguf, architecture: architectures::of(gguf)? };
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

    /// How far a layer looks back, itself included; nothing for a layer that sees everything.
    pub(super) fn window(&self, layer: usize) -> Option<usize> {
        let local = self.architecture.local?;
        self.window.filter(|_| layer % local.period + 1 < local.period)
    }

    /// How many numbers the matrices of all layers have, with a vocabulary of so many tokens.
    pub(super) fn parameters(&self, tokens: usize) -> u64 {
        let attention = 2 * self.width * (self.query_width() + self.key_width());
        let layer = attention + 3 * self.width * self.hidden;
        (self.width * tokens + self.layers * layer) as u64
    }

    /// How long the queries of a token are.
    pub(super) fn query_width(&self) -> usize {
        self.heads.queries * self.heads.width
    }

    /// How long the keys of a token are, and its values.
    pub(super) fn key_width(&self) -> usize {
        self.heads.keys * self.heads.width
    }

    /// What queries are multiplied with.
    #[expect(clippy::cast_precision_loss, reason = "no head is wide enough to lose a digit")]
    pub(super) fn query_scale(&self) -> f32 {
        1.0 / ((self.architecture.attention_width)(self.layers, self.width, self.heads) as f32).sqrt()
    }
}

/// The settings of a file that begin with the name of its architecture.
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
        let value = self.gguf.whole(&key).filter(|value| (1..1 << 24).contains(value));
        value.ok_or_else(|| damaged(&format!("the value `{key}` is missing or out of range")))
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
        value.ok_or_else(|| damaged(&format!("the value `{key}` is missing or out of range")))
    }

    fn heads(&self, width: usize, queries: usize) -> Result<Heads, WeightsError> {
        let keys = self.number("attention.head_count_kv")?;
        let own_width = self.gguf.value(&self.key("attention.key_length")).is_some();
        let head = if own_width { self.number("attention.key_length")? } else { width / queries };
        if (!own_width && !width.is_multiple_of(queries)) || !queries.is_multiple_of(keys) {
            return Err(damaged("the heads do not divide the width"));
        }
        if !head.is_multiple_of(COLUMNS) || head == 0 {
            return Err(unsupported(&format!("a head is {head} wide, no multiple of 32")));
        }
        if queries.checked_mul(head).is_none_or(|all| all >= 1 << 24) {
            return Err(damaged("the heads are too wide"));
        }
        for name in ["rope.dimension_count", "attention.value_length"] {
            let key = self.key(name);
            if self.gguf.whole(&key).is_some_and(|value| value != head) {
                return Err(unsupported(&format!("the value `{key}` differs from the width of a head")));
            }
        }
        Ok(Heads { queries, keys, width: head })
    }

    /// Positions may be drawn together evenly; every other way of stretching a context would be computed wrongly.
    fn rope_scale(&self) -> Result<f32, WeightsError> {
        match self.gguf.text(&self.key("rope.scaling.type")) {
            None | Some("none") => Ok(1.0),
            Some("linear") => Ok(1.0 / self.positive("rope.scaling.factor", None)?),
            Some(other) => Err(unsupported(&format!("the rotation is scaled by the rule `{other}`"))),
        }
    }

    fn window(&self) -> Result<Option<usize>, WeightsError> {
        let key = "attention.sliding_window";
        match (self.architecture.local, self.gguf.value(&self.key(key))) {
            (Some(_), Some(_)) => self.number(key).map(Some),
            _ => Ok(None),
        }
    }

    /// Variants of the architecture that would be computed wrongly.
    fn refuse_variants(&self) -> Result<(), WeightsError> {
        if self.gguf.whole(&self.key("expert_count")).is_some_and(|count| count > 0) {
            return Err(unsupported("the model is a mixture of experts"));
        }
        if self.gguf.value(&self.key("final_logit_softcapping")).is_some() {
            return Err(unsupported("the logits are capped"));
        }
        let period = self.gguf.value(&self.key("attention.sliding_window_pattern"));
        if period.is_some()
            && period != self.architecture.local.map(|local| Value::Unsigned(local.period as u64))
        {
            return Err(unsupported("the layers with a window are in an unknown order"));
        }
        Ok(())
    }
}
