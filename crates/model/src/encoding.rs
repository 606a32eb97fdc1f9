//! The text of files that others wrote: editors and shells of Windows put a byte order mark in front, or write UTF-16; results are also kept
//! compressed.

/// The byte order mark in UTF-8.
const UTF8_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
/// The first bytes of compressed files, their form, and the program that unpacks them.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (&[0x1F, 0x8B], "gzip", "gunzip"),
    (&[0x28, 0xB5, 0x2F, 0xFD], "zstd", "unzstd"),
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// How the two bytes of a unit of UTF-16 are in the order of this text.
type Unit = fn([u8; 2]) -> u16;

/// Why the bytes of a file are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// It is compressed.
    #[error("is compressed ({0}); unpack it first ({1})")]
    Compressed(&'static str, &'static str),
    /// It is UTF-32, which no program of today writes by default.
    #[error("is text in UTF-32; save it as UTF-8")]
    Utf32,
    /// It begins as UTF-16 and is none.
    #[error("begins as text in UTF-16 and is damaged; save it as UTF-8")]
    DamagedUtf16,
}

/// The bytes of a file's text as UTF-8: without a byte order mark, and converted where they are UTF-16. Whether they are valid UTF-8 is not
/// checked where nothing had to be converted: parsers do that, and name the place.
///
/// # Errors
/// When they are known to be no such text.
pub fn as_utf8(mut bytes: Vec<u8>) -> Result<Vec<u8>, NoText> {
    if let Some((_, form, program)) = COMPRESSED.iter().find(|(begin, ..)| bytes.starts_with(begin)) {
        return Err(NoText::Compressed(form, program));
    }
    if bytes.starts_with(UTF8_MARK) {
        bytes.drain(..UTF8_MARK.len());
        return Ok(bytes);
    }
    // Without a mark, the other half of the first character tells: all files that are read here begin with a character of ASCII.
    let (text, unit): (&[u8], Unit) = match bytes.as_slice() {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => return Err(NoText::Utf32),
        [0xFF, 0xFE, text @ ..] => (text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => (text, u16::from_be_bytes),
        [first, 0, second, ..] if *first != 0 && *second != 0 => (&bytes, u16::from_le_bytes),
        [0, first, 0, ..] if *first != 0 => (&bytes, u16::from_be_bytes),
        _ => return Ok(bytes),
    };
    if !text.len().is_multiple_of(2) {
        return Err(NoText::DamagedUtf16);
    }
    let units = text.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| NoText::DamagedUtf16)?;
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\"host\": \"Rechner ä, 机\"}\r\n";

    fn utf16(mark: bool, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.then_some(0xFEFF).into_iter().chain(TEXT.encode_utf16()).flat_map(bytes).collect()
    }

    #[test]
    fn what_windows_writes_is_read() {
        let marked = [UTF8_MARK, TEXT.as_bytes()].concat();
        for bytes in [
            TEXT.as_bytes().to_vec(),
            marked,
            utf16(true, u16::to_le_bytes),
            utf16(true, u16::to_be_bytes),
            utf16(false, u16::to_le_bytes),
            utf16(false, u16::to_be_bytes),
        ] {
            assert_eq!(as_utf8(bytes.clone()).map(String::from_utf8), Ok(Ok(TEXT.to_owned())), "{bytes:x?}");
        }
        for short in [&b""[..], b"{", b"{}", b"\0", UTF8_MARK] {
            assert!(as_utf8(short.to_vec()).unwrap().len() <= short.len());
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        assert_eq!(as_utf8(b"\x1f\x8b\x08\0".to_vec()).unwrap_err().to_string(), "is compressed (gzip); unpack it first (gunzip)");
        assert_eq!(as_utf8(vec![0xFF, 0xFE, 0, 0, b'{', 0, 0, 0]), Err(NoText::Utf32));
        let mut cut = utf16(true, u16::to_le_bytes);
        cut.pop();
        assert_eq!(as_utf8(cut), Err(NoText::DamagedUtf16));
        assert_eq!(as_utf8(vec![0xFF, 0xFE, b'{', 0, 0, 0xD8, b'x', 0]), Err(NoText::DamagedUtf16), "half of a pair");
        assert_eq!(as_utf8(vec![b'{', 0xFF]), Ok(vec![b'{', 0xFF]), "left to the parser");
    }
}
