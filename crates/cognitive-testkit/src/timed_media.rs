//! Generates audio and video: the smallest files that a parser accepts, with empty packets.

#![expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    reason = "the sizes of files that are made here are small"
)]

/// Frames of 128 kbit/s at 44.1 kHz, 1,152 samples each.
pub fn mp3(frames: usize) -> Vec<u8> {
    [&[0xff, 0xfb, 0x90, 0x00][..], &[0; 413]].concat().repeat(frames)
}

/// A WAV with eight bits and one channel; the header claims the given length.
pub fn wav(rate: u32, claimed: u32) -> Vec<u8> {
    let mut file = b"RIFF".to_vec();
    file.extend(claimed.wrapping_add(36).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(rate.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend(b"\x01\0\x08\0data");
    file.extend(claimed.to_le_bytes());
    file.resize(file.len() + 8_000, 0x80);
    file
}

/// Opus: packets of 20 ms, one per page.
pub fn ogg(packets: u64) -> Vec<u8> {
    let head = b"OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0";
    let tags = b"OpusTags\x04\0\0\0test\0\0\0\0";
    let mut file = page(2, 0, 0, head);
    file.extend(page(0, 0, 1, tags));
    for number in 1..=packets {
        // 0x08: SILK, narrow band, 20 ms, one frame.
        let last = if number == packets { 4 } else { 0 };
        file.extend(page(last, number * 960, number as u32 + 1, &[0x08, 0, 0, 0]));
    }
    file
}

/// A page of Ogg with one packet.
pub fn page(flags: u8, position: u64, number: u32, packet: &[u8]) -> Vec<u8> {
    let mut page = b"OggS\0".to_vec();
    page.push(flags);
    page.extend(position.to_le_bytes());
    page.extend(7_u32.to_le_bytes());
    page.extend(number.to_le_bytes());
    page.extend([0; 4]);
    page.extend([1, packet.len() as u8]);
    page.extend(packet);
    let sum = page.iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
            if sum & 0x8000_0000 == 0 { sum << 1 } else { sum << 1 ^ 0x04c1_1db7 }
        })
    });
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}

/// An element of EBML.
pub fn element(id: &[u8], content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64 | 1 << 56).to_be_bytes();
    [id, &length, content].concat()
}

/// The header of a file in Matroska or `WebM`.
pub fn ebml_header(kind: &[u8]) -> Vec<u8> {
    element(&[0x1a, 0x45, 0xdf, 0xa3], &element(&[0x42, 0x82], kind))
}

/// A live recording: no length in any header, blocks of 20 ms.
pub fn webm(film: bool, blocks: u16) -> Vec<u8> {
    let scale = element(&[0x2a, 0xd7, 0xb1], &1_000_000_u32.to_be_bytes());
    let programs = [element(&[0x4d, 0x80], b"test"), element(&[0x57, 0x41], b"test")].concat();
    let info = element(&[0x15, 0x49, 0xa9, 0x66], &[scale, programs].concat());
    let track = |kind: u8, codec: &[u8], more: &[u8]| {
        let parts = [
            &element(&[0xd7], &[1])[..],
            &element(&[0x73, 0xc5], &[1]),
            &element(&[0x83], &[kind]),
            &element(&[0x86], codec),
            &element(&[0x23, 0xe3, 0x83], &20_000_000_u32.to_be_bytes()),
            more,
        ];
        element(&[0xae], &parts.concat())
    };
    let track = if film {
        let size = [element(&[0xb0], &[1, 64]), element(&[0xba], &[0, 240])].concat();
        track(1, b"V_VP8", &element(&[0xe0], &size))
    } else {
        let head = element(&[0x63, 0xa2], b"OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0");
        let sound = [element(&[0xb5], &48_000_f32.to_be_bytes()), element(&[0x9f], &[1])].concat();
        track(2, b"A_OPUS", &[element(&[0xe1], &sound), head].concat())
    };
    let tracks = element(&[0x16, 0x54, 0xae, 0x6b], &track);
    let mut cluster = element(&[0xe7], &[0]);
    for number in 0..blocks {
        let time = (number * 20).to_be_bytes();
        cluster.extend(element(&[0xa3], &[0x81, time[0], time[1], 0x80, 0x08, 0, 0, 0]));
    }
    let segment = [0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let cluster = element(&[0x1f, 0x43, 0xb6, 0x75], &cluster);
    [&ebml_header(b"webm")[..], &segment, &info, &tracks, &cluster].concat()
}

/// An atom of MP4.
pub fn atom(name: &[u8], content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32 + 8).to_be_bytes()[..], name, content].concat()
}

/// Numbers of four bytes.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// One video track, ten frames a second.
pub fn mp4(brand: &[u8], frames: u32, size: (u16, u16)) -> Vec<u8> {
    let brand = atom(b"ftyp", &[brand, &[0, 0, 2, 0][..], brand].concat());
    let data = atom(b"mdat", &vec![0; frames as usize * 4]);
    let start = brand.len() as u32 + 8;
    [brand, data, atom(b"moov", &[movie(frames), track(frames, size, start)].concat())].concat()
}

const IDENTITY: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

fn movie(frames: u32) -> Vec<u8> {
    let head = words(&[0, 0, 0, 1000, frames * 100, 0x1_0000, 0x0100_0000, 0, 0]);
    atom(b"mvhd", &[head, words(&IDENTITY), words(&[0; 6]), words(&[2])].concat())
}

fn track(frames: u32, (width, height): (u16, u16), start: u32) -> Vec<u8> {
    let sides = words(&[u32::from(width) << 16, u32::from(height) << 16]);
    let head = [words(&[3, 0, 0, 1, 0, frames * 100, 0, 0, 0, 0]), words(&IDENTITY), sides].concat();
    let media_head = words(&[0, 0, 0, 10, frames, 0x55c4_0000]);
    let handler = [&words(&[0, 0])[..], b"vide", &words(&[0; 3]), b"\0"].concat();
    let reference = atom(b"dref", &[words(&[0, 1]), atom(b"url ", &words(&[1]))].concat());
    let tables = [
        atom(b"stsd", &[words(&[0, 1]), description(width, height)].concat()),
        atom(b"stts", &words(&[0, 1, frames, 1])),
        atom(b"stsc", &words(&[0, 1, 1, frames, 1])),
        atom(b"stsz", &words(&[0, 4, frames])),
        atom(b"stco", &words(&[0, 1, start])),
    ];
    let info =
        [atom(b"vmhd", &words(&[1, 0, 0])), atom(b"dinf", &reference), atom(b"stbl", &tables.concat())];
    let media = [atom(b"mdhd", &media_head), atom(b"hdlr", &handler), atom(b"minf", &info.concat())];
    atom(b"trak", &[atom(b"tkhd", &head), atom(b"mdia", &media.concat())].concat())
}

fn description(width: u16, height: u16) -> Vec<u8> {
    let mut entry = vec![0; 6];
    entry.extend([0, 1]);
    entry.extend([0; 16]);
    entry.extend(width.to_be_bytes());
    entry.extend(height.to_be_bytes());
    entry.extend(words(&[0x48_0000, 0x48_0000, 0]));
    entry.extend([0, 1]);
    entry.extend([0; 32]);
    entry.extend([0, 0x18, 0xff, 0xff]);
    entry.extend(atom(
        b"avcC",
        &[1, 0x42, 0, 0x1e, 0xff, 0xe1, 0, 4, 0x67, 0x42, 0, 0x1e, 1, 0, 2, 0x68, 0xce],
    ));
    atom(b"avc1", &entry)
}
