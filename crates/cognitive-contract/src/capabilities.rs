//! The capabilities that a runtime publishes (CAP-001), and the fallback when a caller asks for more (CAP-010,
//! EXT-NEG).
//! Knows no provider: the media kinds of a provider are passed in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::ErrorCode;
use crate::manifest::Mode;
use crate::media::{Category, MediaLimits};
use crate::meta::Warning;

/// The versions of the specification that modules and envelopes may follow. "2.1" is supported in compatibility
/// mode.
pub const SPEC_VERSIONS: [&str; 3] = ["2.5", "2.2", "2.1"];

/// The capabilities of a runtime. An operator may disable some of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Capabilities {
    /// True if answers can be streamed.
    pub streaming: bool,
    /// Supported kinds of input and output media.
    pub multimodal: Multimodal,
    /// The size limit of a media item.
    pub max_media_size_mb: f64,
    /// The stream transports: `sse`, `websocket`, `ndjson`.
    pub supported_transports: Vec<String>,
}

/// Kinds of media: `image`, `audio`, `video`, `document`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Multimodal {
    /// Kinds that a module accepts.
    pub input: Vec<String>,
    /// Kinds that a module can produce.
    pub output: Vec<String>,
}

impl Default for Capabilities {
    /// Streaming over every transport, and no media.
    fn default() -> Self {
        Self {
            streaming: true,
            multimodal: Multimodal::default(),
            max_media_size_mb: 0.0,
            supported_transports: ["sse", "websocket", "ndjson"].map(str::to_owned).to_vec(),
        }
    }
}

/// The form of the answer that the caller requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedAnswer {
    /// One envelope.
    Sync,
    /// A stream of chunks.
    Streaming,
}

/// The result of the negotiation between caller, module and runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiation {
    /// True if the answer is streamed.
    pub streaming: bool,
    /// Set if the caller gets another form than requested.
    pub warning: Option<Warning>,
}

impl Capabilities {
    /// Enables media up to the size limit: all kinds as input, all but documents as output.
    pub fn take_media(&mut self, limits: &MediaLimits) {
        let words = |kinds: &[Category]| kinds.iter().map(|kind| kind.word().to_owned()).collect();
        let given = [Category::Image, Category::Audio, Category::Video];
        self.multimodal = Multimodal { input: words(&Category::ALL), output: words(&given) };
        // The unit is 1,048,576 bytes. (C-40)
        self.max_media_size_mb = f64::from(u32::try_from(limits.largest >> 10).unwrap_or(u32::MAX)) / 1024.0;
    }

    /// Restricts the media kinds to those that a provider accepts and produces. Documents remain, because every
    /// model receives them as text. (CAP-002)
    #[must_use]
    pub fn with_provider(
        mut self,
        takes: impl Fn(Category) -> bool,
        gives: impl Fn(Category) -> bool,
    ) -> Self {
        let named = |word: &str| Category::ALL.into_iter().find(|category| category.word() == word);
        let reaches = |category| category == Category::Document || takes(category);
        self.multimodal.input.retain(|word| named(word).is_some_and(reaches));
        self.multimodal.output.retain(|word| named(word).is_some_and(&gives));
        self
    }

    /// Returns whether this stream transport is supported: `sse`, `websocket` or `ndjson`.
    #[must_use]
    pub fn carries(&self, transport: &str) -> bool {
        self.streaming && self.supported_transports.iter().any(|each| each == transport)
    }

    /// Decides whether the answer is streamed (STREAM-021, CAP-010). If the requested form is not available,
    /// the caller gets the other form with a warning. Streaming is opt-in: without a request the answer is one
    /// envelope without a warning, even if the module streams (D-14).
    #[must_use]
    pub fn agree(&self, module: Mode, wanted: Option<WantedAnswer>, transport: &str) -> Negotiation {
        let why = match (wanted, module) {
            (Some(WantedAnswer::Streaming), _) if !self.carries(transport) => {
                Some("this runtime does not support this way of streaming")
            }
            (Some(WantedAnswer::Streaming), Mode::Sync) => Some("the module does not stream"),
            (Some(WantedAnswer::Sync), Mode::Streaming) => {
                Some("the module streams; its stream was collected")
            }
            (Some(WantedAnswer::Streaming), Mode::Streaming | Mode::Both)
            | (Some(WantedAnswer::Sync), Mode::Sync | Mode::Both)
            | (None, _) => None,
        };
        let warning = why.map(|why| {
            Warning::new(
                ErrorCode::StreamingNotSupported.number(),
                format!("{why}; the answer is synchronous"),
            )
        });
        Negotiation { streaming: wanted == Some(WantedAnswer::Streaming) && warning.is_none(), warning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // EXT-NEG: the whole table.
    #[test]
    fn stream_021_ext_neg_who_gets_a_stream() {
        use WantedAnswer::{Streaming, Sync};
        let table = [
            (Mode::Both, Some(Streaming), true, false),
            (Mode::Both, Some(Sync), false, false),
            (Mode::Both, None, false, false),
            (Mode::Streaming, Some(Streaming), true, false),
            (Mode::Streaming, Some(Sync), false, true),
            (Mode::Streaming, None, false, false),
            (Mode::Sync, Some(Streaming), false, true),
            (Mode::Sync, Some(Sync), false, false),
            (Mode::Sync, None, false, false),
        ];
        for (module, wanted, streaming, warned) in table {
            let agreed = Capabilities::default().agree(module, wanted, "sse");
            assert_eq!(
                (agreed.streaming, agreed.warning.is_some()),
                (streaming, warned),
                "{module:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn cap_010_a_runtime_without_streams_answers_all_the_same_and_says_so() {
        let none = Capabilities { streaming: false, ..Capabilities::default() };
        let agreed = none.agree(Mode::Both, Some(WantedAnswer::Streaming), "sse");
        assert!(!agreed.streaming);
        assert_eq!(agreed.warning.unwrap().code, "E4010");
        assert_eq!(none.agree(Mode::Both, None, "sse").warning, None);
        let lines =
            Capabilities { supported_transports: vec!["ndjson".to_owned()], ..Capabilities::default() };
        assert!(lines.agree(Mode::Both, Some(WantedAnswer::Streaming), "ndjson").streaming);
        assert!(lines.agree(Mode::Both, Some(WantedAnswer::Streaming), "sse").warning.is_some());
    }
}
