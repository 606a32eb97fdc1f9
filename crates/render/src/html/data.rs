//! The data of a page, to be saved from it without script.

/// A file within the page.
pub(super) struct Data {
    /// The name that it is saved by.
    pub(super) file: String,
    /// Its address, for an attribute in single quotes. It holds the whole file.
    pub(super) address: String,
    /// Of the file, in bytes.
    pub(super) bytes: usize,
}

impl Data {
    /// `json`: one line, or lines whose ends mean nothing.
    pub(super) fn new(name: &str, json: &[u8]) -> Self {
        let file: String = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).take(80).collect();
        let file = if file.trim_matches(['.', '-']).is_empty() { "result".to_owned() } else { file };
        Self { file: format!("{file}.json"), address: address(json), bytes: json.len() }
    }

    /// Its size for people, in decimal units as browsers show them.
    pub(super) fn size(&self) -> String {
        match self.bytes {
            bytes if bytes < 10_000 => format!("{bytes} bytes"),
            bytes if bytes < 1_000_000 => format!("{} kB", bytes / 1000),
            bytes => format!("{:.1} MB", bytes as f64 / 1e6),
        }
    }
}

/// A `data:` address: what has a meaning in addresses or in HTML is written as its code, so that nothing in the file is read as either.
fn address(json: &[u8]) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 16 + 64);
    out.push_str("data:application/json;charset=utf-8,");
    let mut indented = false;
    for &byte in json {
        indented = byte == b'\n' || (indented && byte == b' ');
        match byte {
            // Strings have no ends of lines: these, and the indentation after them, mean nothing.
            _ if indented => {}
            b'%' | b'#' | b'&' | b'\'' | b'<' | b'>' | b'`' | b'\\' => out.push_str(&format!("%{byte:02X}")),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_file_ends_the_attribute() {
        let address = address("{\n  \"a\": \"'<x>&\\n%41  é\"\n}\n".as_bytes());
        let (_, body) = address.split_once(',').unwrap_or_default();
        assert_eq!(body, "{\"a\": \"%27%3Cx%3E%26%5Cn%2541  %C3%A9\"}");
    }

    #[test]
    fn names_of_files_have_no_path() {
        let names = ["../../etc/passwd", "a b<c", "", "..."].map(|name| Data::new(name, b"{}").file);
        assert_eq!(names, ["..-..-etc-passwd.json", "a-b-c.json", "result.json", "result.json"]);
    }
}
