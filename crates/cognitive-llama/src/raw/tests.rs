//! Compares every kernel of this processor with the portable one, on random weights and activations.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "random numbers and tolerances"
)]

use proptest::prelude::*;

use super::super::activations::Activations;
use super::super::blocks::Encoding;
use super::super::gguf::Tensor;
use super::super::product::multiply;
use super::super::tiles::Matrix;
use super::{Kernel, SIDE_BY_SIDE};

/// The offsets of the halves in a block.
fn halves(encoding: Encoding) -> &'static [usize] {
    match encoding {
        Encoding::Q4_1 | Encoding::Q5_1 | Encoding::Q4_K | Encoding::Q5_K => &[0, 2],
        Encoding::Q3_K => &[108],
        Encoding::Q6_K => &[208],
        _ => &[0],
    }
}

/// Creates a tensor with scales of ordinary size and random bytes elsewhere.
fn tensor_bytes(encoding: Encoding, rows: usize, columns: usize, seed: u64) -> Vec<u8> {
    let (numbers, size) = encoding.block();
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    for _ in 0..rows * columns / numbers {
        let mut block: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        for place in halves(encoding) {
            // The same bits mean a larger number in a half than in the upper half of a float.
            let smallest = if encoding == Encoding::BF16 { 0x3c00 } else { 0x2000 };
            let half = smallest + (random.next() % 0x400) as u16 + ((random.next() % 2) as u16) * 0x8000;
            block[*place..place + 2].copy_from_slice(&half.to_le_bytes());
        }
        bytes.extend(block);
    }
    bytes
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.next() % 20_001) as f32 / 1_000.0 - 10.0).collect()
    }
}

/// The product in double precision, from the rows as the matrix returns them.
fn exact(matrix: &Matrix, x: &[f32]) -> Vec<f64> {
    let mut row = vec![0.0; matrix.columns];
    let mut out = Vec::new();
    for x in x.chunks(matrix.columns) {
        for index in 0..matrix.rows {
            matrix.row(index, &mut row);
            out.push(row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum());
        }
    }
    out
}

fn product(kernel: Kernel, matrix: &Matrix, x: &[f32]) -> Vec<f32> {
    let mut packed = Activations::default();
    packed.quantise(kernel, x, matrix.columns);
    let mut out = vec![f32::NAN; x.len() / matrix.columns * matrix.rows];
    multiply(kernel, matrix, &packed, &mut out);
    out
}

