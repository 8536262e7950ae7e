//! The version of tmux, and the features that depend on it.
//!
//! `tmux -V` prints `tmux 3.3a`, but also `tmux next-3.6`, `tmux master` and, on OpenBSD,
//! `tmux openbsd-7.5`. Each feature that depends on a version is one row in the table of
//! `version/feature.rs`; callers use [`Version::supports`] and never compare numbers.

mod cache;
mod feature;

pub use cache::version_cache;
pub use feature::Feature;

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The oldest tmux that this crate works with.
pub const MINIMUM: Version = Version::new(3, 2);

/// A version of tmux. Versions are ordered as they were released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The 3 of 3.3a.
    pub major: u16,
    /// The second 3 of 3.3a.
    pub minor: u16,
    /// The `a` of 3.3a.
    pub suffix: Option<char>,
}

/// A text that is not a version of tmux.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version of tmux")]
pub struct VersionError(String);

impl Version {
    /// Stands for `master` and for OpenBSD's own tmux: newer than every release.
    pub const UNRELEASED: Self = Self::new(u16::MAX, 0);

    /// Creates a version without a letter.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self {
            major,
            minor,
            suffix: None,
        }
    }

    /// Returns whether this version has the feature.
    #[must_use]
    pub fn supports(self, feature: Feature) -> bool {
        self >= feature.since()
    }

    /// Returns whether this version escapes values in listings and messages.
    ///
    /// From 3.4 to 3.5a control characters other than tab and newline, and bytes that are not
    /// UTF-8, are printed in octal (`\033`), which is indistinguishable from a text with these
    /// characters. 3.4 also puts a backslash before `$NAME`. The content of panes is not affected.
    #[must_use]
    pub fn escapes_output(self) -> bool {
        (Self::new(3, 4)..Self::new(3, 6)).contains(&self)
    }

    /// Fails with the missing features if this version is older than [`MINIMUM`].
    pub fn check_minimum(self) -> Result<(), Error> {
        if self >= MINIMUM {
            return Ok(());
        }
        let missing: Vec<&str> = Feature::ALL
            .iter()
            .filter(|feature| feature.since() <= MINIMUM && !self.supports(**feature))
            .map(|feature| feature.label())
            .collect();
        Err(Error::TooOld {
            found: self,
            needed: MINIMUM,
            missing: missing.join(", "),
        })
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Parses `tmux 3.3a`, with or without the program's name, which need not be `tmux`: older
    /// versions print the name with which they were called.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let trimmed = text.trim();
        let version = trimmed
            .split_once(' ')
            .map_or(trimmed, |(_, version)| version);
        if version == "master" || version.starts_with("openbsd-") {
            return Ok(Self::UNRELEASED);
        }
        // `next-3.6` will become 3.6 and has most of its features; `3.5-rc2` likewise.
        let version = version.strip_prefix("next-").unwrap_or(version);
        parse_number(version).ok_or_else(|| VersionError(text.to_owned()))
    }
}

fn parse_number(version: &str) -> Option<Version> {
    let version = version.split('-').next()?;
    let (major, rest) = version.split_once('.')?;
    let digits = rest.trim_end_matches(|character: char| character.is_ascii_lowercase());
    let mut letters = rest[digits.len()..].chars();
    let suffix = letters.next();
    if letters.next().is_some() {
        return None;
    }
    Some(Version {
        major: major.parse().ok()?,
        minor: digits.parse().ok()?,
        suffix,
    })
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::UNRELEASED {
            return f.write_str("master");
        }
        write!(f, "{}.{}", self.major, self.minor)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn reads_what_tmux_prints() {
        assert_eq!(
            version("tmux 3.3a\n"),
            Version {
                major: 3,
                minor: 3,
                suffix: Some('a')
            }
        );
        assert_eq!(version("tmux 3.2"), Version::new(3, 2));
        assert_eq!(version("tmux next-3.6"), Version::new(3, 6));
        assert_eq!(version("tmux 3.5-rc2"), Version::new(3, 5));
        assert_eq!(version("tmux master"), Version::UNRELEASED);
        assert_eq!(version("tmux openbsd-7.5"), Version::UNRELEASED);
        assert_eq!(version("3.10b").to_string(), "3.10b");
        assert_eq!(version("tmux-old 3.2").to_string(), "3.2");
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for text in [
            "",
            "tmux",
            "tmux 3",
            "tmux 3.x",
            "tmux 3.3ab",
            "screen 4.00.03",
            "tmux -1.2",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn orders_as_released() {
        let ordered = ["3.2", "3.2a", "3.3", "3.3a", "3.4", "3.10", "master"].map(version);
        assert!(ordered.is_sorted());
    }

    #[test]
    fn says_what_an_old_one_lacks() {
        assert!(version("3.2").check_minimum().is_ok());
        let error = version("3.0a").check_minimum().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::TooOld);
        assert!(error.to_string().contains("3.0a"), "{error}");
        assert!(error.to_string().contains("client flags"), "{error}");
    }
}
