//! Pictures: inspection without decoding, and conversion.

use cognitive_contract::media::{AcceptedForm, FormedMedia, MediaType};
use image::{DynamicImage, GenericImageView as _, ImageFormat, Rgba, RgbaImage};

use crate::support::pictures::{
    chunk, contains, decode, encode, exif, exif_segment, extended_webp, gif, header, jpeg, noise, png,
    png_of, quarters, riff_chunk, stored, webp, with_chunk, with_segments,
};
use crate::support::{USUAL, code, examine, fit};

const LOSSY_WEBP: &[u8] = b"RIFF\x22\0\0\0WEBPVP8 \x16\0\0\0\x30\x01\0\x9d\x01\x2a\x01\0\x01\0\x0e\xc0\xfe\x25\xa4\0\x03\x70\0\0\0\0";

async fn changed(bytes: &[u8], kind: MediaType, form: &AcceptedForm) -> (MediaType, Vec<u8>) {
    match fit(bytes, kind, form).await.unwrap() {
        FormedMedia::Changed { media_type, bytes } => (media_type, bytes.to_vec()),
        other => panic!("{kind}: {other:?}"),
    }
}

fn usual() -> AcceptedForm {
    AcceptedForm::from_types(USUAL)
}

fn near(picture: &DynamicImage, at: (u32, u32), colour: [u8; 3]) -> bool {
    let found = picture.get_pixel(at.0, at.1).0;
    colour.iter().zip(found).all(|(wanted, found)| wanted.abs_diff(found) < 40)
}

#[tokio::test]
async fn media_023_what_fits_is_passed_on_untouched() {
    for (kind, bytes) in [
        (MediaType::Png, png(8, 6)),
        (MediaType::Jpeg, jpeg(8, 6)),
        (MediaType::Webp, webp(8, 6)),
        (MediaType::Webp, LOSSY_WEBP.to_vec()),
    ] {
        assert_eq!(
            fit(&bytes, kind, &usual().with_longest_side(8)).await.unwrap(),
            FormedMedia::AsItIs,
            "{kind}"
        );
        let facts = examine(&bytes, kind).await.unwrap();
        assert!(!facts.annotated && !facts.animated && !facts.turned, "{kind}");
    }
}

#[tokio::test]
async fn every_kind_of_png_is_read_and_can_be_converted() {
    // Colour type, depths, channels.
    let kinds: [(u8, &[u8], usize); 5] = [
        (0, &[1, 2, 4, 8, 16], 1),
        (2, &[8, 16], 3),
        (3, &[1, 2, 4, 8], 1),
        (4, &[8, 16], 2),
        (6, &[8, 16], 4),
    ];
    for (colours, depths, channels) in kinds {
        for bits in depths {
            for interlaced in [0, 1] {
                let file = odd_png(colours, *bits, channels, interlaced);
                let name = format!("type {colours}, {bits} bits, interlaced {interlaced}");
                assert_eq!(examine(&file, MediaType::Png).await.unwrap().size, Some((9, 7)), "{name}");
                assert_eq!(
                    fit(&file, MediaType::Png, &usual()).await.unwrap(),
                    FormedMedia::AsItIs,
                    "{name}"
                );
                let (kind, bytes) =
                    changed(&file, MediaType::Png, &AcceptedForm::from_types(&[MediaType::Jpeg])).await;
                assert_eq!((kind, decode(&bytes).dimensions()), (MediaType::Jpeg, (9, 7)), "{name}");
            }
        }
    }
}

/// A PNG of 9×7 pixels, with all samples zero.
fn odd_png(colours: u8, bits: u8, channels: usize, interlaced: u8) -> Vec<u8> {
    let row = |width: usize| vec![0; 1 + (width * channels * usize::from(bits)).div_ceil(8)];
    let passes: &[[usize; 4]] = if interlaced == 0 {
        &[[0, 0, 1, 1]]
    } else {
        &[[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]]
    };
    let mut raw = Vec::new();
    for [left, top, across, down] in passes {
        let (width, height) = ((9 - left).div_ceil(*across), (7 - top).div_ceil(*down));
        (0..height).for_each(|_| raw.extend(row(width)));
    }
    let palette = if colours == 3 { chunk(b"PLTE", &[9, 99, 200]) } else { Vec::new() };
    png_of(&[header(9, 7, bits, colours, interlaced), palette, chunk(b"IDAT", &stored(&raw))])
}

