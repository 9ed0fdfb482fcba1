//! The error codes: number, name, aliases, responsible party and envelope defaults. Codes below E4100 are
//! published; those from E4100 on belong to this runtime.
//! Knows no causes: the caller picks an entry and adds a message.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::risk_level::Risk;

/// The part of a run that a code belongs to: the first digit of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorLayer {
    /// E1xxx: the caller's request (and, for E1000, text that is not JSON).
    Input,
    /// E2xxx: processing, while the model worked.
    Processing,
    /// E3xxx: the model's answer.
    Output,
    /// E4xxx: the runtime and its environment.
    Runtime,
}

/// The party that has to act on an error. `explain` of every error made by the runtime starts with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// The request is wrong; sending it again unchanged is pointless.
    Caller,
    /// The model's answer is wrong or missing.
    Model,
    /// The service behind the model failed.
    Provider,
    /// The module folder itself is wrong.
    Module,
    /// This runtime.
    Runtime,
    /// The operator: one of their configuration files is unusable.
    Operator,
    /// No party: the caller cancelled the run.
    Nobody,
}

impl Blame {
    /// Returns the words that open `meta.explain`.
    #[must_use]
    pub fn opening(self) -> &'static str {
        match self {
            Self::Caller => "Input validation failed",
            Self::Model => "Model answer rejected",
            Self::Provider => "Provider failed",
            Self::Module => "Module is invalid",
            Self::Runtime => "Runtime refused or failed",
            Self::Operator => "Configuration is invalid",
            Self::Nobody => "Cancelled by the caller",
        }
    }
}

/// The confidence that the runtime writes into its own errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DefaultConfidence {
    /// Zero, because nothing is known about the answer.
    Zero,
    /// The confidence stated by the model, which did answer (E2001).
    OfTheModel,
}

struct Entry {
    number: &'static str,
    name: &'static str,
    aliases: &'static [&'static str],
    blame: Blame,
    recoverable: bool,
    risk: Risk,
    confidence: DefaultConfidence,
    meaning: &'static str,
}

