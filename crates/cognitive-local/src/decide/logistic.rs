//! Logistic regression: learns from labelled rows of numbers to which class a row belongs. Small and exact enough for
//! some thousand rows of some thousand numbers; the same rows always give the same weights. Knows no model.

#![expect(
    clippy::indexing_slicing,
    reason = "every row has the width of the first, which is checked on entry"
)]

/// The number of gradient steps. Further steps change nothing in the third digit.
const STEPS: usize = 150;
/// The number of products that are computed in parallel.
const LANES: usize = 16;
/// The least deviation: a number that is almost constant is not amplified.
const MIN_SPREAD: f32 = 1e-4;

/// The weights of classes: per class, one weight for each number of a row, and an offset.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LogisticModel {
    pub rows: Vec<Vec<f32>>,
    pub offsets: Vec<f64>,
}

impl LogisticModel {
    /// Learns from rows and their classes, numbered from 0 to `count`. `penalty` keeps the weights small: with a larger
    /// penalty, a single row has less influence.
    pub(super) fn fit(rows: &[&[f32]], classes: &[usize], count: usize, penalty: f32) -> Self {
        let width = rows.first().map_or(0, |row| row.len());
        if !rows.iter().all(|row| row.len() == width) || rows.len() != classes.len() {
            return Self { rows: vec![vec![0.0; width]; count], offsets: vec![0.0; count] };
        }
        let FeatureScale { means, deviations } = FeatureScale::from_rows(rows, width);
        // An additional number, always 1, carries the offset of the class.
        let standard = |row: &&[f32]| {
            let numbers =
                row.iter().zip(&means).zip(&deviations).map(|((x, mean), spread)| (x - mean) / spread);
            numbers.chain([1.0]).collect::<Vec<f32>>()
        };
        let rows: Vec<Vec<f32>> = rows.iter().map(standard).collect();
        let weights = descend(&rows, classes, count, penalty);
        let mut model = Self { rows: Vec::new(), offsets: Vec::new() };
        for of_class in weights {
            let scaled: Vec<f32> =
                of_class.iter().zip(&deviations).map(|(weight, spread)| weight / spread).collect();
            let shift: f64 = scaled.iter().zip(&means).map(|(weight, mean)| f64::from(weight * mean)).sum();
            model.offsets.push(f64::from(of_class[width]) - shift);
            model.rows.push(scaled);
        }
        model
    }

    /// Returns the weight of each class for a row.
    pub(super) fn weigh(&self, row: &[f32]) -> Vec<f64> {
        let weigh = |(weights, offset): (&Vec<f32>, &f64)| offset + f64::from(dot(weights, row));
        self.rows.iter().zip(&self.offsets).map(weigh).collect()
    }
}

/// The means and deviations of the numbers of rows.
struct FeatureScale {
    means: Vec<f32>,
    deviations: Vec<f32>,
}

impl FeatureScale {
    fn from_rows(rows: &[&[f32]], width: usize) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "there are not that many rows")]
        let count = rows.len().max(1) as f32;
        let mean_of = |number: &dyn Fn(&[f32], usize) -> f32| -> Vec<f32> {
            let mut sums = vec![0.0; width];
            for row in rows {
                sums.iter_mut().enumerate().for_each(|(at, sum)| *sum += number(row, at));
            }
            sums.into_iter().map(|sum| sum / count).collect()
        };
        let means = mean_of(&|row, at| row[at]);
        let squares = mean_of(&|row, at| (row[at] - means[at]).powi(2));
        let deviations = squares.into_iter().map(|square: f32| square.sqrt().max(MIN_SPREAD)).collect();
        Self { means, deviations }
    }
}

/// Minimises the penalised loss by gradient descent with momentum (Nesterov), with steps that cannot overshoot.
fn descend(rows: &[Vec<f32>], classes: &[usize], count: usize, penalty: f32) -> Vec<Vec<f32>> {
    let width = rows.first().map_or(0, Vec::len);
    let step = 1.0 / (0.5 * largest_curvature(rows) + penalty);
    let mut weights = vec![vec![0.0_f32; width]; count];
    let mut ahead = weights.clone();
    for turn in 0_u16.. {
        if usize::from(turn) == STEPS {
            break;
        }
        let slope = slope(rows, classes, &ahead, penalty);
        let momentum = f32::from(turn) / (f32::from(turn) + 3.0);
        for ((weights, ahead), slope) in weights.iter_mut().zip(&mut ahead).zip(slope) {
            for ((weight, ahead), slope) in weights.iter_mut().zip(ahead).zip(slope) {
                let next = *ahead - step * slope;
                *ahead = next + momentum * (next - *weight);
                *weight = next;
            }
        }
    }
    weights
}

