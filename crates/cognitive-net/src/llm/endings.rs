//! The faults and endings of an attempt without a plain answer: a timeout, an unusable body, or an ending that the
//! service reports as an error. Only builds them; the loop in `remote` decides on retries.

use cognitive_contract::ports::{FailureKind, Finish, ProviderError};

use crate::complaint::Complaint;
use crate::fault::{Fault, Reporter};
use crate::frames::Unreadable;
use crate::llm::measure::Excess;
use crate::retry::RetryDecision;

/// Returns the fault for an answer that did not arrive in time.
pub(crate) fn too_late() -> Fault {
    Fault::new(ProviderError::Timeout, FailureKind::Timeout, RetryDecision::Never)
}

/// Returns the ending that some services report as an error: a content filter, the token limit, or a reply that the
/// service checked and withheld.
pub(crate) fn ending(complaint: &Complaint, reporter: Reporter<'_>) -> Option<Finish> {
    if complaint.is_refusal() {
        let why = reporter.quote(complaint).unwrap_or_else(|| "the prompt was blocked".to_owned());
        return Some(Finish::Refused(why));
    }
    if complaint.is_cut_off() {
        return Some(Finish::CutOff);
    }
    complaint.reply.is_some().then_some(Finish::Complete)
}

/// Returns the fault for a document that is not an answer: an unmarked error, or something else.
pub(crate) fn no_answer(document: &str, reporter: Reporter<'_>) -> Fault {
    let complaint = Complaint::from_body(document.as_bytes());
    if complaint.status.is_some() {
        return reporter.frame(complaint);
    }
    reporter.unreadable("JSON that is not a model's answer")
}

/// Returns the fault for a frame that is not JSON: truncated, or something else.
pub(crate) fn not_json(error: &serde_json::Error, reporter: Reporter<'_>) -> Fault {
    if error.is_eof() {
        return reporter.interruption_fault(
            "its JSON ended early",
            FailureKind::Network,
            RetryDecision::Later,
        );
    }
    reporter.unreadable("something that is not JSON; check the address")
}

/// Returns the fault for a body that cannot be read as an answer.
pub(crate) fn unreadable(why: Unreadable, reporter: Reporter<'_>) -> Fault {
    match why {
        Unreadable::Page => reporter.unreadable("a web page; check the address"),
        Unreadable::Packed => {
            reporter.unreadable("a compressed body (gzip or the like), which was not requested")
        }
        Unreadable::TooLong => reporter.interruption_fault(
            "an event that is too large",
            FailureKind::Malformed,
            RetryDecision::Never,
        ),
    }
}

/// Returns the fault for an answer that exceeds a limit.
pub(crate) fn too_long(excess: Excess, reporter: Reporter<'_>) -> Fault {
    const MIB: usize = 1024 * 1024;
    let why = match excess {
        Excess::Said(most) => format!("it is longer than {} MiB", most / MIB),
        Excess::Wrapping { wire, said } => {
            format!("it contains almost no text: {} MiB for {said} bytes of answer", wire / MIB)
        }
    };
    reporter.interruption_fault(&why, FailureKind::Malformed, RetryDecision::Never)
}