// One line per code below. The macro expands it into the enum, the list and the table.
macro_rules! catalogue {
    ($($variant:ident $number:literal $name:literal [$($alias:literal),*] $blame:ident $recoverable:literal $risk:ident $confidence:ident $meaning:literal)*) => {
        /// Every code this runtime can write. Codes E5000–E9999 belong to modules and pass through as text.
        ///
        /// Exhaustive on purpose: a table of another crate, such as the HTTP status of each code, does not compile while a new
        /// code is missing in it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $(#[doc = concat!($number, " ", $name, ": ", $meaning)] $variant,)*
        }

        const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

        impl ErrorCode {
            fn entry(self) -> Entry {
                match self {
                    $(Self::$variant => Entry {
                        number: $number,
                        name: $name,
                        aliases: &[$($alias),*],
                        blame: Blame::$blame,
                        recoverable: $recoverable,
                        risk: Risk::$risk,
                        confidence: DefaultConfidence::$confidence,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    ParseError "E1000" "PARSE_ERROR" [] Model false High Zero "text that should be JSON could not be parsed"
    InvalidInput "E1001" "INVALID_INPUT" ["VALIDATION_ERROR"] Caller true High Zero "the input does not match the module's input schema"
    MissingRequiredField "E1002" "MISSING_REQUIRED_FIELD" [] Caller true High Zero "a required field is missing"
    TypeMismatch "E1003" "TYPE_MISMATCH" [] Caller true High Zero "a field has the wrong type"
    UnsupportedValue "E1004" "UNSUPPORTED_VALUE" ["UNSUPPORTED_LANGUAGE"] Caller true High Zero "a value is not supported"
    InputTooLarge "E1005" "INPUT_TOO_LARGE" [] Caller true High Zero "the input exceeds the module's token budget"
    InvalidReference "E1006" "INVALID_REFERENCE" [] Caller true High Zero "a referenced resource does not exist"
    UnsupportedMediaType "E1010" "UNSUPPORTED_MEDIA_TYPE" [] Caller true High Zero "the module does not accept this media type"
    MediaTooLarge "E1011" "MEDIA_TOO_LARGE" [] Caller true High Zero "a media item exceeds its size or duration limit"
    MediaFetchFailed "E1012" "MEDIA_FETCH_FAILED" [] Caller true High Zero "a media item could not be fetched"
    MediaDecodeFailed "E1013" "MEDIA_DECODE_FAILED" [] Caller true High Zero "a media item could not be decoded"
    MediaTypeMismatch "E1014" "MEDIA_TYPE_MISMATCH" [] Caller true High Zero "the bytes of a media item disagree with its declared type"
    MediaDimensionExceeded "E1015" "MEDIA_DIMENSION_EXCEEDED" [] Caller true High Zero "an image or video exceeds the maximum width or height"
    MediaDimensionTooSmall "E1016" "MEDIA_DIMENSION_TOO_SMALL" [] Caller true High Zero "an image is below the minimum size"
    MediaPixelLimit "E1017" "MEDIA_PIXEL_LIMIT" [] Caller true High Zero "an image has too many pixels"
    UploadExpired "E1018" "UPLOAD_EXPIRED" [] Caller true High Zero "an upload reference has expired"
    UploadNotFound "E1019" "UPLOAD_NOT_FOUND" [] Caller true High Zero "an upload reference is unknown"
    ChecksumMismatch "E1020" "CHECKSUM_MISMATCH" [] Caller true High Zero "a media item does not match its checksum"
    LowConfidence "E2001" "LOW_CONFIDENCE" [] Model true Medium OfTheModel "the confidence is below the minimum of the tier"
    Timeout "E2002" "TIMEOUT" [] Provider true High Zero "the time limit was exceeded"
    TokenLimit "E2003" "TOKEN_LIMIT" [] Model true Medium Zero "the answer was cut off by the token limit"
    NoActionPossible "E2004" "NO_ACTION_POSSIBLE" ["NO_SIMPLIFICATION_POSSIBLE"] Model false Medium Zero "the requested action is not possible"
    SemanticConflict "E2005" "SEMANTIC_CONFLICT" ["BEHAVIOR_CHANGE_REQUIRED"] Model true Medium Zero "the action would violate a constraint"
    AmbiguousInput "E2006" "AMBIGUOUS_INPUT" [] Caller true Medium Zero "the input is ambiguous"
    InsufficientContext "E2007" "INSUFFICIENT_CONTEXT" [] Caller true Medium Zero "more context is needed"
    StreamInterrupted "E2010" "STREAM_INTERRUPTED" [] Provider true High Zero "the stream was interrupted"
    StreamTimeout "E2011" "STREAM_TIMEOUT" [] Provider true High Zero "the stream exceeded its time limit"
    SchemaValidationFailed "E3001" "SCHEMA_VALIDATION_FAILED" ["OUTPUT_SCHEMA_VIOLATION"] Model false High Zero "the answer does not match the contract, even after repair"
    PartialResult "E3002" "PARTIAL_RESULT" [] Model true High Zero "only a part of the result exists"
    MissingRationale "E3003" "MISSING_RATIONALE" [] Model false High Zero "the rationale is empty or missing"
    OverflowLimit "E3004" "OVERFLOW_LIMIT" [] Model false High Zero "more insights than the module allows"
    InvalidEnum "E3005" "INVALID_ENUM" [] Model false High Zero "a value is not in its closed list"
    ConstraintViolation "E3006" "CONSTRAINT_VIOLATION" [] Model false High Zero "the answer violates a declared constraint"
    InternalError "E4000" "INTERNAL_ERROR" [] Runtime false High Zero "unexpected internal error of the runtime"
    ProviderUnavailable "E4001" "PROVIDER_UNAVAILABLE" [] Provider true High Zero "the model provider cannot be reached"
    RateLimited "E4002" "RATE_LIMITED" [] Provider true High Zero "a rate limit was exceeded"
    ContextOverflow "E4003" "CONTEXT_OVERFLOW" [] Caller true High Zero "the prompt does not fit the model's context window"
    CircularDependency "E4004" "CIRCULAR_DEPENDENCY" [] Module false High Zero "modules call each other in a circle"
    MaxDepthExceeded "E4005" "MAX_DEPTH_EXCEEDED" [] Module false High Zero "module calls are nested too deeply"
    ModuleNotFound "E4006" "MODULE_NOT_FOUND" [] Caller true High Zero "no module of this name is installed"
    PermissionDenied "E4007" "PERMISSION_DENIED" [] Caller false High Zero "a policy forbids the operation"
    StreamingNotSupported "E4010" "STREAMING_NOT_SUPPORTED" [] Runtime true High Zero "the answer cannot be streamed"
    MultimodalNotSupported "E4011" "MULTIMODAL_NOT_SUPPORTED" [] Runtime false High Zero "the runtime or the provider does not accept this media type"
    RecoveryNotSupported "E4012" "RECOVERY_NOT_SUPPORTED" [] Runtime true High Zero "stream recovery is disabled"
    SessionExpired "E4013" "SESSION_EXPIRED" [] Caller true High Zero "the stream session is unknown or has expired"
    CheckpointInvalid "E4014" "CHECKPOINT_INVALID" [] Caller true High Zero "the checkpoint does not match the stream"
    CallLimitExceeded "E4100" "CALL_LIMIT_EXCEEDED" [] Module false High Zero "a run needs more model calls than its limit"
    CostLimitExceeded "E4101" "COST_LIMIT_EXCEEDED" [] Caller false High Zero "a run could exceed its cost limit"
}

impl ErrorCode {
    /// Returns all codes, in ascending order of their numbers.
    #[must_use]
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ALL.iter().copied()
    }

    /// Returns the number: `E1000` to `E4014` are published, `E4100` and above belong to this runtime.
    #[must_use]
    pub fn number(self) -> &'static str {
        self.entry().number
    }

    /// Returns the canonical name, such as `PARSE_ERROR`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns older or foreign spellings of the same code.
    #[must_use]
    pub fn aliases(self) -> &'static [&'static str] {
        self.entry().aliases
    }

    /// Returns a one-line description of the code.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.entry().meaning
    }

    /// Returns whether the caller can do something about it: change the request, wait, or use another way.
    #[must_use]
    pub fn recoverable(self) -> bool {
        self.entry().recoverable
    }

    /// Returns the responsible party, unless the failure overrides it.
    #[must_use]
    pub fn blame(self) -> Blame {
        self.entry().blame
    }

    /// Returns the words that open `meta.explain` of an error with this code, unless the failure overrides the
    /// blame.
    #[must_use]
    pub fn opening(self) -> &'static str {
        match self {
            Self::ModuleNotFound => "Module not found",
            Self::PermissionDenied => "Not permitted",
            Self::ContextOverflow => "Input does not fit the model",
            _ => self.blame().opening(),
        }
    }

    /// Returns the risk that the runtime writes into its own envelopes with this code.
    #[must_use]
    pub fn risk(self) -> Risk {
        self.entry().risk
    }

    pub(crate) fn confidence(self) -> DefaultConfidence {
        self.entry().confidence
    }

    /// Returns the layer that the number belongs to.
    #[must_use]
    pub fn layer(self) -> ErrorLayer {
        match self.number().as_bytes().get(1) {
            Some(b'1') => ErrorLayer::Input,
            Some(b'2') => ErrorLayer::Processing,
            Some(b'3') => ErrorLayer::Output,
            _ => ErrorLayer::Runtime,
        }
    }

    /// Finds a code by its number, its name or one of its aliases.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        Self::all().find(|code| {
            let entry = code.entry();
            entry.number == text || entry.name == text || entry.aliases.contains(&text)
        })
    }
}

