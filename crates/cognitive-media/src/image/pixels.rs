//! Decodes with a limit, scales, rotates and encodes. No other module of this crate decodes a picture.

use std::io::Cursor;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    DynamicImage, GenericImageView as _, ImageDecoder, ImageEncoder, ImageFormat, ImageReader, Limits,
};

use crate::fault::{broken_file, too_much};

/// The JPEG quality: hard to tell from the original, at a third of the bytes.
const QUALITY: u8 = 88;

/// The largest colour profile. Larger ones are not colour profiles.
const MAX_PROFILE_SIZE: usize = 1 << 20;

/// The memory limit of the good scaling filter, without the picture. Above it, averaging is used alone: it shows least
/// there.
const MAX_FLOATS: u64 = 100 << 20;

/// A decoded picture, eight bits per channel.
pub(super) struct Picture {
    image: DynamicImage,
    profile: Option<Vec<u8>>,
}

/// Decodes a picture, or the first frame of an animation. (E1011, E1013)
pub(super) fn decode(bytes: &Bytes, kind: MediaType, most_memory: u64) -> Result<Picture, Failure> {
    let format = match kind {
        MediaType::Jpeg => ImageFormat::Jpeg,
        MediaType::Gif => ImageFormat::Gif,
        MediaType::Webp => ImageFormat::WebP,
        _ => ImageFormat::Png,
    };
    let mut limits = Limits::default();
    limits.max_alloc = Some(most_memory);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| undecodable(kind, &error))?;
    let profile = decoder.icc_profile().ok().flatten();
    let image = DynamicImage::from_decoder(decoder).map_err(|error| undecodable(kind, &error))?;
    Ok(Picture { profile: profile.filter(|profile| describes(profile, &image)), image: in_bytes(image) })
}

fn undecodable(kind: MediaType, error: &image::ImageError) -> Failure {
    match error {
        image::ImageError::Limits(_) => too_much(kind, "would take too much memory to be decoded"),
        // The decoder's message about hostile bytes is not shown to the caller.
        _ => broken_file(kind, "cannot be decoded"),
    }
}

/// Returns whether a profile matches the decoded colours. One for print does not.
fn describes(profile: &[u8], image: &DynamicImage) -> bool {
    let space = profile.get(16..20);
    let wanted: &[u8; 4] = if image.color().has_color() { b"RGB " } else { b"GRAY" };
    profile.len() <= MAX_PROFILE_SIZE && space == Some(wanted)
}

/// Reduces channels to eight bits. No provider uses more.
fn in_bytes(image: DynamicImage) -> DynamicImage {
    match image {
        DynamicImage::ImageLuma16(_) => DynamicImage::ImageLuma8(image.into_luma8()),
        DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLumaA8(image.into_luma_alpha8()),
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgb32F(_) => {
            DynamicImage::ImageRgb8(image.into_rgb8())
        }
        DynamicImage::ImageRgba16(_) | DynamicImage::ImageRgba32F(_) => {
            DynamicImage::ImageRgba8(image.into_rgba8())
        }
        eight_bits => eight_bits,
    }
}

impl Picture {
    pub(super) fn pixels(&self) -> u64 {
        u64::from(self.image.width()) * u64::from(self.image.height())
    }

    pub(super) fn longest_side(&self) -> u32 {
        self.image.width().max(self.image.height())
    }

    /// Scales the picture so that no side exceeds `longest`.
    pub(super) fn shrink(&mut self, longest: u32) {
        let (width, height) = self.image.dimensions();
        if width.max(height) <= longest {
            return;
        }
        let scaled = |side: u32| {
            let exact = u64::from(side) * u64::from(longest) / u64::from(width.max(height));
            u32::try_from(exact).unwrap_or(longest).max(1)
        };
        let target = (scaled(width), scaled(height));
        // The good filter stores four floats per pixel of a half-scaled picture. A much larger picture is first reduced
        // to twice the target by averaging, which needs no memory except its result.
        let twice = (target.0.saturating_mul(2), target.1.saturating_mul(2));
        let floats = u64::from(width.min(twice.0)) * u64::from(target.1) * 16;
        if floats > MAX_FLOATS {
            self.image = self.image.thumbnail_exact(target.0, target.1);
            return;
        }
        if width > twice.0 && height > twice.1 {
            self.image = self.image.thumbnail_exact(twice.0, twice.1);
        }
        self.image = self.image.resize_exact(target.0, target.1, FilterType::CatmullRom);
    }

    /// Applies the rotation that a viewer applies before showing the picture.
    pub(super) fn turn(&mut self, orientation: Orientation) {
        self.image.apply_orientation(orientation);
    }

    /// Returns whether any pixel is not opaque.
    pub(super) fn is_transparent(&self) -> bool {
        match &self.image {
            DynamicImage::ImageRgba8(image) => image.pixels().any(|pixel| pixel.0[3] != u8::MAX),
            DynamicImage::ImageLumaA8(image) => image.pixels().any(|pixel| pixel.0[1] != u8::MAX),
            _ => false,
        }
    }

    /// Encodes the picture. Transparency becomes white if the type does not support it.
    pub(super) fn write(&self, kind: MediaType) -> Result<Bytes, Failure> {
        let mut written = Vec::new();
        let done = match kind {
            MediaType::Jpeg => {
                encode(JpegEncoder::new_with_quality(&mut written, QUALITY), &self.opaque(), self.profile())
            }
            _ => encode(PngEncoder::new(&mut written), &self.plain(), self.profile()),
        };
        done.map_err(|_| broken_file(kind, "cannot be written"))?;
        Ok(written.into())
    }

    fn profile(&self) -> Option<Vec<u8>> {
        self.profile.clone()
    }

    /// The picture without an unused transparency channel.
    fn plain(&self) -> DynamicImage {
        if self.is_transparent() { self.image.clone() } else { self.opaque() }
    }

    fn opaque(&self) -> DynamicImage {
        let on_white = |value: u8, alpha: u8| {
            let (value, alpha) = (u32::from(value), u32::from(alpha));
            u8::try_from((value * alpha + 255 * (255 - alpha) + 127) / 255).unwrap_or(u8::MAX)
        };
        match &self.image {
            DynamicImage::ImageRgba8(image) => {
                let mut flat = image::RgbImage::new(image.width(), image.height());
                for (to, from) in flat.pixels_mut().zip(image.pixels()) {
                    let [red, green, blue, alpha] = from.0;
                    to.0 = [red, green, blue].map(|value| on_white(value, alpha));
                }
                DynamicImage::ImageRgb8(flat)
            }
            DynamicImage::ImageLumaA8(image) => {
                let mut flat = image::GrayImage::new(image.width(), image.height());
                for (to, from) in flat.pixels_mut().zip(image.pixels()) {
                    let [value, alpha] = from.0;
                    to.0 = [on_white(value, alpha)];
                }
                DynamicImage::ImageLuma8(flat)
            }
            opaque => opaque.clone(),
        }
    }
}

fn encode(
    mut encoder: impl ImageEncoder,
    image: &DynamicImage,
    profile: Option<Vec<u8>>,
) -> image::ImageResult<()> {
    if let Some(profile) = profile {
        // An encoder without profiles changes the colours slightly, but does not lose the picture.
        let _unsupported = encoder.set_icc_profile(profile);
    }
    encoder.write_image(image.as_bytes(), image.width(), image.height(), image.color().into())
}
