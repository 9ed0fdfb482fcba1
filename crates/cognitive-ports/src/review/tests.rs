//! Tests of valid decisions and of their external form.

use super::*;

fn review(verdict: Verdict, data: Option<Value>) -> Review {
    let entry = ReviewEntry {
        at: SystemTime::UNIX_EPOCH,
        run_id: "r".to_owned(),
        trace_id: "t".to_owned(),
        key: None,
        user: None,
        tenant: None,
        module: "m".to_owned(),
        version: "1.0.0".to_owned(),
        model: "p/m".to_owned(),
        rule: "confidence < 0.6".to_owned(),
        input: json!({ "text": "t" }),
        envelope: json!({
            "ok": true,
            "meta": { "confidence": 0.4, "risk": "low", "explain": "e", "calibrated_confidence": 0.3 },
            "data": { "rationale": "r", "label": "a", "list": [1], "a.b": { "$in": [1] } },
        }),
    };
    let mut review = Review::from_entry("7".to_owned(), "2026-01-02T03:04:05.000Z".to_owned(), &entry);
    review.decision = Some(ReviewDecision::new(verdict, String::new(), None, String::new(), data));
    review
}

#[test]
fn an_entry_says_what_meta_says() {
    let json = json!(review(Verdict::Approve, None));
    assert_eq!((&json["confidence"], &json["calibrated_confidence"]), (&json!(0.4), &json!(0.3)));
    assert_eq!(
        (&json["risk"], &json["explain"], &json["state"]),
        (&json!("low"), &json!("e"), &json!("decided"))
    );
    assert_eq!(json["decision"]["verdict"], "approve");
}

#[test]
fn cases_expect_what_a_person_found_or_made_right() {
    let case = |verdict, data| export_entry(ReviewExport::Cases, &review(verdict, data));
    assert_eq!(
        case(Verdict::Approve, None),
        Some(json!({ "id": "review-7", "input": { "text": "t" }, "expect": {
            "label": "a", "list": { "$exact": [1] }, "/data/a.b": { "$exact": { "$in": [1] } } } }))
    );
    let right = Some(json!({ "rationale": "other", "label": "b" }));
    assert_eq!(case(Verdict::Correct, right).unwrap()["expect"], json!({ "label": "b" }));
    assert_eq!(case(Verdict::Reject, None), None, "nobody said what would have been right");
}

#[test]
fn a_correction_has_data_and_nothing_else_has() {
    let decision = |verdict, data| NewDecision {
        verdict,
        reason: String::new(),
        data,
        by: None,
        key: None,
        at: SystemTime::UNIX_EPOCH,
    };
    assert_eq!(decision(Verdict::Approve, None).check(), Ok(()));
    assert_eq!(decision(Verdict::Correct, Some(json!({}))).check(), Ok(()));
    for wrong in [
        decision(Verdict::Correct, None),
        decision(Verdict::Correct, Some(json!(1))),
        decision(Verdict::Approve, Some(json!({}))),
        NewDecision { reason: "x".repeat(MAX_REASON + 1), ..decision(Verdict::Reject, None) },
    ] {
        assert!(matches!(wrong.check(), Err(ReviewError::Invalid(_))), "{wrong:?}");
    }
}
