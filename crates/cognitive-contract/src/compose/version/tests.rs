//! Tests of ranges: the specification's table, every form with matching and other versions, and rejections.

use proptest::prelude::*;

use super::*;

fn fits_range(range: &str, version: &str) -> bool {
    VersionRange::parse(range).unwrap_or_else(|| panic!("{range}")).matches(version)
}

// REG-006: `latest` is any stable version.
#[test]
fn comp_020_reg_006_every_form_of_a_range() {
    for (range, inside, outside) in [
        ("1.2.3", "1.2.3 1.2.3+build", "1.2.4 1.2.2 1.2.3-rc.1 2.0.0"),
        ("=1.2.3", "1.2.3", "1.2.4"),
        (">=1.2.3", "1.2.3 1.2.4 2.0.0 10.0.0", "1.2.2 1.2.3-rc.1 2.0.0-beta"),
        (">1.2.3", "1.2.4 2.0.0", "1.2.3"),
        ("<=1.2.3", "1.2.3 0.0.0", "1.2.4"),
        ("<1.2.3", "1.2.2 0.9.0", "1.2.3 1.2.3-rc.1"),
        ("^1.2.3", "1.2.3 1.10.0 1.999.0", "1.2.2 2.0.0 0.9.0 2.0.0-alpha 1.3.0-alpha"),
        ("^0.2.3", "0.2.3 0.2.9", "0.3.0 1.0.0 0.2.2"),
        ("^0.0.3", "0.0.3", "0.0.4 0.1.0"),
        ("^0.0", "0.0.0 0.0.9", "0.1.0"),
        ("^1", "1.0.0 1.9.9", "2.0.0 0.9.9"),
        ("^0", "0.0.1 0.9.9", "1.0.0"),
        ("~1.2.3", "1.2.3 1.2.99", "1.3.0 1.2.2"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0"),
        ("~1", "1.0.0 1.9.0", "2.0.0"),
        ("1.2", "1.2.0 1.2.9", "1.3.0 1.1.9"),
        ("1.x", "1.0.0 1.9.9", "2.0.0"),
        ("1.2.*", "1.2.0", "1.3.0"),
        (">1.2", "1.3.0 2.0.0", "1.2.9"),
        ("<=1.2", "1.2.9 0.1.0", "1.3.0"),
        ("*", "0.0.1 99.0.0", "1.0.0-beta"),
        ("x", "0.0.1", "1.0.0-beta"),
        ("", "0.0.1", "1.0.0-beta"),
        ("latest", "0.0.1", "1.0.0-beta"),
        (">=*", "0.0.1", "1.0.0-beta"),
        (">=1.0.0 <2.0.0", "1.0.0 1.9.9", "0.9.0 2.0.0"),
        (">=1.0.0, <2.0.0", "1.0.0 1.9.9", "0.9.0 2.0.0"),
        (">= 1.0.0 < 2.0.0", "1.0.0 1.9.9", "0.9.0 2.0.0"),
        ("1.0.0 - 2.0.0", "1.0.0 2.0.0 1.5.0", "0.9.9 2.0.1"),
        ("1 - 2", "1.0.0 2.9.9", "0.9.9 3.0.0"),
        ("1.0.0 || ^3.0.0", "1.0.0 3.5.0", "1.0.1 2.0.0 4.0.0"),
        // Unsatisfiable ranges match nothing.
        (">1.0.0 <0.5.0", "", "0.2.0 0.7.0 1.0.1 2.0.0"),
        ("^1.0.0 ^2.0.0", "", "1.0.0 2.0.0"),
    ] {
        for version in inside.split_whitespace() {
            assert!(fits_range(range, version), "{version} is in {range}");
        }
        for version in outside.split_whitespace() {
            assert!(!fits_range(range, version), "{version} is not in {range}");
        }
    }
}

#[test]
fn comp_020_a_pre_release_fits_only_a_range_that_names_it() {
    for range in ["1.0.0-beta.2", ">=1.0.0-beta.2", "^1.0.0-beta.2", "2.0.0 || 1.0.0-beta.2"] {
        assert!(fits_range(range, "1.0.0-beta.2"), "{range}");
        assert!(!fits_range(range, "1.0.0-beta.3"), "{range}");
    }
    assert!(fits_range("^1.0.0-beta.2", "1.0.0") && fits_range("^1.0.0-beta.2", "1.4.0"));
    assert!(!fits_range(">=2.0.0 <=1.0.0-beta.2", "1.0.0-beta.2"));
}

#[test]
fn comp_042_what_is_no_range_is_refused() {
    for text in [
        "v1.0.0",
        "1.0.0 foo",
        "foo",
        "^",
        ">=",
        "1.0.0 ||",
        "||",
        "1.2.3.4",
        "01.0.0",
        "1.0.0-",
        "1.0.0-01",
        "!=1.0.0",
        "=>1.0.0",
        "~>1.2",
        "1.x.3",
        "-1",
        "1.0.0 -",
        "- 1.0.0",
        "><1.0.0",
        "1.0.0+",
        "1.0.0-é",
        "99999999999999999999.0.0",
        "<*",
        ">x",
        "1,,x y",
        "1.0.0 - 2.0.0 - 3.0.0",
    ] {
        assert_eq!(VersionRange::parse(text), None, "{text}");
    }
    assert_eq!(VersionRange::parse(&"1 ".repeat(200)), None);
}

#[test]
fn comp_021_text_that_is_no_version_is_in_no_range_but_any() {
    for version in ["", "1.0", "v1.0.0", "latest"] {
        assert!(fits_range("*", version), "{version}");
        assert!(!fits_range(">=0.0.0", version), "{version}");
    }
}

#[test]
fn the_order_is_that_of_semantic_versioning() {
    let rising = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.2.0",
        "1.10.0",
        "2.0.0",
    ];
    let versions: Vec<Version> = rising.iter().map(|text| version_of(text).unwrap()).collect();
    assert!(versions.is_sorted_by(|left, right| left.cmp_precedence(right).is_lt()));
}

proptest! {
    #[test]
    fn any_text_has_an_answer(range in "[0-9x*^~<>=|., +a-c-]{0,20}|\\PC{0,40}", version in "[0-9.a-b-]{0,12}|\\PC{0,20}") {
        if let Some(range) = VersionRange::parse(&range) {
            let _ = range.matches(&version);
        }
    }

    #[test]
    fn bounds_are_plain_comparisons(low in [0_u64..4, 0..4, 0..4], version in [0_u64..4, 0..4, 0..4]) {
        let [a, b, c] = low;
        let [x, y, z] = version;
        let text = format!("{x}.{y}.{z}");
        let fits = |operator: &str| fits_range(&format!("{operator}{a}.{b}.{c}"), &text);
        prop_assert_eq!(fits(""), version == low);
        prop_assert_eq!(fits(">="), version >= low);
        prop_assert_eq!(fits("<"), version < low);
        prop_assert_eq!(fits("~"), x == a && y == b && z >= c);
        let compatible = if a > 0 { x == a } else if b > 0 { x == 0 && y == b } else { version == low };
        prop_assert_eq!(fits("^"), compatible && version >= low);
    }
}
