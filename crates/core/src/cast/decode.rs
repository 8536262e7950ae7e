//! Decodes the bytes of a terminal to text, however they were split into chunks.

/// An incremental UTF-8 decoder. It keeps an incomplete character until its other bytes arrive.
#[derive(Clone, Debug, Default)]
pub struct Utf8Decoder {
    begun: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes the next bytes. Invalid UTF-8 is replaced.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            rest = &joined;
        }
        let mut text = String::with_capacity(rest.len());
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(std::str::from_utf8(valid).unwrap_or_default());
            let Some(length) = error.error_len() else {
                self.begun = after.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &after[length..];
        }
    }

    /// Returns a replacement character if the input ended within a character.
    pub fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.begun).is_empty() {
            true => "",
            false => "\u{fffd}",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> String {
        let mut decoder = Utf8Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.push(piece)).collect();
        text.push_str(decoder.finish());
        text
    }

    #[test]
    fn characters_are_carried_over_cuts() {
        assert_eq!(decode(&[b"a\xf0", b"\x9f\x8e", b"\x89b"]), "a🎉b");
        assert_eq!(decode(&[b"\xc3", b"", b"\xa9"]), "é");
        assert_eq!(decode(&[b"a\xff\xc3", b"b"]), "a\u{fffd}\u{fffd}b");
        assert_eq!(decode(&[b"end\xe2\x82"]), "end\u{fffd}");
    }

    proptest! {
        /// The text does not depend on how the input is split.
        #[test]
        fn cuts_make_no_difference(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xf0), Just(0x9f), Just(0x8e), Just(0xc3), Just(b'a')], 0..40),
            cuts in proptest::collection::vec(0_usize..40, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(decode(&pieces), String::from_utf8_lossy(&bytes));
        }
    }
}