/// The largest possible size of each product: the weights of its row times the largest activation.
fn reach(matrix: &Matrix, tokens: usize) -> Vec<f64> {
    let mut row = vec![0.0; matrix.columns];
    let of_rows: Vec<f64> = (0..matrix.rows)
        .map(|index| {
            matrix.row(index, &mut row);
            row.iter().map(|weight| f64::from(weight.abs()) * 10.0).sum()
        })
        .collect();
    of_rows.repeat(tokens)
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn encodings() -> impl Strategy<Value = Encoding> {
    prop::sample::select(Encoding::OF_MATRICES.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn products_agree_on_all_kernels_and_with_the_definition(
        encoding in encodings(), rows in 1_usize..50, blocks in 1_usize..7, tokens in 1_usize..20, seed: u64,
    ) {
        let columns = encoding.block().0.max(32) * blocks;
        let bytes = tensor_bytes(encoding, rows, columns, seed);
        let matrix = Matrix::pack(&Tensor { encoding, columns, rows, bytes: &bytes }, "random").unwrap();
        let x = Random(!seed).floats(tokens * columns);
        let definition = exact(&matrix, &x);
        let kernels = Kernel::available();
        let results: Vec<_> = kernels.iter().map(|kernel| product(*kernel, &matrix, &x)).collect();
        let (portable, reach) = (results.last().unwrap(), reach(&matrix, tokens));
        for (kernel, result) in kernels.iter().zip(&results) {
            for (index, value) in result.iter().enumerate() {
                let (value, other) = (f64::from(*value), f64::from(portable[index]));
                // Activations have seven bits and a sign, so the error of each is at most half a step. Products that
                // cancel out have the same error as others, so the bound is relative to the largest possible product.
                let off = (value - definition[index]).abs();
                prop_assert!(off <= reach[index] / 127.0 + 1e-3, "{}: {off}", kernel.name());
                prop_assert!((value - other).abs() <= 1e-5 * reach[index] + 1e-4, "{}: {value} {other}", kernel.name());
            }
        }
        // The vector kernels round identically.
        for pair in results[..results.len() - 1].windows(2) {
            prop_assert_eq!(bits(&pair[0]), bits(&pair[1]));
        }
    }

    #[test]
    fn a_token_is_computed_alike_alone_and_in_company(
        encoding in encodings(), rows in 1_usize..40, tokens in 1_usize..20, seed: u64,
    ) {
        let columns = encoding.block().0.max(96).next_multiple_of(32);
        let bytes = tensor_bytes(encoding, rows, columns, seed);
        let matrix = Matrix::pack(&Tensor { encoding, columns, rows, bytes: &bytes }, "random").unwrap();
        let x = Random(!seed).floats(tokens * columns);
        for kernel in Kernel::available() {
            let together = product(kernel, &matrix, &x);
            let alone: Vec<f32> = x.chunks(columns).flat_map(|x| product(kernel, &matrix, x)).collect();
            prop_assert_eq!(bits(&together), bits(&alone));
        }
    }

    #[test]
    fn blends_agree_on_all_kernels(count in 0_usize..70, stride in 32_usize..100, missing in 0_usize..3, seed: u64) {
        let mut random = Random(seed);
        let weights = [random.floats(count), random.floats(count), random.floats(count)];
        let values = random.floats(count.saturating_sub(missing) * stride);
        let start: [[f32; SIDE_BY_SIDE]; 3] =
            [(); 3].map(|()| random.floats(SIDE_BY_SIDE).try_into().unwrap());
        let results: Vec<_> = Kernel::available().into_iter().map(|kernel| {
            let mut sums = start;
            kernel.blend(&mut sums, weights.each_ref().map(|weights| &weights[..]), &values, stride);
            sums
        }).collect();
        let portable = results.last().unwrap();
        for result in &results {
            for (one, other) in result.as_flattened().iter().zip(portable.as_flattened()) {
                prop_assert!((one - other).abs() <= 0.01, "{one} {other}");
            }
        }
        for pair in results[..results.len() - 1].windows(2) {
            prop_assert_eq!(bits(pair[0].as_flattened()), bits(pair[1].as_flattened()));
        }
    }
}

#[test]
fn the_extremes_of_both_sides_do_not_overflow() {
    for encoding in Encoding::OF_MATRICES {
        for filler in [0x00, 0x7f, 0x80, 0xff] {
            let (numbers, size) = encoding.block();
            let mut block = vec![filler; size];
            for place in halves(encoding) {
                block[*place..place + 2].copy_from_slice(&0x3c00_u16.to_le_bytes());
            }
            let columns = numbers.max(32);
            let bytes = block.repeat(17 * columns / numbers);
            let matrix =
                Matrix::pack(&Tensor { encoding, columns, rows: 17, bytes: &bytes }, "full").unwrap();
            for x in [127.0, -127.0] {
                let x = vec![x; columns];
                let definition = exact(&matrix, &x);
                for kernel in Kernel::available() {
                    let result = product(kernel, &matrix, &x);
                    let near = |(one, other): (&f32, &f64)| {
                        (f64::from(*one) - other).abs() <= 1.0 + other.abs() * 1e-5
                    };
                    assert!(
                        result.iter().zip(&definition).all(near),
                        "{encoding:?} {filler} {}: {result:?} {definition:?}",
                        kernel.name()
                    );
                }
            }
        }
    }
}
