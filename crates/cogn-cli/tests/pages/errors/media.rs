//! Errors about media items, on the command line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::{Act, FakeModel, Home};
use serde_json::{Value, json};

use crate::home;

use super::modules::{error, module, plain};

/// Runs a module on one image.
fn with_image(place: &Home, item: Value) -> Value {
    module(place, "viewer", "modalities: {input: [text, image]}", &plain());
    place.write("input.json", json!({ "images": [item] }).to_string());
    error(place, &["run", "viewer", "input.json", "--provider", "openai"])
}

/// Runs the module on bytes that are labelled as a PNG.
fn with_bytes(place: &Home, bytes: &[u8]) -> Value {
    with_image(place, json!({ "type": "base64", "media_type": "image/png", "data": STANDARD.encode(bytes) }))
}

/// A black image.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(width, height).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub(crate) fn unknown_type(_: &Value) -> Value {
    with_image(&home(), json!({ "type": "base64", "media_type": "image/tiff", "data": "AAAA" }))
}

pub(crate) fn too_many_bytes(_: &Value) -> Value {
    with_bytes(&home(), &vec![0; 24 << 20])
}

pub(crate) fn nothing_at_the_address(_: &Value) -> Value {
    let (place, host) = (home(), FakeModel::script(vec![Act::reply(404, "", "")]));
    place.user_config(&format!("media: {{trusted_origins: [\"http://{}\"]}}\n", host.address));
    with_image(&place, json!({ "type": "url", "url": format!("http://{}/photo.png", host.address) }))
}

pub(crate) fn data_url(_: &Value) -> Value {
    let data = "data:image/png;base64,AAAA";
    with_image(&home(), json!({ "type": "base64", "media_type": "image/png", "data": data }))
}

pub(crate) fn other_type(_: &Value) -> Value {
    with_bytes(&home(), b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01")
}

pub(crate) fn too_wide(_: &Value) -> Value {
    with_bytes(&home(), &png(9000, 300))
}

pub(crate) fn too_small(_: &Value) -> Value {
    let place = home();
    place.user_config("media: {shortest_side: 10}\n");
    with_bytes(&place, &png(1, 1))
}

pub(crate) fn too_many_pixels(_: &Value) -> Value {
    with_bytes(&home(), &png(9000, 9000))
}

pub(crate) fn wrong_checksum(_: &Value) -> Value {
    let checksum = json!({ "algorithm": "sha256", "value": "0".repeat(64) });
    let data = STANDARD.encode(png(16, 16));
    with_image(
        &home(),
        json!({ "type": "base64", "media_type": "image/png", "data": data, "checksum": checksum }),
    )
}

pub(crate) fn no_video(_: &Value) -> Value {
    let place = home();
    module(&place, "film", "modalities: {input: [text, video]}", &plain());
    let data = STANDARD.encode(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom");
    let input = json!({ "video": { "type": "base64", "media_type": "video/mp4", "data": data } }).to_string();
    error(&place, &["run", "film", "--provider", "openai", "--input", &input])
}
