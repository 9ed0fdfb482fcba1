//! Training with a toy model whose states count the first letters of its words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};

use super::*;
use crate::beginnings::{Beginnings, PromptText};
use crate::chat::ChatForm;
use crate::decide::{Decisions, JudgeProfile};
use crate::model::LanguageModel;
use crate::toy::Toy;

fn schema() -> Value {
    let by = |word: &str| json!([{ "ask": format!("Which {word}?"), "say": "It is" }]);
    json!({ "anyOf": [{ "properties": { "ok": { "const": true }, "data": { "properties": {
        "mood": { "enum": ["calm", "loud"], "x-decide": { "about": "text", "by": by("mood") } },
        "label": { "x-copy-from": "labels", "x-decide": { "about": "text", "by": by("label") } },
        "name": { "x-copy-from": "text", "x-decide": { "about": "text", "alone": true, "by": by("name") } },
        "other": { "x-copy-from": "text", "x-decide": { "about": "text", "alone": true, "by": by("other") } },
    } } } }] })
}

/// A text is loud if it has more `z` than `k`, and has a name if it contains a `q`.
fn text(number: usize) -> String {
    let is_loud = number.is_multiple_of(2);
    let (more, less) = if is_loud { ("z", "k") } else { ("k", "z") };
    let name = if number.is_multiple_of(3) { " qqqq" } else { " wwww" };
    // No text occurs twice: a text in the training data would reveal its answer.
    format!("{}{}{name} {number}", more.repeat(3 + number % 4), less.repeat(number % 2))
}

fn case(number: usize) -> TrainingCase {
    let text = text(number);
    let one = |value: &str| WantedValue::OneOf(vec![value.to_owned()]);
    let name = if number.is_multiple_of(3) { one("qqqq") } else { WantedValue::Nothing };
    let wanted = BTreeMap::from([
        ("mood".to_owned(), one(if number.is_multiple_of(2) { "loud" } else { "calm" })),
        ("label".to_owned(), one("ab")),
        ("name".to_owned(), name),
    ]);
    let input = json!({ "text": text, "labels": ["ab", "true"] }).to_string();
    TrainingCase { input, wanted }
}

/// Runs work on the decisions of a toy model.
fn with_toy<R>(
    trained: Option<&TrainedModel>,
    input: &str,
    work: impl for<'t> FnOnce(&DecisionRequest<'_>, &'t (dyn Fn(&[u32]) -> PromptText<'t> + Sync)) -> R,
) -> R {
    let toy = Arc::new(Toy::wordy());
    let marks = ChatForm::from_template(None, &*toy).unwrap().marks(&*toy).unwrap();
    let texts = Beginnings::default();
    let weights: Arc<dyn LanguageModel> = Arc::<Toy>::clone(&toy);
    let schema = schema();
    let request = DecisionRequest {
        schema: &schema,
        input,
        examples: &[],
        marks: &marks,
        vocabulary: &*toy,
        profile: JudgeProfile::for_parameters(135_000_000),
        trained,
    };
    work(&request, &|fixed| texts.text(fixed, &weights))
}

fn trained_on(cases: &[TrainingCase], stop: bool) -> Result<TrainingReport, FeedError> {
    with_toy(None, "{}", |request, begin| {
        let plan = LessonPlan { model: ("toy", "00"), cases, progress: &|_| {}, stop: &|| stop };
        Training { request, begin }.run(&plan)
    })
}

fn decided(trained: Option<&TrainedModel>, text: &str) -> Decisions {
    let input = json!({ "text": text, "labels": ["ab", "true"] }).to_string();
    with_toy(trained, &input, |request, begin| Decisions::make(request, begin, &|| false).unwrap().0)
}

#[test]
fn what_the_state_tells_apart_is_learned_and_carries_over() {
    let cases: Vec<TrainingCase> = (0..120).map(case).collect();
    let report = trained_on(&cases, false).unwrap();
    let heads = &report.trained.heads;
    assert_eq!(heads.keys().collect::<Vec<_>>(), ["label", "mood", "name"], "{:?}", report.left_out);
    let mood = &heads["mood"];
    assert_eq!((mood.cases, &mood.decide["by"][0]["ask"]), (120, &json!("Which mood?")));
    assert!(mood.right > 110, "{}", mood.right);
    let reads = mood.reads.as_ref().unwrap();
    assert_eq!((reads.layer, reads.rows.len()), (1, 1), "the second layer of the toy says nothing");
    for number in 500..520 {
        let (text, decisions) = (text(number), decided(Some(&report.trained), &text(number)));
        let mood = decisions.at_path("mood").unwrap();
        assert_eq!(mood.value.as_deref() == Some("loud"), number.is_multiple_of(2), "{text}");
        assert!(mood.probability > 0.5, "{mood:?}");
        let name = decisions.at_path("name").unwrap();
        // The toy rates pieces so low that it finds none: "nothing" then has a probability below one half.
        assert_eq!(
            name.value.is_some() || name.probability < 0.5,
            number.is_multiple_of(3),
            "{text}: {name:?}"
        );
        assert!(decisions.probability().is_some());
    }
}