/// Returns the gradient of the penalised loss at these weights.
fn slope(rows: &[Vec<f32>], classes: &[usize], weights: &[Vec<f32>], penalty: f32) -> Vec<Vec<f32>> {
    let mut slope: Vec<Vec<f32>> = weights.iter().map(|of_class| penalise(of_class, penalty)).collect();
    for (row, class) in rows.iter().zip(classes) {
        let odds: Vec<f32> = weights.iter().map(|of_class| dot(of_class, row)).collect();
        let highest = odds.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = odds.iter().map(|odds| (odds - highest).exp()).sum();
        for (index, (slope, odds)) in slope.iter_mut().zip(&odds).enumerate() {
            let is_it = if index == *class { 1.0 } else { 0.0 };
            let error = (odds - highest).exp() / sum - is_it;
            slope.iter_mut().zip(row).for_each(|(slope, number)| *slope += error * number);
        }
    }
    slope
}

/// Penalises every weight except the offset of the class: the frequency of a class may be learned without a penalty.
fn penalise(of_class: &[f32], penalty: f32) -> Vec<f32> {
    let last = of_class.len().saturating_sub(1);
    of_class.iter().enumerate().map(|(at, weight)| if at == last { 0.0 } else { penalty * weight }).collect()
}

/// Returns the largest curvature of the sum of squares, by power iteration.
fn largest_curvature(rows: &[Vec<f32>]) -> f32 {
    let width = rows.first().map_or(0, Vec::len);
    let mut direction = vec![1.0_f32; width];
    let mut curvature = 0.0;
    for _ in 0..12 {
        let length = dot(&direction, &direction).sqrt().max(f32::MIN_POSITIVE);
        for number in &mut direction {
            *number /= length;
        }
        let mut next = vec![0.0; width];
        for row in rows {
            let along = dot(row, &direction);
            next.iter_mut().zip(row).for_each(|(next, number)| *next += along * number);
        }
        curvature = dot(&next, &next).sqrt();
        direction = next;
    }
    // The iteration approaches it from below.
    1.1 * curvature
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (ones, others) = (one.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (ones, others) in ones.zip(others) {
        for ((sum, a), b) in sums.iter_mut().zip(ones).zip(others) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows around one centre for each class, always the same.
    fn rows(per_class: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
        let mut dice = crate::sample::TokenRandom::new(7);
        let centres = [[3.0, 0.0, 40.0], [0.0, 3.0, 41.0], [-3.0, -3.0, 40.5]];
        let mut made = (Vec::new(), Vec::new());
        for _ in 0..per_class {
            for (class, centre) in centres.iter().enumerate() {
                made.0.push(centre.iter().map(|number| number + 2.0 * dice.fraction() - 1.0).collect());
                made.1.push(class);
            }
        }
        made
    }

    fn right(model: &LogisticModel, rows: &[Vec<f32>], classes: &[usize]) -> usize {
        let likeliest = |row: &Vec<f32>| {
            let weights = model.weigh(row);
            (0..weights.len()).max_by(|one, other| weights[*one].total_cmp(&weights[*other])).unwrap()
        };
        rows.iter().zip(classes).filter(|(row, class)| likeliest(row) == **class).count()
    }

    #[test]
    fn it_learns_what_can_be_told_apart_and_carries_over() {
        let (all, classes) = rows(60);
        let (seen, unseen) = all.split_at(90);
        let seen: Vec<&[f32]> = seen.iter().map(Vec::as_slice).collect();
        let model = LogisticModel::fit(&seen, &classes[..90], 3, 1.0);
        assert_eq!(right(&model, unseen, &classes[90..]), 90);
        assert_eq!(model, LogisticModel::fit(&seen, &classes[..90], 3, 1.0), "nothing is left to chance");
    }

    #[test]
    fn a_larger_penalty_makes_it_less_sure() {
        let (all, classes) = rows(30);
        let all: Vec<&[f32]> = all.iter().map(Vec::as_slice).collect();
        let lead = |penalty| {
            let weights = LogisticModel::fit(&all, &classes, 3, penalty).weigh(&[3.0, 0.0, 40.0]);
            weights[0] - weights[1]
        };
        assert!(lead(1.0) > 2.0 * lead(1_000.0), "{} {}", lead(1.0), lead(1_000.0));
        assert!(lead(1_000.0) > 0.0);
    }

    #[test]
    fn where_nothing_can_be_learned_the_frequency_of_the_classes_is() {
        let same = [1.0_f32, 2.0];
        let (rows, classes) = ([&same[..]; 4], [0, 0, 0, 1]);
        let weights = LogisticModel::fit(&rows, &classes, 2, 1.0).weigh(&same);
        let odds = (weights[0] - weights[1]).exp();
        assert!((odds - 3.0).abs() < 0.05, "{odds}");
        let crooked = LogisticModel::fit(&[&same[..], &same[..1]], &[0, 1], 2, 1.0);
        assert_eq!(crooked.weigh(&same), [0.0, 0.0], "rows of different lengths say nothing");
    }
}
