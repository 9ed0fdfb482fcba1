//! Compares every block type with the numbers that the Python package `gguf` reads from it (`tests/data/blocks.py`).

use serde_json::Value;

use super::Encoding;
use crate::gguf::Tensor;
use crate::tiles::Matrix;

fn encoding(name: &str) -> Encoding {
    let found = Encoding::OF_MATRICES.into_iter().find(|encoding| format!("{encoding:?}") == name);
    found.unwrap_or_else(|| panic!("{name}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

fn rows(encoding: Encoding, columns: usize, rows: usize, bytes: &[u8]) -> Vec<f32> {
    let matrix = Matrix::pack(&Tensor { encoding, columns, rows, bytes }, "blocks").unwrap();
    let mut out = vec![0.0; rows * columns];
    out.chunks_mut(columns).enumerate().for_each(|(row, out)| matrix.row(row, out));
    out
}

#[test]
fn blocks_hold_the_numbers_that_others_read_out_of_them() {
    let cases: Value = serde_json::from_str(include_str!("../../tests/data/blocks.json")).unwrap();
    let mut seen = 0;
    for case in cases.as_array().unwrap() {
        let (name, bytes) = (case["type"].as_str().unwrap(), bytes(case["bytes"].as_str().unwrap()));
        let theirs: Vec<f64> =
            case["numbers"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let encoding = encoding(name);
        let (numbers, _) = encoding.block();
        // One row and two rows: a second block is written to a second tile and to a second row.
        for count in [1, 2] {
            let ours = rows(encoding, theirs.len() / count, count, &bytes);
            // The product of a 6-bit scale and its unit is rounded to a half: by 1/2,048 of the largest number at most.
            let largest = theirs.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            let allowed = if numbers == 256 { largest / 2_048.0 } else { largest * 1e-6 };
            for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                assert!((f64::from(*ours) - theirs).abs() <= allowed, "{name} {at}: {ours} {theirs}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen + 2, Encoding::OF_MATRICES.len(), "all but the plain numbers");
}

#[test]
fn upper_halves_of_floats_are_rounded_like_halves() {
    let numbers: Vec<f32> = (0..128_u16).map(|step| f32::from(step % 61) / 8.0 - 3.0).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()[2..].to_vec()).collect();
    for (ours, number) in rows(Encoding::BF16, 64, 2, &bytes).iter().zip(&numbers) {
        assert!((ours - number).abs() < 4.5 / 127.0 / 2.0 + 1e-3, "{ours} {number}");
    }
}

#[test]
fn types_that_are_not_computed_are_refused_by_name() {
    for (kind, name) in [(10, "Q2_K"), (23, "IQ4_XS"), (39, "MXFP4"), (77, "77")] {
        let refusal = Encoding::from_number(kind, "blk.0.x").unwrap_err().to_string();
        assert!(refusal.contains(&format!("`blk.0.x` has type {name};")), "{refusal}");
    }
}
