//! Text that came from outside, such as names of hosts and files, without what a terminal or a page would obey.

use std::borrow::Cow;

/// Whether a terminal or a page obeys the character and does not show it: control characters, also those that are two bytes in UTF-8, and what
/// changes the direction of text (Unicode's `Bidi_Control`) or its lines.
pub fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with all such characters escaped, as in Rust.
pub fn escape_controls(text: &str) -> String {
    replaced(text, is_obeyed, |c, to| to.extend(c.escape_default())).into_owned()
}

/// Text that a format has written, with such characters escaped, as in Rust. Its lines and tabs stay.
pub fn escape_within_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_obeyed(c) && c != '\n' && c != '\t', |c, to| to.extend(c.escape_default()))
}

/// JSON with such characters as `\uXXXX`. Its lines and tabs stay: they are between strings.
pub fn escape_json(text: &str) -> Cow<'_, str> {
    // None of them takes two units of UTF-16.
    replaced(text, |c| is_obeyed(c) && c != '\n' && c != '\t', |c, to| to.push_str(&format!("\\u{:04x}", u32::from(c))))
}

/// Nothing is copied where there is nothing to replace, as there nearly never is.
fn replaced(text: &str, to_replace: impl Fn(char) -> bool, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(&to_replace) else { return Cow::Borrowed(text) };
    let mut all = String::with_capacity(text.len() + text.len() / 16);
    all.push_str(&text[..first]);
    for c in text[first..].chars() {
        if to_replace(c) { replace(c, &mut all) } else { all.push(c) }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;x\x07\u{7f}\u{9b}2J\u{202e}\u{2066}\u{200f}\u{2028}\rb";

    #[test]
    fn what_would_be_obeyed_is_escaped_and_the_rest_stays() {
        assert_eq!(escape_controls(HOSTILE), "a\\u{1b}]0;x\\u{7}\\u{7f}\\u{9b}2J\\u{202e}\\u{2066}\\u{200f}\\u{2028}\\rb");
        assert_eq!(escape_controls("a\nb"), "a\\nb");
        assert_eq!(escape_within_lines("a\tb\n\u{9b}\n"), "a\tb\n\\u{9b}\n");
        let plain = "größe 数 \u{200b}\u{200d}";
        assert!(matches!(escape_within_lines(plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let json = format!("{{\n\t\"a\": \"{}\"\n}}\n", HOSTILE.replace(|c: char| c < ' ', ""));
        let escaped = escape_json(&json);
        assert!(
            escaped.contains("\\u009b2J\\u202e\\u2066") && !escaped.chars().any(|c| is_obeyed(c) && c != '\n' && c != '\t'),
            "{escaped}"
        );
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(&json));
    }
}
