//! Errors about media items, on the command line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::modules::{error, module, plain};
use crate::stub::{Act, Stub};
use crate::support::Place;

/// Runs a module on one image.
fn with_image(place: &Place, item: Value) -> Value {
    module(place, "viewer", "modalities: {input: [text, image]}", &plain());
    place.write("input.json", json!({ "images": [item] }).to_string());
    error(place, &["run", "viewer", "input.json", "--provider", "openai"])
}

/// Runs the module on bytes that are labelled as a PNG.
fn with_bytes(place: &Place, bytes: &[u8]) -> Value {
    with_image(place, json!({ "type": "base64", "media_type": "image/png", "data": STANDARD.encode(bytes) }))
}

fn configure(place: &Place, text: &str) {
    place.write("../home/.cognitive/config.yaml", text);
}

/// A black image.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(width, height).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub(crate) fn unknown_type(_: &Value) -> Value {
    with_image(&Place::new(), json!({ "type": "base64", "media_type": "image/tiff", "data": "AAAA" }))
}

pub(crate) fn too_many_bytes(_: &Value) -> Value {
    with_bytes(&Place::new(), &vec![0; 24 << 20])
}

pub(crate) fn nothing_at_the_address(_: &Value) -> Value {
    let (place, host) = (Place::new(), Stub::start(vec![Act::reply(404, "", "")]));
    configure(&place, &format!("media: {{trusted_origins: [\"http://{}\"]}}\n", host.place));
    with_image(&place, json!({ "type": "url", "url": format!("http://{}/photo.png", host.place) }))
}

pub(crate) fn data_url(_: &Value) -> Value {
    let data = "data:image/png;base64,AAAA";
    with_image(&Place::new(), json!({ "type": "base64", "media_type": "image/png", "data": data }))
}

pub(crate) fn other_type(_: &Value) -> Value {
    with_bytes(&Place::new(), b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01")
}

pub(crate) fn too_wide(_: &Value) -> Value {
    with_bytes(&Place::new(), &png(9000, 300))
}

pub(crate) fn too_small(_: &Value) -> Value {
    let place = Place::new();
    configure(&place, "media: {shortest_side: 10}\n");
    with_bytes(&place, &png(1, 1))
}

pub(crate) fn too_many_pixels(_: &Value) -> Value {
    with_bytes(&Place::new(), &png(9000, 9000))
}

pub(crate) fn wrong_checksum(_: &Value) -> Value {
    let checksum = json!({ "algorithm": "sha256", "value": "0".repeat(64) });
    let data = STANDARD.encode(png(16, 16));
    with_image(
        &Place::new(),
        json!({ "type": "base64", "media_type": "image/png", "data": data, "checksum": checksum }),
    )
}

pub(crate) fn no_video(_: &Value) -> Value {
    let place = Place::new();
    module(&place, "film", "modalities: {input: [text, video]}", &plain());
    let data = STANDARD.encode(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom");
    let input = json!({ "video": { "type": "base64", "media_type": "video/mp4", "data": data } }).to_string();
    error(&place, &["run", "film", "--provider", "openai", "--input", &input])
}
