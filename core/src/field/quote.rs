//! Text in quotes, as Kubernetes prints it in an error (Go's `%q`).

use std::fmt::Write as _;

/// `text` in double quotes with Go's escapes, the same bytes as `fmt.Sprintf("%q", text)`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('"');
    for c in text.chars() {
        escape_into(&mut out, c);
    }
    out.push('"');
    out
}

fn escape_into(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c if is_print(c) => out.push(c),
        c => {
            let code = u32::from(c);
            // Writing to a String cannot fail.
            let _ = if code < 0x20 || code == 0x7f {
                write!(out, "\\x{code:02x}")
            } else if code < 0x1_0000 {
                write!(out, "\\u{code:04x}")
            } else {
                write!(out, "\\U{code:08x}")
            };
        }
    }
}

/// Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
///
/// The standard library escapes exactly the other characters, once it is kept from treating a
/// leading combining mark specially: hence the letter in front.
fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    format!("a{c}").escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_gives_the_bytes_of_gos_percent_q() {
        for (text, quoted) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("a\nb\t\r", r#""a\nb\t\r""#),
            ("quote\"d \\ 'single'", r#""quote\"d \\ 'single'""#),
            ("\u{0}\u{7}\u{8}\u{b}\u{c}\u{1f}\u{7f}", r#""\x00\a\b\v\f\x1f\x7f""#),
            ("é 日本 👍", r#""é 日本 👍""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{a0}\u{200b}\u{2028}\u{feff}", r#""\u00a0\u200b\u2028\ufeff""#),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
            ("\u{85}", r#""\u0085""#),
        ] {
            assert_eq!(quote(text), quoted, "{text:?}");
        }
    }
}
