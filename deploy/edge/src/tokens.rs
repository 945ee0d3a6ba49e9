//! The pieces by id: what each one is, settled when the bundle was made.

use crate::error::{Error, Kind, Result};

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Text, with `▁` in front of a word.
    Text(String),
    /// A tag's name, `en` for `<|en|>`.
    Tag(String),
    /// One byte of a character.
    Byte(u8),
    /// No text: `<s>` and the like.
    Nothing,
}

/// All tokens.
#[derive(Debug, Clone)]
pub struct Vocabulary(Vec<Token>);

impl Vocabulary {
    /// Read the table of a bundle: kind, length (two bytes, little endian), bytes.
    ///
    /// # Errors
    /// [`Kind::Model`] if the table is none, or has another number of entries.
    pub fn read(mut bytes: &[u8], expected: usize) -> Result<Self> {
        let mut tokens = Vec::with_capacity(expected);
        while let [kind, low, high, rest @ ..] = bytes {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            let Some((data, after)) = rest.split_at_checked(length) else {
                break;
            };
            let text = || String::from_utf8_lossy(data).into_owned();
            tokens.push(match kind {
                0 => Token::Text(text()),
                1 => Token::Tag(text()),
                2 if length == 1 => Token::Byte(data[0]),
                3 => Token::Nothing,
                _ => break,
            });
            bytes = after;
        }
        if !bytes.is_empty() || tokens.len() != expected {
            return Err(Error::new(
                Kind::Model,
                format!(
                    "tokens.bin: expected {expected} tokens, found {} and {} bytes more; copy the \
                     bundle again",
                    tokens.len(),
                    bytes.len()
                ),
            ));
        }
        Ok(Self(tokens))
    }

    /// A token; nothing for an id that no token has.
    #[must_use]
    pub fn get(&self, id: i32) -> &Token {
        let found = usize::try_from(id).ok().and_then(|id| self.0.get(id));
        found.unwrap_or(&Token::Nothing)
    }

    /// A tag's name; none for any other token.
    #[must_use]
    pub fn tag(&self, id: i32) -> Option<&str> {
        match self.get(id) {
            Token::Tag(name) => Some(name),
            _ => None,
        }
    }

    /// The bytes that each token stands for, as a phrase list wants them; none for the blank.
    #[must_use]
    pub fn spellings(&self, blank_id: i64) -> Vec<Vec<u8>> {
        let bytes = |(id, token): (usize, &Token)| match token {
            _ if id as i64 == blank_id => Vec::new(),
            Token::Text(text) => text.as_bytes().to_vec(),
            Token::Byte(byte) => vec![*byte],
            _ => Vec::new(),
        };
        self.0.iter().enumerate().map(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_a_short_table_refused() {
        let table = b"\x01\x02\x00en\x00\x04\x00\xe2\x96\x81a\x02\x01\x00\xe4\x03\x03\x00<s>";
        let found = Vocabulary::read(table, 4).unwrap();
        assert_eq!(Some("en"), found.tag(0));
        assert_eq!(&Token::Text("\u{2581}a".into()), found.get(1));
        assert_eq!(&Token::Byte(0xe4), found.get(2));
        assert_eq!(&Token::Nothing, found.get(3));
        assert_eq!(&Token::Nothing, found.get(-1));
        assert!(found.spellings(1)[1].is_empty(), "the blank spells nothing");
        for (bytes, count) in [
            (&table[..table.len() - 1], 4),
            (&table[..], 5),
            (&table[..], 3),
        ] {
            let error = Vocabulary::read(bytes, count).unwrap_err();
            assert_eq!(Kind::Model, error.kind);
        }
    }
}
