//! The media limits of one run. An operator may lower them, but never raise them above the specification's limit per
//! item.

use std::time::Duration;

use super::kind::Category;

const MIB: u64 = 1 << 20;

/// Limits for media. One MB is 1,048,576 bytes. (C-40)
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaLimits {
    /// The maximum bytes of an item; the limit of its category also applies. (MEDIA-005)
    pub largest: u64,
    /// The maximum number of items in one run. (S-28)
    pub most: usize,
    /// The maximum total bytes in one run. (S-28)
    pub together: u64,
    /// The maximum side length of an image. (E1015)
    pub longest_side: u32,
    /// The minimum side length of an image. The default is 1, because the specification's own samples are one pixel
    /// wide. Operators may set the minimum of 10 that E1016 mentions.
    pub shortest_side: u32,
    /// The maximum longer and shorter side of a video. (E1015)
    pub video_sides: (u32, u32),
    /// The maximum number of pixels of an image. (E1017)
    pub most_pixels: u64,
    /// The maximum number of pages of a document. (S-32)
    pub most_pages: u32,
}

impl Default for MediaLimits {
    fn default() -> Self {
        Self {
            largest: 100 * MIB,
            most: 10,
            together: 200 * MIB,
            longest_side: 8192,
            shortest_side: 1,
            video_sides: (3840, 2160),
            most_pixels: 67_108_864,
            most_pages: 500,
        }
    }
}

impl MediaLimits {
    /// Returns the maximum bytes of one item of a category. (MEDIA-004, MEDIA-005)
    #[must_use]
    pub fn bytes_of(&self, category: Category) -> u64 {
        let own = match category {
            Category::Image => 20,
            Category::Audio => 25,
            Category::Video => 100,
            Category::Document => 50,
        };
        self.largest.min(own * MIB)
    }

    /// The limits for media in answers. They have no minimum size, which applies only to callers. (D-15)
    #[must_use]
    pub fn for_answers(&self) -> Self {
        Self { shortest_side: 0, ..self.clone() }
    }

    /// The maximum duration of an item of a category. (MEDIA-006)
    #[must_use]
    pub fn length_of(category: Category) -> Option<Duration> {
        match category {
            Category::Audio => Some(Duration::from_mins(10)),
            Category::Video => Some(Duration::from_mins(5)),
            Category::Image | Category::Document => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_005_the_smaller_limit_counts() {
        let usual = MediaLimits::default();
        assert_eq!(Category::ALL.map(|category| usual.bytes_of(category) / MIB), [20, 25, 100, 50]);
        let small = MediaLimits { largest: 21 * MIB, ..usual };
        assert_eq!(Category::ALL.map(|category| small.bytes_of(category) / MIB), [20, 21, 21, 21]);
    }
}