// S-30: the orientation is applied before it is removed.
#[tokio::test]
async fn every_orientation_comes_out_upright() {
    let (red, green, blue, white) = ([220, 20, 20], [20, 200, 20], [20, 20, 220], [240, 240, 240]);
    // The corners that a viewer shows: top left, top right, bottom left, bottom right.
    let shown = [
        [red, green, blue, white],
        [green, red, white, blue],
        [white, blue, green, red],
        [blue, white, red, green],
        [red, blue, green, white],
        [blue, red, white, green],
        [white, green, blue, red],
        [green, white, red, blue],
    ];
    for (orientation, corners) in (1..).zip(shown) {
        let turned = with_segments(&jpeg(64, 32), &[exif_segment(orientation)]);
        let size = if orientation > 4 { (32, 64) } else { (64, 32) };
        let facts = examine(&turned, MediaType::Jpeg).await.unwrap();
        assert_eq!((facts.size, facts.turned), (Some(size), orientation > 1), "{orientation}");
        let (_, bytes) = changed(&turned, MediaType::Jpeg, &usual()).await;
        let picture = decode(&bytes);
        assert_eq!(picture.dimensions(), size, "{orientation}");
        let (right, low) = (size.0 - 4, size.1 - 4);
        for (at, colour) in [(4, 4), (right, 4), (4, low), (right, low)].into_iter().zip(corners) {
            assert!(near(&picture, at, colour), "orientation {orientation} at {at:?}");
        }
        assert!(!contains(&bytes, b"GPS-N48"), "{orientation}");
    }
}

// SEC-004: providers receive no GPS data.
#[tokio::test]
async fn sec_004_notes_go_and_not_one_pixel_changes() {
    let notes = [
        exif_segment(1),
        (0xe1, b"http://ns.adobe.com/xap/1.0/\0<x>secret</x>".to_vec()),
        (0xed, b"Photoshop 3.0\x008BIM secret".to_vec()),
        (0xfe, b"secret".to_vec()),
        (0xe2, b"MPF\0secret".to_vec()),
        (0xe2, [b"ICC_PROFILE\0\x01\x01".to_vec(), vec![7; 200]].concat()),
    ];
    let plain = jpeg(40, 30);
    let file = [with_segments(&plain, &notes), b"and a secret film".to_vec()].concat();
    assert!(examine(&file, MediaType::Jpeg).await.unwrap().annotated);
    let (_, bytes) = changed(&file, MediaType::Jpeg, &usual()).await;
    assert_eq!(bytes, with_segments(&plain, &notes[5..]));

    let plain = png(8, 6);
    let text =
        [chunk(b"tEXt", b"Author\0secret"), chunk(b"eXIf", &exif(1)), chunk(b"zzZz", b"secret")].concat();
    let gamma = chunk(b"gAMA", &[0, 0, 177, 143]);
    let file = [with_chunk(&plain, &[text, gamma.clone()].concat()), b"PK\x03\x04secret".to_vec()].concat();
    let (_, bytes) = changed(&file, MediaType::Png, &usual()).await;
    assert_eq!(bytes, with_chunk(&plain, &gamma));

    let plain = webp(8, 6);
    let notes = [riff_chunk(b"EXIF", &exif(1)), riff_chunk(b"XMP ", b"secret!")].concat();
    let file = extended_webp(&plain, (8, 6), 0x0c, b"", &notes);
    let (_, bytes) = changed(&file, MediaType::Webp, &usual()).await;
    assert_eq!(bytes, extended_webp(&plain, (8, 6), 0, b"", b""));
    assert_eq!(decode(&bytes), decode(&plain));
}

#[tokio::test]
async fn notes_stay_if_the_operator_wants_them() {
    let file = with_segments(&jpeg(40, 30), &[exif_segment(6)]);
    let mut form = usual();
    form.keep_metadata = true;
    assert_eq!(fit(&file, MediaType::Jpeg, &form).await.unwrap(), FormedMedia::AsItIs);
}