/// Returns the number of a code in any spelling; an unknown code stays as it is.
///
/// ```
/// use cognitive_contract::code::canonical;
/// assert_eq!(canonical("PARSE_ERROR"), "E1000");
/// assert_eq!(canonical("E7001"), "E7001");
/// ```
#[must_use]
pub fn canonical(text: &str) -> &str {
    ErrorCode::find(text).map_or(text, |code| code.number())
}

/// Returns whether a code belongs to modules: E5000 to E9999.
#[must_use]
pub fn is_module_code(text: &str) -> bool {
    let number = text.strip_prefix('E').filter(|digits| digits.len() == 4);
    number.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|number| number >= 5_000)
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.number())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn err_003_numbers_ascend_and_every_spelling_is_unique() {
        let mut spellings = HashSet::new();
        let mut last = "";
        for code in ErrorCode::all() {
            assert!(last < code.number(), "{last} before {code}");
            last = code.number();
            for spelling in [code.number(), code.name()].iter().chain(code.aliases()) {
                assert!(spellings.insert(*spelling), "{spelling} stands for two codes");
                assert_eq!(ErrorCode::find(spelling), Some(code));
            }
        }
    }

    #[test]
    fn err_004_aliases_are_read_as_their_number() {
        for (alias, number) in [
            ("INVALID_INPUT", "E1001"),
            ("VALIDATION_ERROR", "E1001"),
            ("UNSUPPORTED_LANGUAGE", "E1004"),
            ("OUTPUT_SCHEMA_VIOLATION", "E3001"),
            ("INTERNAL_ERROR", "E4000"),
        ] {
            assert_eq!(canonical(alias), number);
        }
        assert_eq!(canonical("whatever"), "whatever");
    }

    #[test]
    fn err_013_module_codes_have_their_own_range() {
        assert!(is_module_code("E5000") && is_module_code("E9999"));
        assert!(!is_module_code("E4999") && !is_module_code("E10000") && !is_module_code("5001"));
    }

    #[test]
    fn err_010_layers_follow_the_first_digit_and_only_processing_may_be_below_high() {
        assert_eq!(ErrorCode::MediaTooLarge.layer(), ErrorLayer::Input);
        assert_eq!(ErrorCode::LowConfidence.layer(), ErrorLayer::Processing);
        assert_eq!(ErrorCode::InvalidEnum.layer(), ErrorLayer::Output);
        assert_eq!(ErrorCode::RateLimited.layer(), ErrorLayer::Runtime);
        for code in ErrorCode::all() {
            assert!(code.risk() == Risk::High || code.layer() == ErrorLayer::Processing, "{code}");
        }
    }

    #[test]
    fn err_012_unbypassable_errors_are_not_recoverable() {
        for code in [ErrorCode::InternalError, ErrorCode::CircularDependency, ErrorCode::MaxDepthExceeded] {
            assert!(!code.recoverable(), "{code}");
        }
    }
}
