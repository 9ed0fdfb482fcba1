//! Compares the curve with the truth and with isotonic regression, in simulations with fixed seeds.

use super::*;

/// Pseudo-random numbers from 0 to 1, reproducible by seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap()) / f64::from(u32::MAX)
    }

    fn answers(&mut self, count: usize, truth: fn(f64) -> f64) -> Vec<CheckedAnswer> {
        let mut one = || {
            let stated = 0.3 + 0.7 * self.roll();
            (stated, self.roll() < truth(stated))
        };
        (0..count).map(|_| one()).collect()
    }
}

/// The number of simulated reviewers for each figure.
const SEEDS: u8 = 20;

/// The true share of right answers for a stated confidence.
type Truth = fn(f64) -> f64;

/// True shares in shapes that occur with real models.
const TRUTHS: [(&str, Truth); 6] = [
    ("overconfident", |stated| (stated - 0.3).max(0.02)),
    ("the same whatever it says", |_| 0.6),
    ("worse the less sure", |stated| stated * stated),
    ("underconfident", |stated| (stated + 0.2).min(0.98)),
    ("right as it is", |stated| stated),
    ("the other way round", |stated| 1.2 - stated),
];

/// Isotonic regression: the increasing step function closest to the answers.
fn steps(answers: &[CheckedAnswer]) -> impl Fn(f64) -> f64 + use<> {
    let mut sorted = answers.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Sum, count and the first confidence of each step.
    let mut blocks: Vec<(f64, f64, f64)> = Vec::new();
    for (stated, right) in sorted {
        let mut block = (f64::from(u8::from(right)), 1.0, stated);
        while let Some(before) = blocks.pop_if(|before| before.0 / before.1 >= block.0 / block.1) {
            block = (before.0 + block.0, before.1 + block.1, before.2);
        }
        blocks.push(block);
    }
    move |stated| {
        let below = blocks.iter().rev().find(|block| block.2 <= stated).or(blocks.first());
        below.map_or(stated, |block| block.0 / block.1)
    }
}

/// The mean distances of the curve, the steps and the stated confidence from the truth.
fn distances(count: usize, truth: fn(f64) -> f64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 0..SEEDS {
        let answers = Dice(seed.into()).answers(count, truth);
        let (curve, steps) = (CalibrationCurve::fit(&answers).unwrap(), steps(&answers));
        for place in 0..=70_u8 {
            let stated = 0.3 + f64::from(place) / 100.0;
            let ways = [curve.value(stated), steps(stated), stated];
            for (sum, way) in sums.iter_mut().zip(ways) {
                *sum += (way - truth(stated)).abs() / (f64::from(SEEDS) * 71.0);
            }
        }
    }
    sums
}

#[test]
fn the_curve_is_nearer_to_the_truth_than_steps_are() {
    for count in [MIN_DECISIONS, 50, 200] {
        let (mut of_curve, mut of_steps, mut of_stated) = (0.0, 0.0, 0.0);
        for (name, truth) in TRUTHS {
            let [curve, steps, stated] = distances(count, truth);
            println!("{count} {name}: curve {curve:.3}, steps {steps:.3}, stated {stated:.3}");
            assert!(curve < 1.05 * steps, "{count} {name}: curve {curve:.3}, steps {steps:.3}");
            of_curve += curve;
            of_steps += steps;
            of_stated += stated;
        }
        assert!(of_curve < 0.75 * of_steps, "{count}: {of_curve:.3} {of_steps:.3}");
        assert!(of_curve < 0.5 * of_stated, "{count}: {of_curve:.3} {of_stated:.3}");
    }
}

// Plain Newton steps cycle here, and would leave the curve at its start.
#[test]
fn the_fit_is_the_lowest_point_whatever_the_answers_are() {
    for seed in 0..60 {
        for (name, truth) in TRUTHS {
            let answers = Dice(seed).answers(200, truth);
            let (intercept, slope) = most_likely(&answers);
            let here = cost(&answers, (intercept, slope));
            for (one, other) in [(0.05, 0.0), (-0.05, 0.0), (0.0, 0.05), (0.0, -0.05)] {
                assert!(here <= cost(&answers, (intercept + one, slope + other)), "{name}, seed {seed}");
            }
        }
    }
}

#[test]
fn few_decisions_say_nothing_and_neither_does_what_nobody_decided_on() {
    let answers = Dice(1).answers(MIN_DECISIONS, |_| 0.5);
    assert_eq!(CalibrationCurve::fit(&answers[1..]), None);
    let curve = CalibrationCurve::fit(&answers).unwrap();
    assert_eq!(curve.at(0.1), None, "nobody decided on so low a confidence");
    assert!(curve.at(0.8).is_some());
    assert_eq!(curve.at(f64::NAN), None);
}

#[test]
fn one_sided_verdicts_and_edges_give_a_number_from_0_to_1() {
    for right in [true, false] {
        for stated in [0.0, 0.5, 1.0] {
            let curve = CalibrationCurve::fit(&vec![(stated, right); 100_000]).unwrap();
            let value = curve.at(stated).unwrap();
            assert!((0.0..=1.0).contains(&value), "{stated} {right}: {value}");
            assert_eq!(value > 0.9, right, "{stated} {right}: {value}");
        }
    }
}

#[test]
fn the_report_counts_groups_and_judges_the_curve_by_what_it_has_not_seen() {
    let report = CalibrationReport::from_answers(&Dice(3).answers(200, |stated| stated - 0.3));
    assert_eq!((report.decisions, report.bins.len()), (200, BINS));
    assert_eq!(report.bins.iter().map(|bin| bin.count).sum::<u64>(), 200);
    let (raw, calibrated) = (report.raw_error.unwrap(), report.calibrated_error.unwrap());
    assert!(raw > 0.25 && calibrated < 0.5 * raw, "{raw:.3} {calibrated:.3}");
    assert!(report.curve.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let few = CalibrationReport::from_answers(&[(0.75, true), (0.75, true), (0.75, true), (0.75, false)]);
    assert_eq!((few.raw_error, few.calibrated_error, few.curve.len()), (Some(0.0), None, 0));
    assert_eq!(CalibrationReport::from_answers(&[]).raw_error, None);
}

#[test]
fn each_module_and_model_has_a_report_of_its_newest_decisions() {
    let mut judged = JudgedByModel::default();
    for number in 0..WINDOW + 10 {
        judged.add("a", "one", (0.9, number >= 10));
    }
    judged.add("a", "other", (0.4, false));
    judged.add("b", "one", (0.4, true));
    let reports = judged.reports();
    let told: Vec<(&str, &str, u64)> = reports
        .iter()
        .map(|each| (each.module.as_str(), each.model.as_str(), each.report.decisions))
        .collect();
    assert_eq!(told, [("a", "one", 1_000), ("a", "other", 1), ("b", "one", 1)]);
    assert!(reports[0].report.bins.iter().all(|bin| bin.right == bin.count), "those before do not count");
}
