//! Documents: pages and text, including fonts with their own letter codes.

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, FormedMedia, MediaSource as _, MediaType};
use cognitive_media::{Documents, Media};

use crate::support::documents::{HELVETICA, document_with, of_pages, page, stream, with_text};
use crate::support::{code, examine, media};

async fn text(document: &[u8]) -> String {
    let facts = examine(document, MediaType::Pdf).await.unwrap();
    match media().fit(Bytes::copy_from_slice(document), &facts, None).await.unwrap() {
        FormedMedia::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// A map from two bytes to letters, as programs write it for fonts with their own codes.
const MAP: &[u8] = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /X def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
2 beginbfchar <0001> <4F60> <0002> <597D> endbfchar
1 beginbfrange <0010> <0012> <0041> endbfrange
endcmap CMapName currentdict /CMap defineresource pop end end";

#[tokio::test]
async fn media_015_the_text_of_a_document() {
    assert_eq!(text(&with_text("hello pdf")).await, "hello pdf");
    let lines = b"BT /F1 12 Tf 5 40 Td (one) Tj 0 -14 Td (two) Tj T* [(th) -20 (ree) -400 (four)] TJ ET";
    assert_eq!(text(&page(lines, HELVETICA, &[])).await, "one\ntwo\nthree four");
    assert_eq!(text(&of_pages(3)).await, "page\n\npage\n\npage");
}

#[tokio::test]
async fn media_015_letters_of_a_map_are_read_by_it() {
    let drawing = b"BT /F1 12 Tf <000100020010> Tj ET";
    let font = |encoding: &str| {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding{encoding}/DescendantFonts[]/ToUnicode 6 0 R>>"
        )
    };
    for encoding in ["/Identity-H", "/90ms-RKSJ-H", "/GBK-EUC-H"] {
        let document = page(drawing, &font(encoding), &[stream("", MAP)]);
        assert_eq!(text(&document).await, "你好A", "{encoding}");
    }
    let simple = "<</Type/Font/Subtype/TrueType/BaseFont/X/Encoding/WinAnsiEncoding/ToUnicode 6 0 R>>";
    let map = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /X def /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfchar <61> <00DF> endbfchar
endcmap CMapName currentdict /CMap defineresource pop end end";
    assert_eq!(text(&page(b"BT /F1 9 Tf (a) Tj ET", simple, &[stream("", map)])).await, "ß");
}

#[tokio::test]
async fn media_015_unicode_needs_no_map() {
    let font = "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/UniJIS-UTF16-H/DescendantFonts[]>>";
    assert_eq!(text(&page(b"BT /F1 9 Tf <65E5672C> Tj ET", font, &[])).await, "日本");
    // Without either map the letters are unknown, so the text is empty rather than wrong.
    let font = "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[]>>";
    assert_eq!(text(&page(b"BT /F1 9 Tf <65E5672C> Tj ET", font, &[])).await, "");
}

#[tokio::test]
async fn media_015_text_in_forms_is_text_too() {
    let form = stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"BT /F1 9 Tf (inner) Tj ET");
    assert_eq!(text(&page(b"/X1 Do BT /F1 9 Tf (outer) Tj ET", HELVETICA, &[form])).await, "inner\nouter");
    // A form that uses itself does not loop.
    let own = stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", b"BT /F1 9 Tf (x) Tj ET /X1 Do /X1 Do");
    assert!(text(&page(b"/X1 Do", HELVETICA, &[own])).await.starts_with("x\nx"));
}

#[tokio::test]
async fn a_scanned_document_has_no_text() {
    let scan = stream("/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8", b"x");
    assert_eq!(text(&page(b"q 9 0 0 9 0 0 cm /X1 Do Q", HELVETICA, &[scan])).await, "");
}

#[tokio::test]
async fn five_hundred_pages_and_no_more() {
    assert_eq!(examine(&of_pages(500), MediaType::Pdf).await.unwrap().pages, Some(500));
    assert_eq!(code(examine(&of_pages(501), MediaType::Pdf).await), "E1011");
}

#[tokio::test]
async fn a_locked_document_is_said_to_be_locked() {
    let lock = "<</Filter/Standard/V 2/R 3/Length 128/P -4\
        /O<28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A>\
        /U<1234567890ABCDEF1234567890ABCDEF00000000000000000000000000000000>>>";
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R>>".to_vec(),
        lock.as_bytes().to_vec(),
    ];
    let id = "/Encrypt 4 0 R/ID[<00112233445566778899AABBCCDDEEFF><00112233445566778899AABBCCDDEEFF>]";
    let failure = examine(&document_with(&objects, id), MediaType::Pdf).await.unwrap_err();
    assert_eq!(failure.code().number(), "E1013");
    assert!(failure.message().contains("password"), "{}", failure.message());
}

#[tokio::test]
async fn media_015_a_provider_that_reads_documents_gets_it_as_it_is() {
    let document = with_text("native");
    let facts = examine(&document, MediaType::Pdf).await.unwrap();
    let form = AcceptedForm::from_types(&[MediaType::Pdf]);
    let fitted = media().fit(Bytes::from(document.clone()), &facts, Some(&form)).await.unwrap();
    assert_eq!(fitted, FormedMedia::AsItIs);
    let small = form.up_to(10);
    assert_eq!(code(media().fit(Bytes::from(document), &facts, Some(&small)).await), "E1011");
}

#[tokio::test]
async fn a_worker_that_does_not_answer_is_given_up() {
    let lost = |program: &str, arguments: &[&str]| {
        let worker = cognitive_media::Worker::new(program.into(), arguments);
        Media::new(Documents::InWorker(worker.patient_for(std::time::Duration::from_millis(50))))
    };
    let document = Bytes::from(with_text("x"));
    let asleep = lost("/bin/sleep", &["60"]).examine(document.clone(), MediaType::Pdf).await;
    assert_eq!(code(asleep), "E1011");
    let absent = lost("/nowhere/at/all", &[]).examine(document.clone(), MediaType::Pdf).await;
    assert_eq!(code(absent), "E4000");
    let here = Media::new(Documents::Here).examine(document, MediaType::Pdf).await;
    assert_eq!(here.unwrap().pages, Some(1));
}
