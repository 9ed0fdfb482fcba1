//! Media that strangers send, as any bytes under any claim: looked into, and brought into a form for a provider. A panic
//! of a decoder of somebody else is caught and a code; one of ours is a finding.

use std::sync::LazyLock;

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, Category, MediaSource, MediaType};
use cognitive_media::{Documents, Media};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
});

/// Any image.
pub fn image(data: &[u8]) {
    look(data, Category::Image);
}

/// Any sound.
pub fn sound(data: &[u8]) {
    look(data, Category::Audio);
}

/// Any film.
pub fn video(data: &[u8]) {
    look(data, Category::Video);
}

/// Any document.
pub fn document(data: &[u8]) {
    look(data, Category::Document);
}

/// The first byte chooses what the item is said to be.
fn look(data: &[u8], category: Category) {
    static FORM: &[MediaType] = &[MediaType::Png, MediaType::Jpeg];
    let Some((choice, bytes)) = data.split_first() else { return };
    let types: Vec<MediaType> = MediaType::all().filter(|kind| kind.category() == category).collect();
    let Some(claimed) = types.get(usize::from(*choice) % types.len()) else { return };
    let bytes = Bytes::copy_from_slice(bytes);
    let media = Media::new(Documents::Here);
    RUNTIME.block_on(async {
        let Ok(facts) = media.examine(bytes.clone(), *claimed).await else { return };
        // A picture of fifty million points is allowed, and takes too long to be made a thousand times.
        if facts.size.is_some_and(|(width, height)| width.saturating_mul(height) > 1 << 20) {
            return;
        }
        let form = AcceptedForm::from_types(FORM).with_longest_side(64);
        let form = (category == Category::Image).then_some(&form);
        let _ = media.fit(bytes, &facts, form).await;
    });
}
