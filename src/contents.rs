//! Files that say what memory holds: lines of 128 hexadecimal digits, 64 bytes each.

use memgauge_model::traffic::LineContent;

/// A file may have this many lines, as with mlc.
const MAX_LINES: usize = 256;

/// The lines of a file that say something, with their numbers: not the blank ones, and no comments.
pub(crate) fn data_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_data = |line: &str| !line.is_empty() && !line.starts_with('#');
    text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())).filter(move |(_, line)| is_data(line))
}

/// # Errors
/// Names the line that is wrong.
pub(crate) fn parse(text: &str) -> Result<Vec<LineContent>, String> {
    let contents: Vec<LineContent> = data_lines(text)
        .map(|(n, line)| line.parse().map_err(|_| format!("line {n} is not 128 hexadecimal digits, the content of a 64-byte line")))
        .collect::<Result<_, _>>()?;
    match contents.len() {
        0 => Err("holds no line of 128 hexadecimal digits".into()),
        n if n > MAX_LINES => Err(format!("holds {n} lines of content; at most {MAX_LINES} are allowed")),
        _ => Ok(contents),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_checked() {
        let line = "0123456789abcdefABCDEF".repeat(6)[..128].to_owned();
        assert_eq!(parse(&format!("# two\n{line}\n\n{line}\n")).unwrap().len(), 2);
        assert!(parse(&line[1..]).unwrap_err().contains("line 1"));
        assert!(parse(&format!("{line}\n").repeat(257)).unwrap_err().contains("257"));
        assert!(parse("").is_err());
    }
}