#[test]
fn the_same_cases_teach_the_same_whoever_reads_faster() {
    let cases: Vec<TrainingCase> = (0..60).map(case).collect();
    assert_eq!(trained_on(&cases, false), trained_on(&cases, false));
}

#[test]
fn what_was_learned_for_another_question_or_other_candidates_does_not_count() {
    let cases: Vec<TrainingCase> = (0..60).map(case).collect();
    let mut trained = trained_on(&cases, false).unwrap().trained;
    let (text, untrained) = (text(500), decided(None, &text(500)));
    assert_ne!(decided(Some(&trained), &text).at_path("mood"), untrained.at_path("mood"));
    let head = trained.heads.get_mut("mood").unwrap();
    head.decide["by"][0]["ask"] = json!("Which colour?");
    assert_eq!(decided(Some(&trained), &text).at_path("mood"), untrained.at_path("mood"));
    let head = trained.heads.get_mut("mood").unwrap();
    head.decide["by"][0]["ask"] = json!("Which mood?");
    head.reads.as_mut().unwrap().classes = vec!["calm".to_owned(), "proud".to_owned()];
    assert_eq!(decided(Some(&trained), &text).at_path("mood"), untrained.at_path("mood"));
    let head = trained.heads.get_mut("mood").unwrap();
    head.reads.as_mut().unwrap().classes = vec!["calm".to_owned(), "loud".to_owned()];
    head.reads.as_mut().unwrap().rows[0].numbers.pop();
    assert_eq!(decided(Some(&trained), &text).at_path("mood"), untrained.at_path("mood"));
    assert!(super::super::trained_for(&[trained.clone()], Some("01")).is_none());
    assert!(super::super::trained_for(&[trained.clone()], None).is_none());
    assert!(super::super::trained_for(&[trained], Some("00")).is_some());
}

/// Two values cannot be the same piece. The one that loses it has a head that says that it exists, so its probability
/// is low. The same applies to a value for which no piece can be found.
#[test]
fn a_kind_that_is_there_and_has_no_piece_is_unsure() {
    let cases: Vec<TrainingCase> = (0..60).map(case).collect();
    let trained = trained_on(&cases, false).unwrap().trained;
    let decisions = decided(Some(&trained), "zzzz qqqq");
    let name = decisions.at_path("name").unwrap();
    assert!(name.value.is_none() && name.probability < 0.5, "{name:?}");
    let input = json!({ "text": "zzzz qqqq" });
    let schema = schema();
    let questions = question::all(&schema, &input);
    let question = questions.iter().find(|question| question.path == ["name"]).unwrap();
    // The value exists almost certainly; the piece that was found may belong to another value.
    let unsure = |nothing| {
        let found = super::super::Decision { probability: 0.3, nothing, ..name.clone() };
        with_judge(None, |judge| judge.probability_without_piece(question, &found))
    };
    assert!((unsure(Some(0.05)) - 0.05).abs() < 1e-9);
    assert!(unsure(None) > 0.9, "whoever was taught nothing takes it for nothing");
    assert!(name.nothing.is_some_and(|nothing| nothing < 0.5), "{name:?}");
}

