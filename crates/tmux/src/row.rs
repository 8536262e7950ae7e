//! Listings as structs.
//!
//! A listing prints one line per thing and any text in it: titles, paths and user options may
//! hold tabs, newlines and every other byte. So there is no fixed separator. Each query makes
//! up two words that nobody can know (see `nonce.rs`): one between the fields and one after
//! the row, and what stands between them is the value, whatever it is.
//!
//! [`query!`](crate::query) writes the struct and its [`Row`], `row/field.rs` reads the
//! values, and `row/listing.rs` holds the separators.

mod field;
mod listing;

pub use field::{Field, FieldError};
pub(crate) use listing::Listing;

/// A struct that one line of a listing fills. [`query!`](crate::query) implements it.
pub trait Row: Sized {
    /// The format of each field, in order.
    fn fields() -> &'static [&'static str];

    /// Reads the values, which are as many as there are fields.
    fn parse(values: &[&str]) -> Result<Self, FieldError>;
}

/// Declares a struct together with the format of each of its fields.
///
/// ```
/// gt_tmux::query! {
///     /// A client, and where it is.
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
/// The types are those that implement [`Field`]. The struct is `Clone` and `Debug` by itself.
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