// MEDIA-014: an animated GIF becomes one still image.
#[tokio::test]
async fn media_014_only_the_first_frame_is_left() {
    let film = gif(3);
    let facts = examine(&film, MediaType::Gif).await.unwrap();
    assert_eq!((facts.size, facts.animated, facts.annotated), (Some((10, 6)), true, true));
    let (kind, bytes) = changed(&film, MediaType::Gif, &usual()).await;
    assert_eq!(kind, MediaType::Gif);
    assert!(!contains(&bytes, b"secret"));
    assert!(!examine(&bytes, MediaType::Gif).await.unwrap().animated);
    assert_eq!(decode(&bytes).get_pixel(3, 3), Rgba([255, 0, 0, 255]));
    let (kind, bytes) = changed(&film, MediaType::Gif, &AcceptedForm::from_types(&[MediaType::Png])).await;
    assert_eq!((kind, decode(&bytes).get_pixel(3, 3)), (MediaType::Png, Rgba([255, 0, 0, 255])));
}

#[tokio::test]
async fn media_014_a_moving_png_stands_still() {
    let plain = png(8, 6);
    let moving = with_chunk(&plain, &[chunk(b"acTL", &[0; 8]), chunk(b"fcTL", &[0; 26])].concat());
    assert!(examine(&moving, MediaType::Png).await.unwrap().animated);
    assert_eq!(changed(&moving, MediaType::Png, &usual()).await.1, plain);
}

#[tokio::test]
async fn what_is_too_large_is_made_smaller_and_keeps_its_shape() {
    let (kind, bytes) = changed(&jpeg(900, 300), MediaType::Jpeg, &usual().with_longest_side(300)).await;
    let picture = decode(&bytes);
    assert_eq!((kind, picture.dimensions()), (MediaType::Jpeg, (300, 100)));
    assert!(near(&picture, (5, 5), [220, 20, 20]) && near(&picture, (295, 95), [240, 240, 240]));
    // A picture one pixel high keeps that pixel.
    let (_, bytes) = changed(&png(500, 1), MediaType::Png, &usual().with_longest_side(50)).await;
    assert_eq!(decode(&bytes).dimensions(), (50, 1));
}

#[tokio::test]
async fn what_is_too_heavy_is_made_lighter() {
    let heavy = encode(noise(400, 400), ImageFormat::Png);
    assert!(heavy.len() > 400_000);
    let (_, bytes) = changed(&heavy, MediaType::Png, &usual().up_to(20_000)).await;
    assert!(bytes.len() <= 20_000, "{}", bytes.len());
    assert_eq!(code(fit(&heavy, MediaType::Png, &usual().up_to(10)).await), "E1011");
}

#[tokio::test]
async fn drawings_stay_free_of_loss_and_glass_gets_a_white_ground() {
    let both = AcceptedForm::from_types(&[MediaType::Jpeg, MediaType::Png]).with_longest_side(20);
    assert_eq!(changed(&png(40, 40), MediaType::Png, &both).await.0, MediaType::Png);
    assert_eq!(changed(&jpeg(40, 40), MediaType::Jpeg, &both).await.0, MediaType::Jpeg);
    let glass = encode(RgbaImage::from_pixel(40, 40, Rgba([0, 0, 0, 0])), ImageFormat::WebP);
    assert_eq!(changed(&glass, MediaType::Webp, &both).await.0, MediaType::Png);
    let (_, bytes) = changed(&glass, MediaType::Webp, &AcceptedForm::from_types(&[MediaType::Jpeg])).await;
    assert!(near(&decode(&bytes), (9, 9), [255, 255, 255]));
    assert_eq!(
        code(fit(&png(9, 9), MediaType::Png, &AcceptedForm::from_types(&[MediaType::Gif])).await),
        "E4011"
    );
    assert_eq!(quarters(9, 9).dimensions(), (9, 9));
}

#[tokio::test]
async fn a_picture_without_sense_in_its_pixels_is_e1013_when_it_is_decoded() {
    let rubbish = png_of(&[header(9, 9, 8, 2, 0), chunk(b"IDAT", b"no zlib at all")]);
    assert_eq!(
        code(fit(&rubbish, MediaType::Png, &AcceptedForm::from_types(&[MediaType::Jpeg])).await),
        "E1013"
    );
}

// A size limit applies even if the provider states none, to stay within 200 MB. No other test covers this.
#[tokio::test]
async fn what_must_be_written_anew_is_never_written_huge() {
    let turned = with_segments(&jpeg(5_000, 1_000), &[exif_segment(6)]);
    let (_, bytes) = changed(&turned, MediaType::Jpeg, &usual()).await;
    assert_eq!(decode(&bytes).dimensions(), (614, 3_072));
}