fn with_judge<R>(trained: Option<&TrainedModel>, work: impl FnOnce(&DecisionJudge<'_>) -> R) -> R {
    with_toy(trained, "{}", |request, begin| {
        let asking = QuestionPrefix::new(request);
        let (mut weighed, mut asked) = (begin(&[]), begin(&[]));
        work(&DecisionJudge {
            profile: JudgeProfile::for_parameters(134_479_872),
            weighing: Scale::new(&mut weighed, request.vocabulary, &|| false),
            asked: Scale::new(&mut asked, request.vocabulary, &|| false),
            asking: &asking,
            trained: request.trained,
        })
    })
}

#[test]
fn too_few_cases_teach_nothing_and_say_so() {
    let few: Vec<TrainingCase> = (0..MIN_CASES - 1).map(case).collect();
    let report = trained_on(&few, false).unwrap();
    assert!(report.trained.heads.is_empty());
    assert_eq!(report.left_out["mood"], "too few cases: 29, at least 30 are needed");
    let loud: Vec<TrainingCase> = (0..120).step_by(2).map(case).collect();
    let report = trained_on(&loud, false).unwrap();
    assert_eq!(report.left_out["mood"], "too few cases of `calm`: 0, at least 5 are needed");
}

/// A value with four cases, and one with none, beside two that have enough.
#[test]
fn a_rare_value_does_not_keep_the_others_from_being_learned() {
    let row = |case: usize| {
        let class = if case < 4 { 2 } else { case % 2 };
        let mut state = vec![0.1 * f32::from(u8::try_from(case % 7).unwrap()); 3];
        state[class] = 3.0;
        LessonRow { case, part: case % PARTS, states: vec![state], class, judged: None }
    };
    let classes = ["calm", "loud", "odd", "unseen"].map(str::to_owned).to_vec();
    let kind = LessonKind::Fixed(classes.clone());
    let lesson = Lesson { kind, layers: vec![1], rows: (0..60).map(row).collect(), ..Lesson::default() };
    let (head, results) = lesson.learn(&|| false).unwrap().unwrap();
    assert_eq!(head.reads.unwrap().classes, classes);
    let told: Vec<(&str, usize)> = results.iter().map(|each| (each.class.as_str(), each.cases)).collect();
    assert_eq!(told, [("calm", 28), ("loud", 28), ("odd", 4), ("unseen", 0)]);
    assert!(results[0].right > 20 && results[1].right > 20, "{results:?}");
    assert_eq!(results.iter().map(|each| each.right).sum::<usize>(), head.right);
}

#[test]
fn a_model_without_states_learns_nothing_that_could_not_be_read_again() {
    let row = |case| LessonRow { case, part: 0, states: Vec::new(), class: case % 2, judged: None };
    let lesson = Lesson { kind: LessonKind::Piece, rows: (0..60).map(row).collect(), ..Lesson::default() };
    assert_eq!(lesson.learn(&|| false).unwrap().unwrap_err(), "the model does not support this question");
    // A choice with a single candidate has no meaningful lead.
    let row = |case| LessonRow { judged: Some((f64::INFINITY, true)), ..row(case) };
    let lesson = Lesson { rows: (0..60).map(row).collect(), ..Lesson::default() };
    let curve = lesson.learn(&|| false).unwrap().unwrap().0.curve;
    assert!(curve.slope.is_finite() && curve.offset.is_finite(), "{curve:?}");
}

#[test]
fn it_can_be_stopped_and_says_how_far_it_is() {
    let cases: Vec<TrainingCase> = (0..60).map(case).collect();
    assert_eq!(trained_on(&cases, true), Err(FeedError::Cancelled));
    let read = AtomicUsize::new(0);
    let learned = AtomicUsize::new(0);
    with_toy(None, "{}", |request, begin| {
        let progress = |progress| match progress {
            TrainingProgress::Read(_) => drop(read.fetch_add(1, Ordering::SeqCst)),
            TrainingProgress::Learned(done, of) => learned.store(done * 100 + of, Ordering::SeqCst),
        };
        let plan = LessonPlan { model: ("toy", "00"), cases: &cases, progress: &progress, stop: &|| false };
        Training { request, begin }.run(&plan).unwrap();
    });
    assert_eq!((read.into_inner(), learned.into_inner()), (60, 303));
}

/// With thousands of cases, a single decision takes minutes.
#[test]
fn it_can_be_stopped_in_the_middle_of_a_decision() {
    let cases: Vec<TrainingCase> = (0..60).map(case).collect();
    let (read, tried, learned) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let ended = with_toy(None, "{}", |request, begin| {
        let progress = |progress| match progress {
            TrainingProgress::Read(_) => drop(read.fetch_add(1, Ordering::SeqCst)),
            TrainingProgress::Learned(done, _) => learned.store(done, Ordering::SeqCst),
        };
        let stop = || read.load(Ordering::SeqCst) == 60 && tried.fetch_add(1, Ordering::SeqCst) == 1;
        let plan = LessonPlan { model: ("toy", "00"), cases: &cases, progress: &progress, stop: &stop };
        Training { request, begin }.run(&plan)
    });
    // The first is `label`, for which nothing is tried; the second has two layers with four penalties each.
    assert_eq!((ended, learned.into_inner()), (Err(FeedError::Cancelled), 1));
}
