//! Texts from outside (names of files, models and runs), made fit to be shown.

use std::borrow::Cow;

/// `text` in one line in which nothing acts on a terminal or breaks a file: every such character is
/// written as an escape, `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// [`visible`] lines: line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| acts(c) && c != '\n' && c != '\t')
}

/// True for control characters, for marks that change the order in which text is shown, and for
/// characters that XML forbids.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
}

/// Quote a word of a command line for a shell.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match word {
        _ if !word.is_empty() && word.chars().all(plain) => word.to_string(),
        // Only this form has escapes.
        _ if word.contains(acts) => {
            let escape = |c: char| match c {
                '\'' | '\\' => format!("\\{c}"),
                c if acts(c) => c
                    .encode_utf8(&mut [0; 4])
                    .bytes()
                    .map(|byte| format!("\\x{byte:02x}"))
                    .collect(),
                c => c.to_string(),
            };
            format!("$'{}'", word.chars().map(escape).collect::<String>())
        }
        _ => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn escaped(text: &str, unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&unfit) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if unfit(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        for (word, quoted) in [
            ("runs/kepler-1", "runs/kepler-1"),
            ("my runs/a", "'my runs/a'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
            ("a;b", "'a;b'"),
            ("é", "'é'"),
            ("a\u{1b}[1m\n'\\\u{9b}é", "$'a\\x1b[1m\\x0a\\'\\\\\\xc2\\x9bé'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn what_acts_is_escaped_and_the_rest_stays() {
        for text in ["q.x", "Ω₁ größer 名前 🙂", "a b", ""] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        for (text, shown) in [
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("x\u{202e}y\u{2069}", "x\\u{202e}y\\u{2069}"),
            ("a\r\nb\tc\0", "a\\u{d}\\u{a}b\\u{9}c\\u{0}"),
            ("\u{7f}\u{feff}\u{ffff}", "\\u{7f}\\u{feff}\\u{ffff}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\r\n\tb\u{1b}"), "a\\u{d}\n\tb\\u{1b}");
    }
}
