//! Listings as structs.
//!
//! A listing prints one line per object, and titles, paths and user options in it may contain tabs,
//! newlines and every other byte. So there is no fixed separator. Each query generates two
//! unpredictable words (see `nonce.rs`): one separates the fields, the other ends the row, and all
//! bytes between them belong to the value.
//!
//! [`query!`](crate::query) generates the struct and its [`Row`], `row/field.rs` parses the values,
//! and `row/listing.rs` holds the separators.

mod field;
mod listing;

pub use field::{Field, FieldError};
pub(crate) use listing::Listing;

/// A struct that holds one line of a listing. [`query!`](crate::query) implements it.
pub trait Row: Sized {
    /// Returns the format of each field, in order.
    fn fields() -> &'static [&'static str];

    /// Parses the values, one for each field.
    fn parse(values: &[&str]) -> Result<Self, FieldError>;
}

/// Declares a struct together with the format of each of its fields.
///
/// ```
/// gt_tmux::query! {
///     /// A client and its session.
///     #[derive(PartialEq)]
///     pub struct Client {
///         /// Its terminal.
///         pub tty: std::path::PathBuf = "#{client_tty}",
///         pub session: String = "#{client_session}",
///         pub is_control: bool = "#{client_control_mode}",
///         pub width: Option<u32> = "#{client_width}",
///     }
/// }
/// ```
///
/// The types of the fields implement [`Field`]. The struct derives `Clone` and `Debug`.
#[macro_export]
macro_rules! query {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field_visibility:vis $field:ident : $type:ty = $format:expr
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)+
        }

        impl $crate::Row for $name {
            fn fields() -> &'static [&'static str] {
                &[$($format),+]
            }

            fn parse(values: &[&str]) -> ::std::result::Result<Self, $crate::FieldError> {
                let mut values = values.iter().copied();
                ::std::result::Result::Ok(Self {
                    $($field: <$type as $crate::Field>::parse_next(
                        ::std::stringify!($field),
                        &mut values,
                    )?,)+
                })
            }
        }
    };
}

#[cfg(test)]
mod on_a_server;
