//! The order of members, which is the same in examples and answers.

use serde_json::json;

use super::module;
use crate::provider_schema::in_order;

#[test]
fn members_stand_as_a_model_is_bound_to_write_them() {
    let item = json!({ "properties": { "task": { "type": "string" }, "priority": { "type": "string" } } });
    let module = module(
        json!({}),
        json!({ "input": {}, "data": { "properties": {
            "ranked": { "type": "array", "items": item }, "rationale": { "type": "string" },
        } } }),
    );
    let meta = json!({ "explain": "e", "risk": "low", "confidence": 0.9 });
    let written = json!({
        "meta": meta,
        "data": { "more": 1, "ranked": [{ "priority": "high", "task": "t" }], "rationale": "r" },
        "ok": true,
    });
    let meta = r#""meta":{"confidence":0.9,"risk":"low","explain":"e"}"#;
    let ranked = r#""ranked":[{"task":"t","priority":"high"}]"#;
    let expected = format!(r#"{{"ok":true,"data":{{"rationale":"r",{ranked},"more":1}},{meta}}}"#);
    assert_eq!(in_order(&module.contract, &module.rules, &written).to_string(), expected);
    assert_eq!(in_order(&module.contract, &module.rules, &written), written, "only the order is another");

    let failure = json!({ "error": { "message": "m", "code": "E2004" }, "meta": {}, "ok": false });
    assert_eq!(
        in_order(&module.contract, &module.rules, &failure).to_string(),
        r#"{"ok":false,"error":{"code":"E2004","message":"m"},"meta":{}}"#
    );
}
