//! Valid files with some changed bytes: each must get an answer with a known code.

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, MediaSource as _, MediaType};
use cognitive_media::{Documents, Media};
use proptest::prelude::*;

use crate::support::{USUAL, code, examine, fit, samples};

fn answer(kind: MediaType, bytes: &[u8]) -> (&'static str, &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let looked = code(examine(bytes, kind).await);
        (looked, code(fit(bytes, kind, &AcceptedForm::from_types(USUAL).with_longest_side(4)).await))
    })
}

fn read_here(bytes: Vec<u8>) -> &'static str {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (media, bytes) = (Media::new(Documents::Here), Bytes::from(bytes));
    runtime.block_on(async {
        match media.examine(bytes.clone(), MediaType::Pdf).await {
            Ok(facts) => code(media.fit(bytes, &facts, None).await),
            failed => code(failed),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    // In this process, so that a panic fails the test.
    #[test]
    fn a_changed_document_gets_an_answer(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (_, mut bytes) = samples().swap_remove(11);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let answer = read_here(bytes);
        prop_assert!(["ok", "E1011", "E1013", "E1014"].contains(&answer), "{answer}");
    }

    #[test]
    fn a_changed_file_gets_an_answer(
        which in 0..11_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        // All types but documents, which a separate process reads.
        let (kind, mut bytes) = samples().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let known = ["ok", "E1010", "E1011", "E1013", "E1014", "E1015", "E1016", "E1017", "E4011"];
        let (looked, fitted) = answer(kind, &bytes);
        prop_assert!(known.contains(&looked) && known.contains(&fitted), "{kind}: {looked} {fitted}");
    }
}
