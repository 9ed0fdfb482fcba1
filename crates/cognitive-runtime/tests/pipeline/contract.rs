//! Rules of the contract that meet another feature: a module's own failure, repair prompts, insights, and the module's
//! own `meta` schema.

use serde_json::{Value, json};

use crate::answer;

fn own_failure() -> Value {
    json!({
        "ok": false, "meta": { "confidence": 0.62, "risk": "medium", "explain": "The types are unknown." },
        "error": { "code": "BEHAVIOR_CHANGE_REQUIRED", "message": "The types are unknown." },
        "partial_data": { "simplified_code": "…" },
    })
}

// D-20
#[test]
fn d_20_a_forbidden_partial_result_leaves_the_rest_of_an_own_failure() {
    for tier in ["exec", "decision", "exploration"] {
        let silent = json!({ "tier": tier, "failure": { "partial_allowed": false } });
        let value = answer(silent, &own_failure().to_string());
        assert_eq!(value["error"], own_failure()["error"], "{value}");
        let meta = ["confidence", "risk", "explain"].map(|member| &value["meta"][member]);
        assert_eq!(meta, [&json!(0.62), &json!("medium"), &json!("The types are unknown.")]);
        assert!(value.get("partial_data").is_none(), "{value}");
        assert!(value["meta"].get("warnings").is_none(), "{value}");
        let open = answer(json!({ "tier": tier }), &own_failure().to_string());
        assert_eq!(open["partial_data"]["simplified_code"], "…");
    }
}
