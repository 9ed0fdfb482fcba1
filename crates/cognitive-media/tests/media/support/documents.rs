//! Generates documents, object by object.

/// A document with these objects, numbered from 1; the first is the catalogue.
pub fn document(objects: &[Vec<u8>]) -> Vec<u8> {
    document_with(objects, "")
}

/// The same, with additional trailer entries.
pub fn document_with(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", at + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let start = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    file.extend(
        format!("trailer\n<</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n").bytes(),
    );
    file
}

pub fn stream(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<<{dictionary}/Length {}>>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// One page with this drawing and this font; further objects start with number 6.
pub fn page(drawing: &[u8], font: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</X1 6 0 R>>>>>>"
            .to_vec(),
        stream("", drawing),
        font.as_bytes().to_vec(),
    ];
    objects.extend_from_slice(more);
    document(&objects)
}

pub const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

pub fn with_text(text: &str) -> Vec<u8> {
    page(format!("BT /F1 12 Tf 5 40 Td ({text}) Tj ET").as_bytes(), HELVETICA, &[])
}

/// Pages that share one drawing.
pub fn of_pages(count: usize) -> Vec<u8> {
    let kids = (0..count).map(|at| (at + 5).to_string()).collect::<Vec<_>>().join(" 0 R ") + " 0 R";
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        format!("<</Type/Pages/Kids[{kids}]/Count {count}/Resources<</Font<</F1 4 0 R>>>>>>").into_bytes(),
        stream("", b"BT /F1 12 Tf (page) Tj ET"),
        HELVETICA.as_bytes().to_vec(),
    ];
    objects.extend((0..count).map(|_| b"<</Type/Page/Parent 2 0 R/Contents 3 0 R>>".to_vec()));
    document(&objects)
}

/// Compressed blanks, for a bomb of `count` bytes.
pub fn zeros(count: usize) -> Vec<u8> {
    let mut stream = lopdf::Stream::new(lopdf::Dictionary::new(), vec![b' '; count]);
    stream.compress().unwrap();
    stream.content
}
