//! Modules as Agent Skills: the output of `cogn export skill`, checked by the official validator of the format.

use cognitive_testkit::{Lack, skip};

use crate::model::recorded;
use crate::stage::{Stage, lasting, python_with};

/// The official validator accepts the skill of every module, and the included module answers like the original.
#[test]
fn every_module_is_a_valid_skill() {
    let Some(python) = python_with("skills_ref") else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let mut judged = 0;
    for each in recorded() {
        let mut export = stage.command(env!("CARGO_BIN_EXE_cogn"));
        let exported =
            export.args(["export", "skill", &each.module, "--install", "agents"]).output().unwrap();
        assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
        let skill = stage.home.path().join(".agents/skills").join(&each.module);
        let validator = python.with_file_name("agentskills");
        let verdict = stage.command(validator).arg("validate").arg(&skill).output().unwrap();
        assert!(verdict.status.success(), "{}: {}", each.module, String::from_utf8_lossy(&verdict.stdout));
        let inside = skill.join("assets").join(&each.module).display().to_string();
        let (copy, original) = (stage.run(&inside, &each.input), stage.run(&each.module, &each.input));
        assert_eq!(lasting(copy), lasting(original), "{}", each.module);
        judged += 1;
    }
    assert!(judged >= 14, "only {judged} modules were judged");
}
